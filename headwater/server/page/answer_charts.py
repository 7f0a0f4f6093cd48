"""Which picture suits the answers of a query, and the picture as options of ECharts.

| the columns have | picture |
|---|---|
| a latitude and a longitude | a map: points on a plain background, as large as the first other number |
| a number | a line for each different text of the row, over time; or bars of the newest answer |
| none of these | how many rows each answer had, over time |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headwater.server.page.page_access import PageAnswer, PageCell, PageTable

_LATITUDES = frozenset({"lat", "latitude", "geolat"})
_LONGITUDES = frozenset({"long", "lon", "lng", "longitude", "geolong"})
_MOST_SERIES, _MOST_BARS, _MOST_POINTS = 12, 30, 500
_LINE_MILLISECONDS = 120_000
_LONG_IRI = re.compile(r"<[^<> ]*[/#:]([^<>/#: ]+)[/#]?>")
_INK, _LINES = "#8a93a0", "rgba(138,147,160,.25)"
PALETTE = (
    *("#2f7ed8", "#e8743b", "#19a979", "#945ecf", "#d5467a", "#13a4b4"),
    *("#b8a20c", "#6c8893", "#ee6868", "#2f6497", "#7fb03d", "#a05195"),
)


class ChartKind(Enum):
    """The pictures that there are."""

    MAP = "map"
    LINES = "lines"
    BARS = "bars"


@dataclass(frozen=True, slots=True)
class ChartColumns:
    """What the columns of an answer are good for, as places: coordinates, numbers, and texts that name a row."""

    latitude: int | None
    longitude: int | None
    numbers: tuple[int, ...]
    texts: tuple[int, ...]

    @property
    def has_coordinates(self) -> bool:
        return self.latitude is not None and self.longitude is not None


def find_columns(table: PageTable) -> ChartColumns:
    """What the columns of a table are good for; a column is a number where all its bound cells are."""
    numbers: list[int] = []
    texts: list[int] = []
    latitude = longitude = None
    for place, name in enumerate(table.columns):
        cells = [row[place] for row in table.rows if row[place] is not None]
        is_number = bool(cells) and all(_is_number(cell) for cell in cells)
        plain = name.lower().replace("_", "")
        if is_number and plain in _LATITUDES:
            latitude = place
        elif is_number and plain in _LONGITUDES:
            longitude = place
        elif is_number:
            numbers.append(place)
        else:
            texts.append(place)
    return ChartColumns(latitude, longitude, tuple(numbers), tuple(texts))


def possible_charts(table: PageTable) -> tuple[ChartKind, ...]:
    """The pictures that suit a table, the best first."""
    columns = find_columns(table)
    if columns.has_coordinates:
        return ChartKind.MAP, ChartKind.LINES, ChartKind.BARS
    return (ChartKind.LINES, ChartKind.BARS) if columns.numbers else (ChartKind.LINES,)


def chart_options(kind: ChartKind, answers: Sequence[PageAnswer], extent: MapExtent | None = None) -> dict[str, Any]:
    """The options of a picture of answers, the newest of which is the last."""
    filled = [one for one in answers if one.table.rows]
    columns = find_columns(filled[-1].table) if filled else ChartColumns(None, None, (), ())
    if kind is ChartKind.MAP and columns.has_coordinates:
        return _map_options(answers[-1], columns, extent or MapExtent())
    if kind is ChartKind.BARS and columns.numbers:
        return _bar_options(filled[-1], columns)
    return _line_options(answers, columns)


def _is_number(cell: PageCell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _name(row: Sequence[PageCell], columns: ChartColumns) -> str:
    return " ".join(str(row[place]) for place in columns.texts if row[place] is not None)


def _base(**more: Any) -> dict[str, Any]:
    axis = {"axisLine": {"lineStyle": {"color": _LINES}}, "axisLabel": {"color": _INK}, "splitLine": {"show": False}}
    return {
        "color": list(PALETTE),
        "grid": {"left": 12, "right": 20, "top": 36, "bottom": 12, "containLabel": True},
        "textStyle": {"fontFamily": "inherit", "color": _INK},
        "tooltip": {"trigger": "axis", "confine": True},
        "legend": {"type": "scroll", "top": 4, "textStyle": {"color": _INK}, "icon": "circle", "itemHeight": 8},
        "animationDuration": 200,
        "animationDurationUpdate": 300,
        "xAxis": axis,
        "yAxis": {**axis, "splitLine": {"lineStyle": {"color": _LINES}}},
        **more,
    }


def _line_options(answers: Sequence[PageAnswer], columns: ChartColumns) -> dict[str, Any]:
    series: dict[str, list[list[float]]] = {}
    for answer in answers:
        moment = answer.time / 1000
        if not columns.numbers:
            series.setdefault("rows", []).append([moment, len(answer.table.rows) + answer.table.left_out])
            continue
        for row in answer.table.rows:
            for place in columns.numbers:
                value = row[place]
                if isinstance(value, int | float) and len(columns.numbers) + len(columns.texts):
                    parts = [_name(row, columns)]
                    if len(columns.numbers) > 1 or not parts[0]:
                        parts.append(answer.table.columns[place])
                    series.setdefault(" · ".join(filter(None, parts)), []).append([moment, value])
    largest = sorted(series, key=lambda name: -len(series[name]))[:_MOST_SERIES]
    shown = _brief_names(largest)
    options = _base()
    options["xAxis"] = {**options["xAxis"], "type": "time"}
    options["yAxis"] = {**options["yAxis"], "type": "value"}
    options["legend"]["show"] = len(largest) > 1 or bool(columns.numbers)
    options["series"] = [
        {
            "name": shown[name],
            "type": "line",
            "showSymbol": len(series[name]) < 40,
            "symbolSize": 5,
            "lineStyle": {"width": 2},
            "data": series[name],
        }
        for name in sorted(largest)
    ]
    return options


def _brief_names(names: Sequence[str]) -> dict[str, str]:
    """Names with the last part of each IRI, where they are different by it."""
    brief = {name: _LONG_IRI.sub(r"\1", name) for name in names}
    return brief if len(set(brief.values())) == len(brief) else {name: name for name in names}


def _bar_options(answer: PageAnswer, columns: ChartColumns) -> dict[str, Any]:
    rows = answer.table.rows[:_MOST_BARS][::-1]
    options = _base()
    options["xAxis"] = {**options["yAxis"], "type": "value"}
    names = [_name(row, columns) or str(number) for number, row in enumerate(rows, start=1)]
    shown = _brief_names(names)
    options["yAxis"] = {**_base()["xAxis"], "type": "category", "data": [shown[name] for name in names]}
    options["legend"]["show"] = len(columns.numbers) > 1
    options["series"] = [
        {
            "name": answer.table.columns[place],
            "type": "bar",
            "barMaxWidth": 22,
            "itemStyle": {"borderRadius": 3},
            "data": [row[place] for row in rows],
        }
        for place in columns.numbers
    ]
    return options


@dataclass
class MapExtent:
    """The part of the world that a map shows. It only grows, so that points move and the map does not."""

    west: float = float("inf")
    south: float = float("inf")
    east: float = float("-inf")
    north: float = float("-inf")

    def include(self, longitude: float, latitude: float) -> None:
        """Make it large enough for a point."""
        self.west, self.east = min(self.west, longitude), max(self.east, longitude)
        self.south, self.north = min(self.south, latitude), max(self.north, latitude)

    def axes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """From where to where the axes go, with a margin."""
        if self.west > self.east:
            return (-180.0, 180.0), (-90.0, 90.0)
        width = max(self.east - self.west, 1e-4) * 0.12
        height = max(self.north - self.south, 1e-4) * 0.12
        across = (round(self.west - width, 6), round(self.east + width, 6))
        return across, (round(self.south - height, 6), round(self.north + height, 6))


def _map_options(answer: PageAnswer, columns: ChartColumns, extent: MapExtent) -> dict[str, Any]:
    assert columns.latitude is not None and columns.longitude is not None
    points: dict[str, dict[str, Any]] = {}
    size_place = columns.numbers[0] if columns.numbers else None
    sizes = [float(row[size_place] or 0) for row in answer.table.rows] if size_place is not None else []
    largest = max(sizes, default=1.0) or 1.0
    for row in answer.table.rows[:_MOST_POINTS]:
        latitude, longitude = row[columns.latitude], row[columns.longitude]
        if not (_is_number(latitude) and _is_number(longitude)):
            continue
        extent.include(float(longitude), float(latitude))  # type: ignore[arg-type]
        value = row[size_place] if size_place is not None else None
        name = _name(row, columns) or f"{latitude}, {longitude}"
        points[name] = {
            "name": name,
            "value": [longitude, latitude, value],
            "symbolSize": round(10 + 34 * (float(value or 0) / largest) ** 0.5, 1) if value is not None else 14,
        }
    across, along = extent.axes()
    options = _base()
    quiet = {"axisLabel": {"color": _INK, "hideOverlap": True, "showMinLabel": False, "showMaxLabel": False}}
    options["xAxis"] = {**options["yAxis"], **quiet, "type": "value", "min": across[0], "max": across[1]}
    options["yAxis"] = {**options["yAxis"], **quiet, "type": "value", "min": along[0], "max": along[1]}
    options["tooltip"] = {"trigger": "item", "confine": True}
    options["legend"]["show"] = False
    options["series"] = [
        {
            "name": answer.table.columns[size_place] if size_place is not None else "place",
            "type": "scatter",
            "itemStyle": {"opacity": 0.75},
            "label": {"show": len(points) <= 30, "formatter": "{b}", "position": "right", "color": _INK},
            "labelLayout": {"hideOverlap": True},
            "data": [points[name] for name in sorted(points)],
        }
    ]
    return options


def line_chart(points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """One quiet line over time; points are milliseconds since 1970 and values."""
    options = _base()
    options["grid"] = {"left": 8, "right": 12, "top": 12, "bottom": 4, "containLabel": True}
    options["legend"]["show"] = False
    options["xAxis"] = {**options["xAxis"], "type": "time"}
    if points:
        options["xAxis"]["min"] = points[-1][0] - _LINE_MILLISECONDS
    options["yAxis"] = {**options["yAxis"], "type": "value", "min": 0}
    line = {"type": "line", "showSymbol": False, "lineStyle": {"width": 2}, "areaStyle": {"opacity": 0.12}}
    options["series"] = [{**line, "name": "elements a second", "data": [list(point) for point in points]}]
    options["animation"] = False
    return options
