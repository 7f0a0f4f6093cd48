// What the editor of queries adds to the CodeMirror element: keywords of the streaming languages, and completion.
const STREAMING = new RegExp(
  "^(register|query|stream|streams|computed|every|range|step|slide|tumbling|triples|elements|now|all|window|on|" +
    "rstream|istream|dstream|aggregate|option|exists)$",
  "i",
);

// The highlighting of SPARQL, with the words that the streaming languages add.
async function streamingLanguage(CM) {
  const found = CM.languages.find((one) => one.name === "SPARQL");
  const parser = (await found.load()).language.streamParser;
  return CM.StreamLanguage.define({
    ...parser,
    token(stream, state) {
      const style = parser.token(stream, state);
      return style === "variable" && STREAMING.test(stream.current()) ? "keyword" : style;
    },
  });
}

// Words come from the server; variables are those of the text.
function offer(context) {
  const word = context.matchBefore(/[?$<\w][\w:<>/#.\-?]*/);
  if (!word && !context.explicit) return null;
  const text = context.state.doc.toString();
  const variables = [...new Set(text.match(/[?$]\w+/g) || [])].map((label) => ({ label, type: "variable" }));
  const words = (window.headwaterWords || []).map((one) => ({ label: one.label, type: one.kind, detail: one.detail }));
  return {
    from: word ? word.from : context.pos,
    options: [...variables.filter((one) => !word || one.label !== word.text), ...words],
    validFor: /^[?$<\w][\w:<>/#.\-?]*$/,
  };
}

// The element is drawn some time after the server has made it.
async function drawn(id) {
  for (;;) {
    const element = getElement(id);
    if (element?.editorPromise) return element;
    if (!mounted_app.elements[id]) return null;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
}

window.headwaterEditor = async (id) => {
  const CM = await import("nicegui-codemirror");
  const element = await drawn(id);
  if (!element) return;
  await element.editorPromise;
  const language = await streamingLanguage(CM);
  element.editor.dispatch({
    effects: [
      element.languageConfig.reconfigure(language),
      CM.StateEffect.appendConfig.of(language.data.of({ autocomplete: offer })),
      CM.StateEffect.appendConfig.of(CM.EditorView.contentAttributes.of({ "aria-label": "query text" })),
    ],
  });
};
