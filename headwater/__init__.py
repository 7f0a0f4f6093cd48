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
    from headwater.engine.engine import Engine
    from headwater.engine.query_handle import Query
    from headwater.execution.answers import Answer
    from headwater.execution.registered import RegistrationError
    from headwater.language.errors import QueryError
    from headwater.language.service_options import ServiceOptions
    from headwater.running.checkpoints import CheckpointError
    from headwater.running.progress import Progress, RunSummary
    from headwater.sinks.dead_letters import StrictError
    from headwater.sinks.file_sink import FileSink
    from headwater.sinks.kafka_sink import KafkaSink
    from headwater.sources.dataframe import dataframe
    from headwater.sources.files import files, memory
    from headwater.sources.kafka import kafka
    from headwater.sources.mqtt import mqtt
    from headwater.sources.sockets import tcp, websocket
    from headwater.sources.source import SourceError
    from headwater.spark.run_error import RunError
    from headwater.spark.session import JavaError
    from headwater.terms.model import Element
    from headwater.terms.rdf_documents import RdfSyntaxError

__version__ = "0.1.0"

_PLACES = {
    "QueryError": "headwater.language.errors",
    "ServiceOptions": "headwater.language.service_options",
    "CheckpointError": "headwater.running.checkpoints",
    "dataframe": "headwater.sources.dataframe",
    "kafka": "headwater.sources.kafka",
    "mqtt": "headwater.sources.mqtt",
    "tcp": "headwater.sources.sockets",
    "websocket": "headwater.sources.sockets",
    "StrictError": "headwater.sinks.dead_letters",
    "Engine": "headwater.engine.engine",
    "Progress": "headwater.running.progress",
    "RunSummary": "headwater.running.progress",
    "Query": "headwater.engine.query_handle",
    "RunError": "headwater.spark.run_error",
    "JavaError": "headwater.spark.session",
    "FileSink": "headwater.sinks.file_sink",
    "KafkaSink": "headwater.sinks.kafka_sink",
    "files": "headwater.sources.files",
    "memory": "headwater.sources.files",
    "SourceError": "headwater.sources.source",
    "Answer": "headwater.execution.answers",
    "RegistrationError": "headwater.execution.registered",
    "Element": "headwater.terms.model",
    "RdfSyntaxError": "headwater.terms.rdf_documents",
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
