"""Every fault that a user can make is met with a `HeadwaterError` that names the thing and says what to do."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.datasets.loading.bulk_load import load
from headwater.terms.model import NamedNode, Triple
from tests.commands.running import headwater

QUERY = "REGISTER QUERY q AS SELECT ?g ?c FROM STREAM <s> [RANGE 10s STEP 5s] WHERE { ?g <http://p> ?c }"
JOIN = QUERY.replace("?c }", "?c . ?x <http://b> ?y }")
SERVICE = QUERY.replace("?c }", "?c SERVICE <http://localhost:1/sparql> { ?c <http://n> ?n } }")
EXPORTED = {getattr(hw, name) for name in hw.__all__}
TRIPLE = Triple(NamedNode("http://a"), NamedNode("http://b"), NamedNode("http://c"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the faults are made: a stream, a bad stream, linked data."""
    monkeypatch.chdir(tmp_path)
    Path("a.tnq").write_text("".join(f"{1000 * i}\t<http://g> <http://p> <http://c{i}> .\n" for i in range(20)))
    Path("bad.tnq").write_text("zzz\n")
    Path("c.ttl").write_text("<http://a> <http://b> 1 .")
    Path("x.csv").write_text("a,b\n1,2\n")
    Path("d.py").write_text("pass\n")
    yield tmp_path


def engine(stream: str = "a.tnq", **settings: Any) -> hw.Engine:
    made = hw.Engine(in_process=True, **settings)
    made.stream("s", hw.files(stream))
    return made


def run(query: str = QUERY, stream: str = "a.tnq", sinks: Any = (), seconds: Any = 1.0, **settings: Any) -> None:
    made = engine(stream, **settings)
    made.register(query)
    made.run(sinks=sinks, trigger_seconds=seconds)


def empty() -> hw.Engine:
    return hw.Engine(in_process=True)


def again(edit: Callable[[Path], object], query: str = QUERY) -> None:
    """A run from a checkpoint whose folder was changed after another run."""
    run(checkpoint="ck")
    edit(Path("ck"))
    run(query, checkpoint="ck")


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def cut_to_five(path: Path) -> bool:
    cut(path, 5)
    return True


def write(path: str, text: str) -> Path:
    Path(path).parent.mkdir(parents=True)
    Path(path).write_text(text)
    return Path(path)


def change_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def make_0_1(checkpoint: Path) -> None:
    """A state as version 0.1 wrote it: a pickle of classes that are elsewhere now, and no format."""
    (checkpoint / "headwater.json").unlink()
    (checkpoint / "state.pickle").write_bytes(b"cheadwater.reference.program\nProgram\n.")


def damaged(edit: Callable[[Path], object]) -> None:
    """A run over a data set whose files were changed."""
    load("ds", ["c.ttl"])
    edit(Path("ds"))
    made = engine()
    made.dataset("ds")
    made.register(JOIN)
    made.run()


def logged(line: str) -> None:
    load("ds", ["c.ttl"])
    hw.Engine(in_process=True).dataset("ds").insert([TRIPLE])
    next(Path("ds").glob("changes-*.log")).write_text(line)
    hw.Engine(in_process=True).dataset("ds")


