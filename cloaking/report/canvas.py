"""Make matplotlib axes of a size in points, and draw texts, grid lines and ticks on them; no line runs under a text."""

import math
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cloaking.report.svg import INK
from cloaking.report.words import shorten

WIDTH, HEIGHT = 420, 180  # points
LABEL = 11  # points, the size of every text
LINE = 1.8  # points, the width of a curve
_FAINT = 0.22  # opacity of grid lines
_FIRM = 0.5  # opacity of base lines


def axes(*, left: float, right: float, top: float, bottom: float, height: float = HEIGHT) -> tuple[Figure, Axes]:
    """Return a figure of WIDTH by height points with bare axes inside these margins."""
    figure = Figure(figsize=(WIDTH / 72, height / 72))
    box = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - top - bottom) / height)
    bare = figure.add_axes(box)
    bare.spines[:].set_visible(False)
    bare.tick_params(which="both", length=0, labelsize=LABEL, labelcolor=INK, pad=6)
    bare.set(xticks=[], yticks=[])
    return figure, bare


def text(
    on: Axes, x: float, y: float, words: str, *, right: float = 0, up: float = 0, ha: str = "left", va: str = "baseline"
) -> None:
    """Write a text at a data point, moved right and up by these points."""
    on.annotate(
        words,
        (x, y),
        xytext=(right, up),
        textcoords="offset points",
        ha=ha,
        va=va,
        fontsize=LABEL,
        color=INK,
        parse_math=False,
        annotation_clip=False,
    )


def x_title(on: Axes, words: str) -> None:
    """Write under the tick labels what the x axis counts."""
    on.annotate(
        words,
        (0.5, 0),
        xycoords="axes fraction",
        xytext=(0, -34),
        textcoords="offset points",
        ha="center",
        fontsize=LABEL,
        color=INK,
    )


def base_line(on: Axes, *, vertical: bool = False) -> None:
    """Draw the base line of the bars."""
    draw = on.axvline if vertical else on.axhline
    draw(0, color=INK, alpha=_FIRM, linewidth=1, clip_on=False)


def y_grid(on: Axes, ticks: list[float], labels: list[str]) -> None:
    """Draw horizontal grid lines with their labels on the left."""
    on.set_yticks(ticks, labels)
    for tick in ticks:
        on.axhline(tick, color=INK, alpha=_FAINT, linewidth=1, clip_on=False, zorder=0)


def threshold_line(on: Axes, colour: str, *, x: float | None = None, y: float | None = None) -> None:
    """Draw the dashed line of a threshold across the axes, at an x or at a y."""
    style: dict[str, Any] = {"color": colour, "linewidth": 1.3, "dashes": (4, 3), "clip_on": False}
    if x is not None:
        on.axvline(x, **style)
    if y is not None:
        on.axhline(y, **style)


def width(words: str) -> float:
    """Return the most points that a text can take, that is in a wide font, since the reader's font is unknown."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" or char in "MW@%—…" for char in words)
    capitals = sum(char.isupper() and char not in "MW" for char in words)
    return LABEL * (1.02 * wide + 0.76 * capitals + 0.64 * (len(words) - wide - capitals))


def fit(words: str, points: float) -> str:
    """Return a text, without its middle if it would take more than these points."""
    length = len(words)
    while length > 1 and width(shorten(words, length)) > points:
        length -= 1
    return shorten(words, length) or "(empty)"


def ticks(top: float) -> list[float]:
    """Return three to five round values from 0 to at least `top`."""
    step = 10.0 ** math.floor(math.log10(top))
    step = next(step * part for part in (0.5, 1, 2, 2.5) if step * part * 4 >= top * 0.999)
    step = max(step, 1)  # counts are whole numbers
    return [step * place for place in range(math.ceil(top / step) + 1)]


def log_ticks(last: float) -> list[float]:
    """Return round values from 1 to `last` for a log axis, few enough to be read."""
    powers = range(math.floor(math.log10(last)) + 1)
    parts = (1, 2, 5) if len(powers) <= 3 else (1,)
    values = [float(part * 10**power) for power in powers for part in parts if part * 10**power <= last]
    return values[:: math.ceil(len(values) / 9)]


def apart(values: Sequence[float], points: float, last: float) -> list[float]:
    """Return the rising values whose labels fit under a log axis: all of them, or every second one, and so on.

    Args:
        values: where labels are possible, from the start of the axis.
        points: the width of the axis.
        last: the value at its end.
    """
    scale = points / max(math.log(last / values[0]), 1e-9)
    for step in range(1, len(values)):
        shown = values[::step]
        half = [width(f"{value:,.0f}") / 2 for value in shown]
        if all(
            math.log(right / left) * scale >= half[place] + half[place + 1] + 4
            for place, (left, right) in enumerate(pairwise(shown))
        ):
            return list(shown)
    return [values[0]]
