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
from headwater.reference.program import RegistrationError
from headwater.terms.model import Element
from headwater.terms.reading import RdfSyntaxError

__version__ = "0.1.0"

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