FAULTS: dict[str, tuple[Callable[[], object], type[hw.HeadwaterError], str]] = {
    # Settings of the engine.
    "delay-float": (lambda: engine(delay=1.5), hw.SettingError, "delay must be a whole number of microseconds"),
    "delay-none": (lambda: engine(delay=None), hw.SettingError, "delay must be a whole number.*such as '5s'"),
    "delay-text": (lambda: engine(delay="5 parsecs"), hw.SettingError, "parsecs.*use one of"),
    "delay-negative": (lambda: engine(delay=-1), hw.SettingError, "delay must be at least 0"),
    "shards-text": (lambda: engine(shards="4"), hw.SettingError, "shards must be a whole number, and it is '4'"),
    "shards-bool": (lambda: engine(shards=True), hw.SettingError, "shards must be a whole number"),
    "shards-zero": (lambda: engine(shards=0), hw.SettingError, "shards must be at least 1"),
    "batch-bytes": (lambda: engine(batch_bytes=0.5), hw.SettingError, "batch_bytes must be a whole number"),
    "window-cap": (lambda: engine(window_cap="9"), hw.SettingError, "window_cap must be a whole number"),
    "partitions": (lambda: engine(shuffle_partitions=0), hw.SettingError, "shuffle_partitions must be at least 1"),
    "evaluator": (lambda: engine(evaluator="fast"), hw.SettingError, "'fast' is no evaluator: use one of auto"),
    "master": (lambda: engine(master=4), hw.SettingError, "master must be a text"),
    "checkpoint-type": (lambda: engine(checkpoint=5), hw.SettingError, "checkpoint must be a path, and it is 5"),
    "checkpoint-empty": (lambda: engine(checkpoint=""), hw.SettingError, "checkpoint must be a path"),
    "dead-letters-type": (lambda: engine(dead_letters=5), hw.SettingError, "dead_letters must be a path"),
    "dead-letters-file": (lambda: run(dead_letters="a.tnq"), hw.SettingError, "a.tnq.*dead letters.*name a folder"),
    "trigger": (lambda: run(seconds=-1), hw.SettingError, "trigger_seconds must not be negative"),
    "trigger-text": (lambda: run(seconds="1s"), hw.SettingError, "trigger_seconds must be a number"),
    # Queries.
    "query-none": (lambda: engine().register(None), hw.SettingError, "the text of a query"),  # type: ignore[arg-type]
    "query-wrong": (lambda: engine().register("SELEC ?x"), hw.QueryError, "did you mean SELECT"),
    "t0-text": (lambda: engine().register(QUERY, t0="yesterday"), hw.SettingError, "'yesterday'.*xsd:dateTime such as"),
    "t0-float": (lambda: engine().register(QUERY, t0=1.5), hw.SettingError, "t0 must be a whole number"),  # type: ignore[arg-type]
    "t0-zone": (lambda: engine().register(QUERY, t0="2014-08-01T00:00:00+15:00"), hw.SettingError, "the zone must lie"),
    "t0-year": (lambda: engine().register(QUERY, t0="9" * 18), hw.SettingError, "outside the years 0001 to 9999"),
    "t0-month": (
        lambda: engine().register(QUERY, t0="2014-13-01T00:00:00Z"),
        hw.SettingError,
        "month must be in",
    ),
    "name": (lambda: engine().register(QUERY, name=5), hw.SettingError, "name must be a text"),  # type: ignore[arg-type]
    "dialect": (lambda: engine().register(QUERY, dialect="sql"), hw.SettingError, "use one of csparql"),
    "service-type": (lambda: engine().register(SERVICE, service=5), hw.SettingError, "service must be ServiceOptions"),  # type: ignore[arg-type]
    "service-value": (
        lambda: engine().register(SERVICE, service={"budget": "ten"}),
        hw.SettingError,
        "budget must be a whole number",
    ),
    "service-accuracy": (lambda: hw.ServiceOptions(accuracy="x"), hw.SettingError, "accuracy must be a number"),  # type: ignore[arg-type]
    "drop": (lambda: engine().drop(None), hw.RegistrationError, "no query is named None; registered: none"),  # type: ignore[arg-type]
    # Streams.
    "stream-type": (lambda: empty().stream("s", 42), hw.SettingError, "42 is no source: use files"),  # type: ignore[arg-type]
    "stream-name": (lambda: empty().stream(5, "a.tnq"), hw.SettingError, "a name must be a text"),  # type: ignore[arg-type]
    "scheme": (lambda: empty().stream("s", "amqp://h/x"), hw.SettingError, "amqp://; use kafka://, mqtt://.*files"),
    "idle": (lambda: empty().stream("s", "a.tnq", idle=-5), hw.SettingError, "idle must be at least 0"),
    "idle-float": (lambda: empty().stream("s", "a.tnq", idle=0.5), hw.SettingError, "idle must be a whole number"),  # type: ignore[arg-type]
    "ending": (lambda: run(stream="d.py"), hw.SettingError, "d.py.*give the file a name that ends in .tnq"),
    "csv": (lambda: run(stream="x.csv"), hw.SettingError, r"x.csv: rows need a template.*files\(…, template=…\)"),
    "missing": (lambda: run(stream="absent.tnq"), hw.SourceError, "no file or folder absent.tnq.*check the path"),
    "files-type": (lambda: hw.files(42), hw.SettingError, "a pattern of files must be a path"),  # type: ignore[arg-type]
    "template": (lambda: hw.files("x.csv", template="absent"), hw.TemplateError, "template absent.*check its path"),
    "template-type": (lambda: hw.files("x.csv", template=5), hw.SettingError, "template must be a path"),  # type: ignore[arg-type]
    "memory-numbers": (lambda: hw.memory([1, 2]), hw.SettingError, "memory must be elements.*at index 0 it has 1"),  # type: ignore[list-item]
    "memory-text": (lambda: hw.memory("abc"), hw.SettingError, "pairs of a time in microseconds and triples"),  # type: ignore[arg-type]
    "memory-time": (lambda: hw.memory([("x", [TRIPLE])]), hw.SettingError, "memory must be elements"),  # type: ignore[list-item]
    "memory-triples": (lambda: hw.memory([(0, [5])]), hw.SettingError, "triples of pyoxigraph"),  # type: ignore[list-item]
    "port": (lambda: hw.tcp("h", "x"), hw.SettingError, "'x' is no port: expected a number"),  # type: ignore[arg-type]
    "host": (lambda: hw.tcp(5, 9), hw.SettingError, "host must be a text"),  # type: ignore[arg-type]
    "keep": (lambda: hw.tcp("h", 9, keep=-1), hw.SettingError, "keep must not be negative"),
    "spool": (lambda: hw.tcp("h", 9, spool=5), hw.SettingError, "spool must be a path"),  # type: ignore[arg-type]
    "websocket": (lambda: hw.websocket("http://x"), hw.SettingError, "expected ws://"),
    "servers": (lambda: hw.kafka(5, "t"), hw.SettingError, "servers must be a text"),  # type: ignore[arg-type]
    "per-batch": (lambda: hw.kafka("h:1", "t", per_batch=0), hw.SettingError, "per_batch must be at least 1"),
    "skew": (lambda: hw.kafka("h:1", "t", skew=1.5), hw.SettingError, "skew must be a whole number"),  # type: ignore[arg-type]
    "dataframe": (lambda: hw.dataframe(42, template="t"), hw.SettingError, "42 is no DataFrame.*readStream"),  # type: ignore[arg-type]
    # Sinks.
    "sink-text": (lambda: run(sinks=["out"]), hw.SettingError, "sinks must be FileSink.*'out'"),
    "sinks-number": (lambda: run(sinks=5), hw.SettingError, "sinks must be an iterable of FileSink"),
    "sink-file": (lambda: run(sinks=[hw.FileSink("a.tnq")]), hw.SettingError, "a.tnq.*answers.*name a folder"),
    "sink-proc": (lambda: run(sinks=[hw.FileSink("/proc/none")]), hw.SettingError, "/proc/none.*name a folder"),
    "sink-type": (lambda: hw.FileSink(5), hw.SettingError, "the folder of a FileSink must be a path"),  # type: ignore[arg-type]
    "sink-kafka": (lambda: run(sinks=[hw.KafkaSink("h:1", "t")]), hw.SettingError, "Kafka.*leave out in_process"),
    "sink-taken": (
        lambda: (write("o/q", ""), run(sinks=[hw.FileSink("o")])),  # type: ignore[func-returns-value]
        hw.SinkError,
        "o/q cannot be.*written.*run again",
    ),
    # Endpoints.
    "endpoint-name": (lambda: engine().endpoint("http://x/", speed=3), hw.SettingError, "'speed'.*use bearer, user"),
    "endpoint-value": (
        lambda: engine().endpoint("http://x/", timeout="a"),
        hw.SettingError,
        "timeout must be a number",
    ),
    "endpoint-count": (lambda: engine().endpoint("http://x/", concurrent=1.5), hw.SettingError, "concurrent must be a"),
    "endpoint-method": (lambda: engine().endpoint("http://x/", method=5), hw.SettingError, "use GET or POST"),
    "endpoint-headers": (
        lambda: engine().endpoint("http://x/", headers="x"),
        hw.SettingError,
        "headers must be a mapping",
    ),
    "endpoint-url": (lambda: engine().endpoint(5), hw.SettingError, "url must be a text"),  # type: ignore[arg-type]
    "endpoint-down": (lambda: run(SERVICE), hw.ServiceError, "check the address and that the endpoint runs"),
    # Checkpoints.
    "checkpoint-file": (lambda: run(checkpoint="a.tnq"), hw.SettingError, "a.tnq.*name a folder"),
    "checkpoint-proc": (lambda: run(checkpoint="/proc/none"), hw.CheckpointError, "/proc/none.*name a folder"),
    "state-cut": (
        lambda: again(lambda ck: cut(ck / "state", 40)),
        hw.CheckpointError,
        "state is damaged.*delete this one to begin anew",
    ),
    "state-empty": (lambda: again(lambda ck: cut(ck / "state", 0)), hw.CheckpointError, "use another folder"),
    "state-garbage": (
        lambda: again(lambda ck: cut(ck / "state", (ck / "state").stat().st_size // 2)),
        hw.CheckpointError,
        "state is damaged",
    ),
    "state-folder": (
        lambda: again(lambda ck: ((ck / "state").rename("old"), write(str(ck / "state" / "x"), ""))),
        hw.CheckpointError,
        "state cannot be read",
    ),
    "state-0.1": (lambda: again(make_0_1), hw.CheckpointError, "no headwater.json.*use another folder"),
    "state-unformatted": (
        lambda: again(lambda ck: (ck / "state").write_bytes(pickle.dumps((0, {}, b"")))),
        hw.CheckpointError,
        "another version of Headwater",
    ),
    "record-gone": (
        lambda: again(lambda ck: (ck / "headwater.json").unlink()),
        hw.CheckpointError,
        "no headwater.json.*put that file back",
    ),
    "record-list": (
        lambda: again(lambda ck: (ck / "headwater.json").write_text("[]")),
        hw.CheckpointError,
        "headwater.json is damaged.*begin anew",
    ),
    "record-runner": (
        lambda: again(lambda ck: change_json(ck / "headwater.json", runner="on Spark")),
        hw.CheckpointError,
        "was made on Spark.*use another folder",
    ),
    # Linked data.
    "data-number": (lambda: engine().dataset(42), hw.SettingError, "linked data .* must be an iterable"),  # type: ignore[arg-type]
    "data-items": (lambda: engine().dataset([1]), hw.SettingError, "quads and triples of pyoxigraph"),  # type: ignore[list-item]
    "data-ending": (lambda: engine().dataset("d.py"), hw.SettingError, "d.py.*give the file a name that ends in .nt"),
    "data-refresh": (lambda: engine().dataset("c.ttl", refresh=0), hw.SettingError, "refresh must be above zero"),
    "data-graph": (lambda: engine().dataset("c.ttl", graph=5), hw.SettingError, "a name must be a text"),  # type: ignore[arg-type]
    "insert": (lambda: engine().dataset("c.ttl").insert([1]), hw.SettingError, "statements must be quads"),  # type: ignore[list-item]
    "update": (lambda: engine().dataset("c.ttl").update(5), hw.SettingError, "an update must be a text"),  # type: ignore[arg-type]
    "update-wrong": (
        lambda: engine().dataset("c.ttl").update("DELETE WHAT"),
        hw.UpdateSyntaxError,
        "nothing is changed",
    ),
    "data-cut": (
        lambda: damaged(lambda ds: all(map(cut_to_five, (ds / "base-1").iterdir()))),
        hw.DataSetError,
        "ds/base-1/.* is damaged.*headwater load",
    ),
    "data-short": (
        lambda: damaged(lambda ds: cut(ds / "base-1" / "oo", 0)),
        hw.DataSetError,
        "base-1/oo is damaged: it has 0 bytes",
    ),
    "data-terms": (lambda: damaged(lambda ds: cut(ds / "base-1/terms.ids", 8)), hw.DataSetError, "ids is damaged"),
    "data-texts": (
        lambda: damaged(lambda ds: cut(ds / "base-1/terms.blob", 3)),
        hw.DataSetError,
        "terms.blob is damaged: it has 3 bytes",
    ),
    "data-gone": (
        lambda: damaged(lambda ds: (ds / "base-1").rename("elsewhere")),
        hw.DataSetError,
        "base-1/groups.*see that its files are there",
    ),
    "data-manifest": (
        lambda: damaged(lambda ds: change_json(ds / "dataset.json", files=5)),
        hw.DataSetError,
        "ds/dataset.json is damaged.*load its files again",
    ),
    "data-format": (
        lambda: damaged(lambda ds: change_json(ds / "dataset.json", format="x")),
        hw.DataSetError,
        "is no manifest",
    ),
    "data-log": (lambda: logged("garbage\n"), hw.DataSetError, "changes-1.log, line 1, is damaged.*truncate"),
    "data-log-fields": (lambda: logged("[]\n"), hw.DataSetError, "changes-1.log, line 1, is damaged.*truncate"),
    "load-into-file": (lambda: load("a.tnq", ["c.ttl"]), hw.DataSetError, "a.tnq is a file.*name a new folder"),
    "load-into-proc": (lambda: load("/proc/none/x", ["c.ttl"]), hw.SettingError, "/proc/none/x.*name a folder"),
    "load-journal": (
        lambda: (write("ds/loading/journal.json", "["), load("ds", ["c.ttl"])),
        hw.DataSetError,
        "journal.json is damaged.*delete the folder ds/loading",
    ),
    "data-gz": (
        lambda: (Path("e.ttl.gz").write_bytes(gzip.compress(b"<http://a> ")[:9]), engine().dataset("e.ttl.gz")),
        hw.RdfSyntaxError,
        "e.ttl.gz",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_met_with_words(fault: str) -> None:
    cause, kind, words = FAULTS[fault]
    with pytest.raises(hw.HeadwaterError, match=f"(?s){words}") as raised:
        cause()
    assert type(raised.value) is kind
    assert kind in EXPORTED


def test_the_record_of_a_checkpoint_stays_when_its_state_is_refused() -> None:
    run(checkpoint="ck")
    record = Path("ck/headwater.json")
    before = record.read_bytes()
    cut(Path("ck/state"), 40)
    with pytest.raises(hw.CheckpointError):
        run(QUERY.replace("10s", "20s"), checkpoint="ck")
    assert record.read_bytes() == before


def test_the_record_follows_when_the_state_is_accepted() -> None:
    run(checkpoint="ck")
    before = json.loads(Path("ck/headwater.json").read_text())
    run(QUERY.replace("10s", "20s"), checkpoint="ck")
    after = json.loads(Path("ck/headwater.json").read_text())
    assert before["run"] == after["run"]
    assert before["queries"] != after["queries"]


def test_an_empty_folder_may_become_a_checkpoint() -> None:
    Path("ck/other").mkdir(parents=True)
    run(checkpoint="ck")
    names = sorted(path.name for path in Path("ck").iterdir())
    assert names == ["headwater.json", "lock", "other", "planned.jsonl", "state"]


STREAM = ("--stream", "s=a.tnq")
COMMANDS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "out-scheme": (("--out", "redis://x", *STREAM), 2, "a folder, to kafka://host"),
    "out-file": (("--out", "a.tnq", *STREAM), 2, "name a folder"),
    "out-kafka": (("--out", "kafka://h:1/t", *STREAM), 2, "leave out in_process"),
    "stream-scheme": (("--stream", "s=amqp://h/x"), 2, "kafka://"),
    "stream-ending": (("--stream", "s=d.py"), 2, "a name that ends in .tnq"),
    "stream-missing": (("--stream", "s=absent.tnq"), 2, "check the path"),
    "stream-qos": (("--stream", "s=mqtt://h/t?qos=9"), 2, "qos must be"),
    "data-ending": (("--data", "d.py", *STREAM), 2, "a name that ends in .nt"),
    "data-missing": (("--data", "absent.ttl", *STREAM), 2, "check the path"),
    "endpoint-number": (("--endpoint", "http://x,timeout=abc", *STREAM), 2, "timeout must be a number"),
    "endpoint-whole": (("--endpoint", "http://x,retries=1.5", *STREAM), 2, "retries must be a whole number"),
    "endpoint-name": (("--endpoint", "http://x,speed=3", *STREAM), 2, "per_second"),
    "template-wrong": (("--template", "s=d.py", "--stream", "s=x.csv"), 2, "d.py"),
    "t0": (("--t0", "yesterday", *STREAM), 2, "xsd:dateTime"),
    "delay": (("--delay", "soon", *STREAM), 2, "is not a duration"),
    "dead-letters": (("--dead-letters", "a.tnq", *STREAM), 2, "name a folder"),
    "progress": (("--progress-json", "absent/p.json", *STREAM), 2, "name another file"),
    "checkpoint": (("--checkpoint", "a.tnq", *STREAM), 2, "name a folder"),
    "strict": (("--strict", "--stream", "s=bad.tnq"), 1, "bad.tnq, line 1"),
}


def said_on_stderr(*arguments: str) -> tuple[int, str]:
    """The exit code, and what was said, in one line without the frame that usage errors have."""
    result = headwater(*arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("fault", COMMANDS)
def test_a_command_says_what_is_wrong_and_how_it_ended(fault: str) -> None:
    Path("q.rq").write_text(QUERY)
    options, code, words = COMMANDS[fault]
    ended, said = said_on_stderr("run", "q.rq", "--in-process", *options)
    assert (ended, words in said) == (code, True), said
    assert not Path("redis:").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "q.rq", "--rules", "--format", "dot"), "leave out --format"),
        (("explain", "q.rq", "--rules", "--coverage", "."), "leave out --coverage"),
        (("explain", "--coverage", ".", "--graph", "operators"), "leave out --graph"),
        (("conformance", "w3c", "."), "no W3C tests below"),
        (("conformance", "csrbench", "."), "no CSRBench in"),
        (("load", "c.ttl", "--into", "a.tnq"), "name a new folder"),
        (("load", "d.py", "--into", "new"), "d.py"),
    ],
)
def test_wrong_usage_of_the_other_commands(arguments: tuple[str, ...], words: str) -> None:
    Path("q.rq").write_text(QUERY)
    ended, said = said_on_stderr(*arguments)
    assert (ended, words in said) == (2, True), said
