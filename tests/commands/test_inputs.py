"""What `--stream`, `--data` and `--template` mean, odd names included."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from headwater.commands.option_values import (
    group_sources,
    parse_data_option,
    parse_stream_option,
    parse_template_option,
)


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("http://city/gates=gates.tnq", ("http://city/gates", "gates.tnq")),
        ("gates=a=b.tnq", ("gates", "a=b.tnq")),
        ("<http://city/gates?kind=toll>=gates.tnq", ("http://city/gates?kind=toll", "gates.tnq")),
        ("<http://city/gates>=gates/*.tnq", ("http://city/gates", "gates/*.tnq")),
    ],
)
def test_a_stream_is_split_at_the_first_equals_sign_outside_the_iri(text: str, pair: tuple[str, str]) -> None:
    assert parse_stream_option(text) == pair


@pytest.mark.parametrize("text", ["gates.tnq", "=gates.tnq", "gates=", "<gates=gates.tnq"])
def test_half_a_pair_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="IRI=SOURCE"):
        parse_stream_option(text)


def test_sources_of_one_stream_are_gathered() -> None:
    assert group_sources(["a=1.tnq", "b=2.tnq", "a=3.tnq"]) == {"a": ["1.tnq", "3.tnq"], "b": ["2.tnq"]}


def test_data_with_and_without_a_graph(tmp_path: Path) -> None:
    plain = tmp_path / "city.ttl"
    plain.touch()
    odd = tmp_path / "city@night.ttl"
    odd.touch()
    pattern = str(tmp_path / "c*.ttl")
    assert parse_data_option(str(plain)) == (str(plain), None)
    assert parse_data_option(f"{plain}@http://city/map") == (str(plain), "http://city/map")
    assert parse_data_option(f"{plain}@<mailto:a@b>") == (str(plain), "mailto:a@b")
    assert parse_data_option(str(odd)) == (str(odd), None)
    assert parse_data_option(f"{odd}@map") == (str(odd), "map")
    assert parse_data_option(f"{pattern}@map") == (pattern, "map")
    assert parse_data_option("nowhere.ttl@map") == ("nowhere.ttl@map", None)


def test_a_template_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "row.template"
    file.touch()
    assert parse_template_option(f"gates={file}") == ("gates", file)
    with pytest.raises(typer.BadParameter, match="no file"):
        parse_template_option(f"gates={tmp_path / 'other'}")
