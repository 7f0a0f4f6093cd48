"""Continuous SPARQL over RDF streams and linked data: C-SPARQL, CQELS-QL and RSP-QL, on Spark or in process.

    import headwater as hw

    engine = hw.Engine()
    engine.stream("http://city/tollgates", hw.files("tollgates/*.tnq"))
    query = engine.register("REGISTER QUERY … AS SELECT …")
    for answer in query.answers():
        print(answer.time, answer.rows)

Errors, each with what to do in its message:

    ValueError
     ├─ RegistrationError   queries that cannot run together, a stream without a source
     └─ RdfSyntaxError      a static data file that breaks off
    Exception
     └─ QueryError          a wrong query: line, column, caret, what was expected
    RuntimeError
     ├─ SourceError         a source that is missing or cannot be read
     ├─ CheckpointError     a checkpoint folder that cannot be used
     ├─ StrictError         with strict, the first bad or late element
     ├─ JavaError           no Java that Spark can use
     └─ RunError            Spark failed; the message is the innermost reason
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.language.errors import QueryError
    from headwater.language.service_options import ServiceOptions
    from headwater.pipeline.checkpoints import CheckpointError
    from headwater.pipeline.connectors.dataframe import dataframe
    from headwater.pipeline.connectors.kafka import kafka
    from headwater.pipeline.connectors.mqtt import mqtt
    from headwater.pipeline.connectors.sockets import tcp, websocket
    from headwater.pipeline.dead_letters import StrictError
    from headwater.pipeline.engine import Engine
    from headwater.pipeline.progress import Progress, RunSummary
    from headwater.pipeline.query import Query
    from headwater.pipeline.run_error import RunError
    from headwater.pipeline.session import JavaError
    from headwater.pipeline.sinks_files import FileSink
    from headwater.pipeline.sinks_kafka import KafkaSink
    from headwater.pipeline.sources import files, memory
    from headwater.pipeline.spans import SourceError
    from headwater.reference.answers import Answer
    from headwater.reference.registered import RegistrationError
    from headwater.terms.model import Element
    from headwater.terms.reading import RdfSyntaxError

__version__ = "0.1.0"

_PLACES = {
    "QueryError": "headwater.language.errors",
    "ServiceOptions": "headwater.language.service_options",
    "CheckpointError": "headwater.pipeline.checkpoints",
    "dataframe": "headwater.pipeline.connectors.dataframe",
    "kafka": "headwater.pipeline.connectors.kafka",
    "mqtt": "headwater.pipeline.connectors.mqtt",
    "tcp": "headwater.pipeline.connectors.sockets",
    "websocket": "headwater.pipeline.connectors.sockets",
    "StrictError": "headwater.pipeline.dead_letters",
    "Engine": "headwater.pipeline.engine",
    "Progress": "headwater.pipeline.progress",
    "RunSummary": "headwater.pipeline.progress",
    "Query": "headwater.pipeline.query",
    "RunError": "headwater.pipeline.run_error",
    "JavaError": "headwater.pipeline.session",
    "FileSink": "headwater.pipeline.sinks_files",
    "KafkaSink": "headwater.pipeline.sinks_kafka",
    "files": "headwater.pipeline.sources",
    "memory": "headwater.pipeline.sources",
    "SourceError": "headwater.pipeline.spans",
    "Answer": "headwater.reference.answers",
    "RegistrationError": "headwater.reference.registered",
    "Element": "headwater.terms.model",
    "RdfSyntaxError": "headwater.terms.reading",
}
"""Where each name lives. It is taken from there when it is first asked for: processes that Spark starts need few."""


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(place), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "Answer",
    "CheckpointError",
    "Element",
    "Engine",
    "FileSink",
    "JavaError",
    "KafkaSink",
    "Progress",
    "Query",
    "QueryError",
    "RdfSyntaxError",
    "RegistrationError",
    "RunError",
    "RunSummary",
    "ServiceOptions",
    "SourceError",
    "StrictError",
    "__version__",
    "dataframe",
    "files",
    "kafka",
    "memory",
    "mqtt",
    "tcp",
    "websocket",
]
