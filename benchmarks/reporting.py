"""What all benchmarks share: clocks that stand a noisy machine, facts about the machine, JSON, plots.

Progress goes to stderr, so that the last line of stdout is the result. Ratios are measured slide by slide in turns:
what else the machine does then hits all sides alike.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
PLOTS = PROJECT / "docs" / "benchmarks"
INSTALL = ".venv/bin/python -m pip install --constraint constraints.txt --editable '.[bench]'"
PACKAGES = ("numpy", "numba", "llvmlite", "pyoxigraph", "polars", "pyarrow")

_CONTOURS = 10
"""About so many areas has a map."""

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot: lines by their names."""

    name: str
    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    logarithmic: bool = True

    def paint(self, axes: Any) -> None:
        """Draw the lines and their names."""
        for name, points in self.lines.items():
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=3, label=name)
        if self.logarithmic:
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()


@dataclass(frozen=True, slots=True)
class ContourFigure:
    """A map: a number, in some unit, at each point of a grid whose axes are logarithmic."""

    name: str
    title: str
    x: str
    y: str
    unit: str
    columns: Sequence[float]
    rows: Sequence[float]
    values: Sequence[Sequence[float]]
    """By row, then by column."""

    def paint(self, axes: Any) -> None:
        """Draw areas of similar numbers, and the scale that explains their colours."""
        areas = axes.contourf(self.columns, self.rows, self.values, levels=_CONTOURS)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.figure.colorbar(areas, ax=axes, label=self.unit)


@dataclass(slots=True)
class Findings:
    """What a part of a benchmark found: keys of the result, figures and maps."""

    values: dict[str, object] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    maps: list[ContourFigure] = field(default_factory=list)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def seconds(run: Callable[[], object]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def in_turns(runs: Mapping[str, Callable[[], object]], rounds: int, before: Callable[[], None]) -> dict[str, float]:
    """The median seconds of each of some runs, taken in turns; `before` prepares a round."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        before()
        for name, run in runs.items():
            times[name].append(seconds(run))
    return {name: statistics.median(taken) for name, taken in times.items()}


def rounded(number: float) -> float:
    """Four digits that count."""
    return float(f"{number:.4g}")


def quantile(sorted_values: Sequence[float], share: float) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def demand(*packages: str) -> None:
    """End with the one command that helps where a package is missing."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        sys.exit(f"The benchmark needs {' and '.join(missing)}. Run: {INSTALL}")


def machine() -> dict[str, object]:
    """Facts without which the numbers say little."""
    facts: dict[str, object] = {
        "cpu": _line_of("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory": _line_of("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": [round(load, 2) for load in os.getloadavg()],
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = None
    return facts


def _line_of(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)


def print_result(result: Mapping[str, object]) -> None:
    print(json.dumps(result), flush=True)


def draw(figures: Sequence[Figure | ContourFigure], folder: Path) -> None:
    """Write each figure as SVG whose text stays text; equal numbers give equal files."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "headwater", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        canvas, axes = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
        figure.paint(axes)
        axes.set_title(figure.title)
        axes.set_xlabel(figure.x)
        axes.set_ylabel(figure.y)
        canvas.savefig(folder / f"{figure.name}.svg", metadata={"Date": None, "Creator": None})
        pyplot.close(canvas)
