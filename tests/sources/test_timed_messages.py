"""Messages of timed N-Quads that are scanned together are the elements that the decoder makes of them one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sources.chunk_columns import columns_of, scan_timed_messages
from headwater.sources.kafka import KafkaReader
from headwater.sources.payloads import Decoder, ReceivedMessage
from headwater.terms.model import Element

LINES = (
    "1000\t<http://ex/a> <http://ex/p> <http://ex/b> .",
    '1000\t<http://ex/a> <http://ex/p> "21.5" <http://ex/graph> .',
    "1000\t<http://ex/b> <http://ex/p> _:x .",
    '2000\t<http://ex/a> <http://ex/p> "\\u00e9\\n" .',
    "# nothing",
    "",
)
lines = st.lists(st.sampled_from(LINES), max_size=5)


def decoded(payloads: list[bytes]) -> list[Element]:
    """What the decoder makes of messages whose offsets are 10, 20, 30 …, in partition 3."""
    found: list[Element] = []
    for place, payload in enumerate(payloads):
        position = (3, 10 * (place + 1))
        for one in Decoder.of("tnq").decode(ReceivedMessage(payload, 0, "topic[3]", position, {})):
            assert isinstance(one, Element)
            found.append(one)
    return found


@given(st.lists(st.tuples(lines, st.booleans()), max_size=6))
def test_they_are_the_elements_of_the_decoder(messages: list[tuple[list[str], bool]]) -> None:
    payloads = [("\n".join(some) + "\n" * ends).encode() for some, ends in messages]
    offsets = [10 * (place + 1) for place in range(len(payloads))]
    scanned = scan_timed_messages(payloads, 3, offsets)
    assert scanned is not None
    assert scanned.elements() == decoded(payloads)


@pytest.mark.parametrize(
    "odd", [None, b"1000\tnonsense", b"\xef\xbb\xbf" + LINES[0].encode(), LINES[0].encode() + b"\r"]
)
def test_messages_that_the_decoder_must_see_are_left_to_it(odd: bytes | None) -> None:
    good = LINES[0].encode()
    assert scan_timed_messages([good, odd, good], 0, [0, 1, 2]) is None


def test_records_of_several_partitions_and_a_bad_one() -> None:
    good, other = LINES[0].encode(), LINES[3].encode()
    values = [good, other, good, b"nonsense", good]
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([None] * 5, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["in"] * 5,
            "partition": pa.array([0, 1, 0, 1, 0], pa.int32()),
            "offset": pa.array([4, 7, 5, 8, 6], pa.int64()),
            "timestamp": pa.array([0] * 5, pa.timestamp("us", tz="UTC")),
        }
    )
    first, second = KafkaReader(("in",), Decoder.of("tnq")).chunks("http://ex/s", iter([batch]))
    assert (first.item_index, first.source, first.bad) == (0, "in[0]", ())
    assert columns_of(first).positions.tolist() == [[0, 4, 0], [0, 5, 0], [0, 6, 0]]
    # The scanner gives them back, and the decoder says what is wrong.
    assert [one.position for one in second.bad] == [(1, 8, 0)]
    assert columns_of(second).positions.tolist() == [[1, 7, 0]]
