"""Continuous SPARQL over RDF streams and linked data: C-SPARQL, CQELS-QL and RSP-QL, on Spark or in process.

    import headwater as hw

    engine = hw.Engine()
    engine.stream("http://city/tollgates", hw.files("tollgates/*.tnq"))
    query = engine.register("REGISTER QUERY … AS SELECT …")
    for answer in query.answers():
        print(answer.time, answer.rows)

Every error that a user can meet is a `HeadwaterError` and says what to do in its message. Each is one of Python's own
kinds, too:

    HeadwaterError
     ├─ QueryError             a wrong query: line, column, caret, what was expected
     ├─ HashCollision          two terms of the data have one id
     ├─ ValueError, too
     │   ├─ SettingError       a setting or an argument that cannot be right
     │   ├─ RegistrationError  queries that cannot run together, a stream without a source
     │   ├─ RdfSyntaxError     a static data file that breaks off
     │   ├─ TemplateError      a template for rows that cannot be read
     │   └─ DurationError      a duration that cannot be read
     ├─ RuntimeError, too
     │   ├─ StateError         a call that is not possible now
     │   ├─ SourceError        a source that is missing or cannot be read
     │   │   └─ JarError       Spark's Kafka connector cannot be had
     │   ├─ SinkError          answers or dead letters that cannot be written
     │   ├─ CheckpointError    a checkpoint folder that cannot be used
     │   ├─ DataSetError       a data set that cannot be used, loaded or changed
     │   │   ├─ StrictLoadError    with strict, the first line or file that cannot be read
     │   │   └─ UpdateSyntaxError  a SPARQL Update that is not written as the language wants it
     │   ├─ StrictError        with strict, the first bad or late element
     │   ├─ WindowCapError     a window holds more than it may
     │   ├─ LimitError         a query would exceed one of its limits
     │   ├─ QuerySuspended     a query has no more answers until it is resumed
     │   ├─ SlowConsumerError  an iterator took answers too slowly, and has missed some
     │   ├─ GraphvizError      a picture of a plan cannot be made
     │   ├─ JavaError          no Java that Spark can use
     │   ├─ ServerError        a server refused a request, or does not answer
     │   └─ RunError           Spark failed; the message is the innermost reason
     └─ OSError, too
         ├─ EgressError        an address that the egress policy does not allow
         ├─ WebError           a document of the web that cannot be had
         ├─ ServiceError       an endpoint that has never answered
         └─ EndpointError      a request that gave no answer: EndpointUnreachable, EndpointTimeout, EndpointRefused,
                               EndpointForbidden, EndpointBusy, EndpointGarbage, EndpointTooLarge, UnsendableKey
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.client.server_client import connect
    from headwater.client.server_errors import ServerError
    from headwater.datasets.dataset import DataSet
    from headwater.datasets.errors import DataSetError, StrictLoadError, UpdateSyntaxError
    from headwater.egress.documents import WebError
    from headwater.egress.policy import EgressError, EgressPolicy
    from headwater.engine.engine import Engine
    from headwater.engine.query_handle import Query
    from headwater.errors import HeadwaterError, SettingError, StateError
    from headwater.execution.answer_batch import AnswerBatch
    from headwater.execution.answer_quality import AnswerQuality
    from headwater.execution.answers import Answer
    from headwater.execution.registered import RegistrationError
    from headwater.execution.remote_solutions import ServiceError
    from headwater.execution.suspension import QuerySuspended
    from headwater.explain.dot import GraphvizError
    from headwater.federation.endpoint.endpoint_errors import (
        EndpointBusy,
        EndpointError,
        EndpointForbidden,
        EndpointGarbage,
        EndpointRefused,
        EndpointTimeout,
        EndpointTooLarge,
        EndpointUnreachable,
        UnsendableKey,
    )
    from headwater.language.errors import QueryError
    from headwater.language.service_options import ServiceOptions
    from headwater.running.checkpoints import CheckpointError, Continued
    from headwater.running.progress import Progress, QueryProgress, RunSummary
    from headwater.running.subscriptions import SlowConsumerError
    from headwater.sinks.dead_letters import StrictError
    from headwater.sinks.errors import SinkError
    from headwater.sinks.file_sink import FileSink
    from headwater.sinks.kafka_sink import KafkaSink
    from headwater.sinks.webhook_sink import WebhookSink
    from headwater.sources.dataframe import dataframe
    from headwater.sources.files import files, memory
    from headwater.sources.jar_checksums import JarError
    from headwater.sources.kafka import kafka
    from headwater.sources.mqtt import mqtt
    from headwater.sources.push import push
    from headwater.sources.sockets import tcp, websocket
    from headwater.sources.source import SourceError
    from headwater.spark.run_error import RunError
    from headwater.spark.session import JavaError
    from headwater.terms.durations import DurationError
    from headwater.terms.ids.hash_collisions import HashCollision
    from headwater.terms.model import Element
    from headwater.terms.rdf_documents import RdfSyntaxError
    from headwater.terms.template import TemplateError
    from headwater.values.query_limits import LimitError
    from headwater.windows.caps import WindowCapError

__version__ = "0.2.0.dev0"

_PLACES = {
    "connect": "headwater.client.server_client",
    "ServerError": "headwater.client.server_errors",
    "DataSet": "headwater.datasets.dataset",
    "DataSetError": "headwater.datasets.errors",
    "StrictLoadError": "headwater.datasets.errors",
    "UpdateSyntaxError": "headwater.datasets.errors",
    "Engine": "headwater.engine.engine",
    "Query": "headwater.engine.query_handle",
    "HeadwaterError": "headwater.errors",
    "SettingError": "headwater.errors",
    "StateError": "headwater.errors",
    "AnswerQuality": "headwater.execution.answer_quality",
    "AnswerBatch": "headwater.execution.answer_batch",
    "Answer": "headwater.execution.answers",
    "RegistrationError": "headwater.execution.registered",
    "GraphvizError": "headwater.explain.dot",
    "ServiceError": "headwater.execution.remote_solutions",
    "EndpointBusy": "headwater.federation.endpoint.endpoint_errors",
    "EgressError": "headwater.egress.policy",
    "EgressPolicy": "headwater.egress.policy",
    "WebError": "headwater.egress.documents",
    "EndpointError": "headwater.federation.endpoint.endpoint_errors",
    "EndpointForbidden": "headwater.federation.endpoint.endpoint_errors",
    "EndpointGarbage": "headwater.federation.endpoint.endpoint_errors",
    "EndpointRefused": "headwater.federation.endpoint.endpoint_errors",
    "EndpointTimeout": "headwater.federation.endpoint.endpoint_errors",
    "EndpointTooLarge": "headwater.federation.endpoint.endpoint_errors",
    "EndpointUnreachable": "headwater.federation.endpoint.endpoint_errors",
    "UnsendableKey": "headwater.federation.endpoint.endpoint_errors",
    "QueryError": "headwater.language.errors",
    "ServiceOptions": "headwater.language.service_options",
    "CheckpointError": "headwater.running.checkpoints",
    "Continued": "headwater.running.checkpoints",
    "Progress": "headwater.running.progress",
    "QueryProgress": "headwater.running.progress",
    "RunSummary": "headwater.running.progress",
    "StrictError": "headwater.sinks.dead_letters",
    "SinkError": "headwater.sinks.errors",
    "FileSink": "headwater.sinks.file_sink",
    "KafkaSink": "headwater.sinks.kafka_sink",
    "WebhookSink": "headwater.sinks.webhook_sink",
    "dataframe": "headwater.sources.dataframe",
    "files": "headwater.sources.files",
    "memory": "headwater.sources.files",
    "kafka": "headwater.sources.kafka",
    "JarError": "headwater.sources.jar_checksums",
    "mqtt": "headwater.sources.mqtt",
    "push": "headwater.sources.push",
    "tcp": "headwater.sources.sockets",
    "websocket": "headwater.sources.sockets",
    "SourceError": "headwater.sources.source",
    "RunError": "headwater.spark.run_error",
    "JavaError": "headwater.spark.session",
    "DurationError": "headwater.terms.durations",
    "HashCollision": "headwater.terms.ids.hash_collisions",
    "Element": "headwater.terms.model",
    "RdfSyntaxError": "headwater.terms.rdf_documents",
    "TemplateError": "headwater.terms.template",
    "LimitError": "headwater.values.query_limits",
    "QuerySuspended": "headwater.execution.suspension",
    "SlowConsumerError": "headwater.running.subscriptions",
    "WindowCapError": "headwater.windows.caps",
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
    "AnswerBatch",
    "AnswerQuality",
    "CheckpointError",
    "Continued",
    "DataSet",
    "DataSetError",
    "DurationError",
    "EgressError",
    "EgressPolicy",
    "Element",
    "EndpointBusy",
    "EndpointError",
    "EndpointForbidden",
    "EndpointGarbage",
    "EndpointRefused",
    "EndpointTimeout",
    "EndpointTooLarge",
    "EndpointUnreachable",
    "Engine",
    "FileSink",
    "GraphvizError",
    "HashCollision",
    "HeadwaterError",
    "JarError",
    "JavaError",
    "KafkaSink",
    "LimitError",
    "Progress",
    "Query",
    "QueryError",
    "QueryProgress",
    "QuerySuspended",
    "RdfSyntaxError",
    "RegistrationError",
    "RunError",
    "RunSummary",
    "ServerError",
    "ServiceError",
    "ServiceOptions",
    "SettingError",
    "SinkError",
    "SlowConsumerError",
    "SourceError",
    "StateError",
    "StrictError",
    "StrictLoadError",
    "TemplateError",
    "UnsendableKey",
    "UpdateSyntaxError",
    "WebError",
    "WebhookSink",
    "WindowCapError",
    "__version__",
    "connect",
    "dataframe",
    "files",
    "kafka",
    "memory",
    "mqtt",
    "push",
    "tcp",
    "websocket",
]
