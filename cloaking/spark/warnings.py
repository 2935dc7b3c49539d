"""Warn about linked rows and counts that are valid but suspicious.

The aggregates over rows are collected by a Spark observation during the counting, without an extra pass.
"""

import math
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from cloaking.results import Notice
from cloaking.spark.link import Columns

SUSPECT_SHARE = 0.1  # correct links stay under 0.03, half-shuffled ones are above 0.24
SUSPECT_CHANCE = 0.001
MANY = 0.1  # of the originals: ties, own avatars equal to their original, avatars that repeat others
FEW_DISTINCT = 0.5  # share of all rows: warn if fewer rows are distinct
COARSE = 1e-6  # of the distance to the own avatar: a larger tolerance ties distances that differ
OUTSIDE = 0.5  # of a component's range: avatars that are means of originals stay inside, except for rounding
_DISTINCT_ERROR = 0.03  # relative error of the distinct counts, well below MANY; a smaller one takes long to plan


def observed(columns: Columns, tie_tolerance: float) -> list[Column]:
    """Return the aggregates to observe over linked rows, for `of_rows`."""
    x, y = ([F.col(name) for name in names] for names in (columns.originals, columns.avatars))
    distance = F.sqrt(_squares([a - b for a, b in zip(x, y, strict=True)]))
    tau = tie_tolerance * (F.sqrt(_squares(x)) + F.sqrt(_squares(y)))
    differs = distance > tau
    ranges = [
        function(column).alias(f"{name}_{k}")
        for side, names in (("original", x), ("own", y))
        for name, function in ((f"{side}_low", F.min), (f"{side}_high", F.max))
        for k, column in enumerate(names)
    ]
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~differs).alias("equal"),
        F.count_if(differs & (tau > COARSE * distance)).alias("coarse"),
        F.approx_count_distinct(F.xxhash64(*x), _DISTINCT_ERROR).alias("originals"),
        F.approx_count_distinct(F.xxhash64(*y), _DISTINCT_ERROR).alias("avatars"),
        *ranges,
    ]


def of_rows(seen: Mapping[str, Any] | None, columns: Columns) -> tuple[Notice, ...]:
    """Return warnings about the rows: coarse coordinates, repeated rows, avatars outside the originals' range.

    `seen` is None if Spark dropped the observation; the warning then says so.
    """
    if seen is None:
        return (Notice("not_observed", "Spark dropped its observation; warnings about the coordinates may be missing"),)
    n, notices = seen["rows"], []
    if seen["coarse"] > (n - seen["equal"]) / 2:
        notices.append(
            Notice(
                "far_from_origin",
                f"for {seen['coarse']:,} of {n:,} originals the tolerance of a tie is over a millionth of the distance "
                "to their own avatar; centre the coordinates, or lower --tie-tolerance",
            )
        )
    if seen["originals"] < FEW_DISTINCT * n:
        message = f"about {seen['originals']:,} different rows among {n:,} originals; ties decide the figures"
        notices.append(Notice("low_distinct", message))
    if seen["equal"] > MANY * n:
        message = f"{seen['equal']:,} of {n:,} originals have an avatar equal to themselves in the projected space"
        notices.append(Notice("avatars_equal_originals", message))
    if seen["avatars"] < (1 - MANY) * n and seen["avatars"] < (1 - MANY) * seen["originals"]:
        message = f"about {seen['avatars']:,} different avatars of {n:,} originals, fewer than different originals"
        notices.append(Notice("repeated_avatars", message))
    outside = [name for k, name in enumerate(columns.components) if _outside(seen, k)]
    if outside:
        message = (
            f"avatars reach far beyond the range of the originals in {', '.join(outside)}; both tables must come from "
            "one projection, fitted on the originals"
        )
        notices.append(Notice("avatars_out_of_range", message))
    return tuple(notices)


def of_counts(n: int, far: int, ties: int) -> tuple[Notice, ...]:
    """Return warnings about the counts.

    Args:
        n: the number of originals.
        far: the number of those with closer + tied / 2 above half of the other avatars.
        ties: the number of those with avatars tied with their own.
    """
    notices = []
    if _more_than_chance(far, n):
        notices.append(
            Notice(
                "link_suspect",
                f"{far:,} of {n:,} originals are no nearer to their own avatar than to most others: avatars seem to be "
                "linked to the wrong originals, which looks like perfect privacy; check how the rows were paired",
            )
        )
    if ties > MANY * n:
        message = f"{ties:,} of {n:,} originals have avatars exactly as near as their own; see both bounds"
        notices.append(Notice("many_ties", message))
    return tuple(notices)


def _squares(components: list[Column]) -> Column:
    total = components[0] * components[0]
    for component in components[1:]:
        total = total + component * component
    return total


def _outside(seen: Mapping[str, Any], k: int) -> bool:
    """Return whether the avatars' range of component k exceeds the originals' by more than OUTSIDE of its width."""
    low, high = seen[f"original_low_{k}"], seen[f"original_high_{k}"]
    beyond = max(low - seen[f"own_low_{k}"], seen[f"own_high_{k}"] - high)
    return bool(beyond > OUTSIDE * (high - low) and beyond > 0)


def _more_than_chance(far: int, n: int) -> bool:
    """Return whether `far` of n is more than SUSPECT_SHARE allows by chance (Chernoff bound, valid for any n)."""
    share = far / n
    if share <= SUSPECT_SHARE:
        return False
    divergence = share * math.log(share / SUSPECT_SHARE)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - SUSPECT_SHARE))
    return n * divergence >= math.log(1 / SUSPECT_CHANCE)
