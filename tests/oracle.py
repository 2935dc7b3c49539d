"""Count closer and tied avatars and compute the figures by the definition, as the reference of the tests.

Slow on purpose: a double loop over Python floats, where every operation rounds once and in the order it is written,
and the same loop over fractions, where nothing rounds. This module must not import the package under test.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Rows = Sequence[Sequence[float]]

SMALLEST_UNSCALED = math.ldexp(1.0, -400)
LARGEST_UNSCALED = math.ldexp(1.0, 400)


class Bounds(NamedTuple):
    """The bounds that an original and its own avatar set for all other avatars."""

    exponent: int
    original: Sequence[float]
    lower: float
    upper: float


class Figures(NamedTuple):
    """The summary of one data set; the rates are in percent."""

    local_cloaking: float
    hidden_rate: float
    hidden_rate_ties_hide: float
    hidden_rate_ties_expose: float


def count(
    avatars: npt.ArrayLike, originals: npt.ArrayLike, own: npt.ArrayLike, tie_tolerance: float = 1e-12
) -> tuple[Counts, Counts]:
    """Count avatars (m, ncp) nearer to each original (n, ncp) than its own (n, ncp), and those no farther: (n,) each.

    Ties count as within, and so does the own avatar if it is among the avatars.
    """
    closer, within = [], []
    avatar_rows = _floats(avatars)
    for original, own_avatar in zip(_floats(originals), _floats(own), strict=True):
        below, up_to = _count_one(avatar_rows, original, own_avatar, tie_tolerance)
        closer.append(below)
        within.append(up_to)
    return np.array(closer, dtype=np.int64), np.array(within, dtype=np.int64)


def fast_count(
    avatars: npt.ArrayLike, originals: npt.ArrayLike, own: npt.ArrayLike, tie_tolerance: float = 1e-12
) -> tuple[Counts, Counts]:
    """The counts of `count`, with the loop over the avatars as numpy operations.

    Each of them rounds once, in the same order as in `count`.
    """
    closer, within = [], []
    columns = np.asarray(avatars).astype(np.float64).T
    for original, own_avatar in zip(_floats(originals), _floats(own), strict=True):
        exponent, x, lower, upper = bounds(original, own_avatar, tie_tolerance)
        squares = np.zeros(columns.shape[1])
        with np.errstate(over="ignore", under="ignore"):
            for value, column in zip(x, columns, strict=True):
                squares = squares + np.square(value - np.ldexp(column, -exponent))
        closer.append(np.count_nonzero(squares < lower))
        within.append(np.count_nonzero(squares <= upper))
    return np.array(closer, dtype=np.int64), np.array(within, dtype=np.int64)


def cloaking(
    avatars: npt.ArrayLike,
    originals: npt.ArrayLike,
    own_rows: Iterable[int] | None = None,
    tie_tolerance: float = 1e-12,
) -> tuple[Counts, Counts, Counts]:
    """Return closer, tied and cloaking of each original, counted over the avatars other than its own: (n,) each.

    `own_rows` holds the row of each original's own avatar; without it, row i of avatars belongs to row i of originals.
    """
    avatar_rows, original_rows = _floats(avatars), _floats(originals)
    links = range(len(avatar_rows)) if own_rows is None else [int(row) for row in own_rows]
    closer, tied = [], []
    for original, row in zip(original_rows, links, strict=True):
        others = avatar_rows[:row] + avatar_rows[row + 1 :]
        below, up_to = _count_one(others, original, avatar_rows[row], tie_tolerance)
        closer.append(below)
        tied.append(up_to - below)
    closer_counts, tied_counts = np.array(closer, dtype=np.int64), np.array(tied, dtype=np.int64)
    return closer_counts, tied_counts, closer_counts + tied_counts


def exact_count(
    avatars: Iterable[Iterable[float | Fraction]],
    originals: Iterable[Iterable[float | Fraction]],
    own: Iterable[Iterable[float | Fraction]],
) -> tuple[Counts, Counts]:
    """Return the counts of `count` in exact arithmetic, where only equal distances are ties.

    It agrees with `count` wherever no two unequal distances lie within the tolerance of each other, as on grids.
    """
    closer, within = [], []
    avatar_rows = _fractions(avatars)
    for original, own_avatar in zip(_fractions(originals), _fractions(own), strict=True):
        bound = _exact_squared_distance(original, own_avatar)
        distances = [_exact_squared_distance(original, avatar) for avatar in avatar_rows]
        closer.append(sum(distance < bound for distance in distances))
        within.append(sum(distance <= bound for distance in distances))
    return np.array(closer, dtype=np.int64), np.array(within, dtype=np.int64)


def figures(closer: Iterable[int], tied: Iterable[int]) -> Figures:
    """Return Local Cloaking and the three rates of the counts, exact until the last step."""
    pairs = [(int(c), int(t)) for c, t in zip(closer, tied, strict=True)]
    n = len(pairs)
    found = sum((Fraction(1, 1 + t) for c, t in pairs if c == 0), Fraction(0))
    return Figures(
        local_cloaking=float(statistics.median([Fraction(c + t) for c, t in pairs])),
        hidden_rate=float(100 * (1 - found / n)),
        hidden_rate_ties_hide=float(Fraction(100 * sum(c + t >= 1 for c, t in pairs), n)),
        hidden_rate_ties_expose=float(Fraction(100 * sum(c >= 1 for c, _ in pairs), n)),
    )


def quantile(counts: Iterable[int], p: float | str) -> float:
    """Return the p-quantile of the counts by linear interpolation between the two ranks around (n - 1) p.

    `p` is read as the decimal that is written: 0.05 is 1/20.
    """
    ordered = sorted(int(c) for c in counts)
    position = Fraction(str(p)) * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (position - below) * (ordered[above] - ordered[below]))


def bounds(original: Sequence[float], own: Sequence[float], tie_tolerance: float = 1e-12) -> Bounds:
    """Return the scaling exponent of an original, the scaled original, and the squared distances that decide."""
    exponent = _exponent(original, own)
    x, y = _scaled(original, exponent), _scaled(own, exponent)
    s = _squared_distance(x, y)
    d = math.sqrt(s)
    tau = tie_tolerance * (_norm(x) + _norm(y))
    lower = 0.0 if d <= tau else (s - 2.0 * d * tau) + tau * tau
    upper = (s + 2.0 * d * tau) + tau * tau
    return Bounds(exponent, x, lower, upper)


def _count_one(avatars: Rows, original: Sequence[float], own: Sequence[float], tie_tolerance: float) -> tuple[int, int]:
    exponent, x, lower, upper = bounds(original, own, tie_tolerance)
    closer = within = 0
    for avatar in avatars:
        s = _squared_distance(x, _scaled(avatar, exponent))
        closer += s < lower
        within += s <= upper
    return closer, within


def _exponent(original: Sequence[float], own: Sequence[float]) -> int:
    largest = max(abs(value) for row in (original, own) for value in row)
    if largest == 0.0 or SMALLEST_UNSCALED <= largest <= LARGEST_UNSCALED:
        return 0
    return math.frexp(largest)[1]


def _scaled(row: Sequence[float], exponent: int) -> Sequence[float]:
    return row if exponent == 0 else [_times_power_of_two(value, -exponent) for value in row]


def _times_power_of_two(value: float, power: int) -> float:
    """Return value * 2^power, rounded once, although 2^power itself may not be a float; infinite if too large."""
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(math.inf, value)


def _squared_distance(x: Sequence[float], y: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(x, y, strict=True):
        difference = a - b
        total = total + difference * difference
    return total


def _norm(x: Sequence[float]) -> float:
    total = 0.0
    for value in x:
        total = total + value * value
    return math.sqrt(total)


def _exact_squared_distance(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), Fraction(0))


def _floats(rows: npt.ArrayLike) -> list[list[float]]:
    values: list[list[float]] = np.asarray(rows).astype(np.float64).tolist()
    return values


def _fractions(rows: Iterable[Iterable[float | Fraction]]) -> list[list[Fraction]]:
    return [[value if isinstance(value, Fraction) else Fraction(float(value)) for value in row] for row in rows]
