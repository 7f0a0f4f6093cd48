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

// Marks are a field of the editor's state that follows what is typed. They do not go through the properties of the
// element: with those the server would send the text that it knows, and what was typed meanwhile would be lost.
function markField(CM) {
  const setMarks = CM.StateEffect.define();
  const field = CM.StateField.define({
    create: () => CM.Decoration.none,
    update(marks, transaction) {
      marks = marks.map(transaction.changes);
      for (const effect of transaction.effects) if (effect.is(setMarks)) marks = CM.Decoration.set(effect.value, true);
      return marks;
    },
    provide: (one) => CM.EditorView.decorations.from(one),
  });
  return { setMarks, field };
}

const editors = new Map();

window.headwaterEditor = (id) => {
  editors.set(id, prepare(id));
};

async function prepare(id) {
  const CM = await import("nicegui-codemirror");
  const element = await drawn(id);
  if (!element) return null;
  await element.editorPromise;
  const language = await streamingLanguage(CM);
  const { setMarks, field } = markField(CM);
  element.editor.dispatch({
    effects: [
      element.languageConfig.reconfigure(language),
      CM.StateEffect.appendConfig.of([
        language.data.of({ autocomplete: offer }),
        CM.EditorView.contentAttributes.of({ "aria-label": "query text" }),
        field,
      ]),
    ],
  });
  return { CM, view: element.editor, setMarks };
}

// Underlines what is wrong with a text, unless the text is another one by now. Offsets count characters as Python does.
window.headwaterMark = async (id, text, problem) => {
  const editor = await editors.get(id);
  if (!editor || editor.view.state.doc.toString() !== text) return;
  const { CM, view, setMarks } = editor;
  const marks = [];
  if (problem) {
    const characters = [...text];
    const place = (count) => characters.slice(0, count).join("").length;
    const attributes = { title: problem.message };
    marks.push(CM.Decoration.line({ class: "hw-wrong-line" }).range(view.state.doc.line(problem.line).from));
    marks.push(CM.Decoration.mark({ class: "hw-wrong", attributes }).range(place(problem.from), place(problem.to)));
  }
  view.dispatch({ effects: setMarks.of(marks) });
};
