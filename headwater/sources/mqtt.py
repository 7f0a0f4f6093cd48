"""MQTT topics as streams: a subscription whose messages go into a spool before they are acknowledged.

    mqtt("localhost", "sensors/+/temperature", template="reading.template", format="text")
    mqtt("mqtts://broker", "observations", format="jsonld")     with HEADWATER_AUTH_BROKER="mqtts://broker Basic user:…"

With QoS 1 (the usual) and a client name that stays the same, a broker keeps what comes while nobody is connected, and
sends again what was not acknowledged: nothing is lost, and a message that was in the spool when its acknowledgement got
lost comes twice. A template may use `{_topic}`, with format `text` also `{value}`, the message itself.
"""

from __future__ import annotations

import queue
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from headwater.egress.credentials import Credentials
from headwater.errors import SettingError
from headwater.sources.payloads import Decoder
from headwater.sources.receivers import INSTALL_CONNECTORS, NetworkSource, Receiver, Timeouts, make_received_source
from headwater.sources.source import SourceError
from headwater.sources.spool import KEEP_SECONDS, Spool
from headwater.terms.arguments import check_text
from headwater.terms.template import RowTemplate

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_PORT, _TLS_PORT = 1883, 8883
_MOST_WAITING = 10_000
_MOST_AT_ONCE = 1_000
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class MqttBroker:
    """The address of a broker, and the user who connects."""

    host: str
    port: int
    has_tls: bool = False
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)

    @classmethod
    def at(cls, server: str) -> MqttBroker:
        """The broker of `host`, `host:port` or `mqtt(s)://user:password@host:port`."""
        parts = urlsplit(server if "//" in server else f"mqtt://{server}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or port == -1:
            raise SettingError(
                f"{server.rpartition('@')[2]!r} is no address of an MQTT broker: expected host:port or mqtt://host:port"
            )
        tls = parts.scheme == "mqtts"
        user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
        return cls(parts.hostname, port or (_TLS_PORT if tls else _PORT), tls, user, password)

    def login(self) -> tuple[str, str | None] | None:
        """Who connects: the user of the address, or the one that the environment holds for this broker."""
        if self.user is not None:
            return self.user, self.password
        scheme = "mqtts" if self.has_tls else "mqtt"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return Credentials.from_environment(f"{scheme}://{host}:{self.port}").basic


class MqttReceiver(Receiver):
    """A subscription; messages are acknowledged when they are in the spool."""

    def __init__(self, broker: MqttBroker, topic: str, qos: int, client: str, decoder: Decoder, spool: Spool) -> None:
        super().__init__(f"mqtt://{broker.host}:{broker.port}/{topic}", decoder, spool)
        self._broker = broker
        self._topic = topic
        self._qos = qos
        self._name = client
        self._messages: queue.Queue[tuple[int, Any]] = queue.Queue(_MOST_WAITING)
        """Messages that are not in the spool yet, each with the number of the connection over which it came."""
        self._connections = 0

    def receive(self) -> None:
        client = self._make_client()
        try:
            client.connect_async(self._broker.host, self._broker.port)
            # The client's own thread connects, and connects again when the connection breaks.
            client.loop_start()
            while not self.stopping.is_set():
                self._store_waiting(client)
            while not self._messages.empty():
                self._store_waiting(client)
        finally:
            client.disconnect()
            client.loop_stop()

    def _make_client(self) -> Client:
        """A client of the broker that subscribes at each connection and acknowledges by hand."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._name,
            clean_session=False,
            manual_ack=True,
        )
        if (login := self._broker.login()) is not None:
            client.username_pw_set(*login)
        if self._broker.has_tls:
            client.tls_set()
        client.reconnect_delay_set(min_delay=1, max_delay=30)

        def subscribe(client: Client, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if reason.is_failure:
                self.note_trouble(f"the broker refuses: {reason}")
                return
            self._connections += 1
            self.note_connection()
            client.subscribe(self._topic, self._qos)

        def note_loss(_client: Client, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if not self.stopping.is_set():
                self.note_trouble(f"the connection was lost: {reason}")

        def note_failure(_client: Client, _data: Any) -> None:
            self.note_trouble("the broker does not answer")

        client.on_connect = subscribe
        client.on_disconnect = note_loss
        client.on_connect_fail = note_failure
        client.on_message = lambda _client, _data, message: self._enqueue(message)
        return client

    def _enqueue(self, message: Any) -> None:
        """Called in the client's thread, which waits here while too many messages are not in the spool yet."""
        while not self.stopping.is_set():
            try:
                self._messages.put((self._connections, message), timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue

    def _store_waiting(self, client: Client) -> None:
        """Write the waiting messages into the spool, then acknowledge them."""
        try:
            messages = [self._messages.get(timeout=_POLL_SECONDS)]
        except queue.Empty:
            return
        while len(messages) < _MOST_AT_ONCE:
            try:
                messages.append(self._messages.get_nowait())
            except queue.Empty:
                break
        self.store([(bytes(message.payload), _cells(message.topic)) for _, message in messages])
        for connection, message in messages:
            # Over another connection its number may be that of another message, which is not in the spool.
            if connection == self._connections:
                client.ack(message.mid, message.qos)


def _cells(topic: str) -> Mapping[str, str]:
    return {"_topic": topic}


def mqtt(
    server: str,
    topic: str,
    *,
    format: str | None = None,
    template: RowTemplate | str | Path | None = None,
    time: str | None = None,
    qos: int = 1,
    client: str | None = None,
    spool: str | Path | None = None,
    keep: float = KEEP_SECONDS,
    connect_timeout: int | str | None = None,
    read_timeout: int | str | None = None,
) -> NetworkSource:
    """A stream of MQTT messages; `topic` may have the wildcards `+` and `#`.

    `format`, `template` and `time` say what a message means (see `headwater.sources.payloads`). `client`
    is the name under which the broker keeps messages while nobody is connected; by default it is made from the topic,
    and two runs that read one topic at the same time need different ones. `spool` is the folder for what was received,
    by default in the checkpoint; `keep` is for how many seconds files are kept there that were read. The run ends with
    an error if there is no connection for the time `connect_timeout`, or nothing arrives for the time `read_timeout`;
    without them it tries and waits for ever.
    """
    try:
        import paho.mqtt.client  # noqa: F401
    except ImportError:
        raise SourceError(f"MQTT needs the package paho-mqtt. {INSTALL_CONNECTORS}") from None
    if qos not in (0, 1, 2):
        raise SettingError(f"qos must be 0, 1 or 2, and it is {qos}")
    check_text("topic", topic)
    broker = MqttBroker.at(check_text("server", server))
    decoder = Decoder.of(format, template=template, time=time)
    name = client or f"headwater-{blake2b(topic.encode(), digest_size=6).hexdigest()}"

    timeouts = Timeouts.of(connect_timeout, read_timeout)

    def make(decoder: Decoder, folder: Spool) -> Receiver:
        return MqttReceiver(broker, topic, qos, name, decoder, folder)

    return make_received_source(f"mqtt://{broker.host}:{broker.port}/{topic}", decoder, make, spool, keep, timeouts)
