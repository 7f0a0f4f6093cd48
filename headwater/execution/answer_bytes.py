"""Answers as bytes, for the way from the worker that evaluates to the driver: plain values (`terms.packing`)."""

from __future__ import annotations

from headwater.algebra.plan import QueryKind
from headwater.execution.answer_batch import AnswerPart
from headwater.execution.answer_columns import AnswerColumns, WindowViews
from headwater.execution.answer_quality import AnswerQuality, QualityAlert
from headwater.execution.answers import Answer, WindowView
from headwater.language.stream_clauses import StreamOperator
from headwater.terms.ids.encoded_rows import EncodedRows
from headwater.terms.ids.term_texts import texts_from_plain, texts_to_plain
from headwater.terms.packing import Plain, pack, unpack


def pack_answers(answers: AnswerPart) -> bytes:
    """Answers one by one, or those of one query as columns, as bytes."""
    if isinstance(answers, list):
        return pack([list(map(_answer_to_plain, answers))])
    rows = answers.rows
    return pack(
        [
            _answer_to_plain(answers.head),
            answers.times,
            answers.offsets,
            rows.ids,
            texts_to_plain(rows.texts),
            [tuple(one) for one in answers.windows],
        ]
    )


def unpack_answers(data: bytes) -> AnswerPart:
    """What `pack_answers` packed."""
    head, *columns = unpack(data)
    if not columns:
        return list(map(_answer_from_plain, head))
    times, offsets, ids, texts, windows = columns
    rows = EncodedRows(ids, texts_from_plain(texts))
    return AnswerColumns(_answer_from_plain(head), times, offsets, rows, tuple(WindowViews(*one) for one in windows))


def _answer_to_plain(answer: Answer) -> Plain:
    return {
        "query": answer.query,
        "time": answer.time,
        "kind": answer.kind.value,
        "operator": answer.operator.value,
        "variables": answer.variables,
        "rows": list(answer.rows),
        "triples": answer.triples,
        "boolean": answer.boolean,
        "part": answer.part,
        "inputs": [(one.label, one.low, one.high, one.items) for one in answer.inputs],
        "watermark": answer.watermark,
        "quality": None if answer.quality is None else answer.quality.as_json(),
        "complete": answer.complete,
        "data_version": answer.data_version,
        "skipped": answer.skipped,
        "suspended": answer.suspended,
    }


def _answer_from_plain(value: Plain) -> Answer:
    return Answer(
        **{
            **value,
            "kind": QueryKind(value["kind"]),
            "operator": StreamOperator(value["operator"]),
            "rows": tuple(value["rows"]),
            "inputs": tuple(WindowView(*one) for one in value["inputs"]),
            "quality": _quality_from_plain(value["quality"]),
        }
    )


def _quality_from_plain(value: Plain) -> AnswerQuality | None:
    if value is None:
        return None
    return AnswerQuality(**{**value, "alerts": tuple(QualityAlert(**one) for one in value["alerts"])})
