"""Messages of an MQTT broker: Mosquitto, say (sudo apt-get install mosquitto, then mosquitto -p 1883).

python examples/connectors/mqtt_messages.py [localhost:1883]

The checkpoint keeps what was received and how far it was read. Stop the script and start it again: the broker has kept
what came meanwhile.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time

from gates import STREAM, TEMPLATE, answered, messages
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

import headwater as hw

BROKER = sys.argv[1] if len(sys.argv) > 1 else "localhost:1883"


def publish() -> None:
    """What the gates would do."""
    host, _, port = BROKER.partition(":")
    gate = Client(CallbackAPIVersion.VERSION2, client_id="headwater-example-gate")
    gate.connect(host, int(port or 1883))
    gate.loop_start()
    time.sleep(1)
    for message in messages():
        gate.publish("city/gates", message, qos=1).wait_for_publish(10)
    gate.disconnect()
    gate.loop_stop()


with tempfile.TemporaryDirectory() as folder:
    engine = hw.Engine(in_process=True, checkpoint=folder)
    engine.stream(STREAM, hw.mqtt(BROKER, "city/+", template=TEMPLATE, client="headwater-example"))
    threading.Thread(target=publish, daemon=True).start()
    answered(engine, ticks=2)
