"""The entries of text from outside, each with a text that is nested too deeply: run in a process of its own."""

from __future__ import annotations

from pathlib import Path


def enter(entry: str, folder: str) -> str:
    """What is reported where a deep text comes in."""
    from tests.security import test_nesting as texts

    place = Path(folder)
    statement = texts.nested_statement(texts.LEVELS)
    try:
        if entry == "tnq":
            import headwater as hw

            (place / "s.tnq").write_bytes(b"1000\t" + statement + b"\n90000\t<a:s> <a:p> <a:o> .\n")
            engine = hw.Engine(in_process=True, dead_letters=str(place / "dead"))
            engine.stream("s", hw.files(str(place / "s.tnq")))
            engine.register("SELECT ?o WHERE { STREAM <headwater:/s> [RANGE 10s] { ?s <a:p> ?o } }", name="q")
            engine.run()
            return "".join(path.read_text() for path in (place / "dead").iterdir())[:400]
        if entry in ("ntriples", "turtle"):
            from headwater.datasets.loading.bulk_load import load

            file = place / ("a.nt" if entry == "ntriples" else "a.ttl")
            file.write_bytes(statement + b"\n")
            load(place / "data", [file], strict=True)
        if entry == "message":
            from headwater.sources.payloads import Decoder, ReceivedMessage

            return str(Decoder.of("nquads").decode(ReceivedMessage(statement, 0, "topic", (0,), {})))[:400]
        if entry == "service":
            from headwater.federation.endpoint.protocol import read_results

            read_results(texts.nested_result(texts.LEVELS))
        if entry in ("update", "listed"):
            from headwater.datasets.dataset import DataSet
            from headwater.datasets.loading.bulk_load import load

            (place / "a.nt").write_bytes(b"<a:s> <a:p> <a:o> .\n")
            load(place / "data", [place / "a.nt"])
            text = f"DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o . {texts.CHAINS['brackets']} }}"
            DataSet.open(place / "data").update(
                text if entry == "update" else f"INSERT DATA {{ {statement.decode()} }}"
            )
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:1000]
    return "nothing is reported"
