"""Summarise the counts per original: exact median and quantiles, hidden rates, classes.

All figures come from one Spark action over a histogram of the counts, so that the distances are computed once.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from cloaking.results import CLASSES, QUANTILES, CloakingClass, Interval, Notice, Summary
from cloaking.spark import warnings
from cloaking.spark.plan import Plan

BUCKET = 12  # bits: exact counts are kept only in the ranges of 2^12 = 4,096 counts that contain a wanted rank
LEVEL = 0.95
OVERALL = 0
_SUMS = ("nearest", "with_ties", "far")


def summarise(plan: Plan, counts: DataFrame) -> Summary:
    """Return the exact figures of a table of counts.

    Args:
        plan: what was counted: row counts, components, groups, and the quantiles and k wanted besides the usual ones.
        counts: one row per original: `group` (int, 0 if there are no groups), `closer`, `cloaking` (bigint).
    """
    avatars, components, groups, options = plan.rows.avatars, plan.columns.components, plan.groups, plan.options
    low, high, level = _median_interval(plan.rows.originals)
    shares = sorted({*QUANTILES, *options.quantiles})
    levels = _levels(avatars, options.at_least)
    rows = _figures(_tally(counts, avatars, bool(groups)), (low, high), shares, levels).collect()
    figures = {row["scope"]: row for row in rows}
    overall = figures[OVERALL]
    return _summary(
        overall,
        avatars,
        components,
        shares,
        levels,
        interval=Interval(level, *map(float, overall["ends"])),
        warnings=warnings.of_counts(overall["n"], overall["far"], overall["with_ties"]),
        groups={label: _summary(figures[n], avatars, components, shares, levels) for n, label in groups.items()},
    )


def _tally(counts: DataFrame, avatars: int, grouped: bool) -> DataFrame:
    """Count the originals per scope (0 for all, else a group's number) and cloaking."""
    tied = F.col("cloaking") - F.col("closer")
    tally = counts.groupBy("group", "cloaking").agg(
        F.count(F.lit(1)).alias("n"),
        F.count_if(F.col("closer") == 0).alias("nearest"),
        F.count_if(tied > 0).alias("with_ties"),
        # closer + tied / 2 > (avatars - 1) / 2, in integers
        F.count_if(F.col("closer") * 2 + tied > avatars - 1).alias("far"),
    )
    scopes = [F.lit(OVERALL), F.col("group")] if grouped else [F.lit(OVERALL)]
    return tally.select(F.explode(F.array(*scopes)).alias("scope"), "cloaking", "n", "nearest", "with_ties", "far")


def _figures(tally: DataFrame, ranks: Sequence[int], shares: Sequence[float], levels: Sequence[int]) -> DataFrame:
    """Return one row of figures per scope; `ends` are the cloakings at the given ranks (from 1, ascending).

    Spark's percentile keeps each distinct value in memory. Therefore it gets exact counts only from the buckets that
    contain a wanted rank; all counts of another bucket are replaced by its lowest count. This mapping is monotone, so
    the percentiles stay exact.
    """
    buckets = tally.groupBy("scope", F.shiftright("cloaking", BUCKET).alias("bucket")).agg(
        *(F.sum(name).alias(name) for name in ("n", *_SUMS)),
        F.sum(F.col("cloaking").cast("decimal(38,0)") * F.col("n")).alias("sum"),
        F.min("cloaking").alias("min"),
        F.max("cloaking").alias("max"),
        *(F.sum(F.when(F.col("cloaking") >= k, F.col("n")).otherwise(0)).alias(f"from_{k}") for k in levels),
        F.collect_list(F.struct("cloaking", "n")).alias("exact"),
        F.collect_list(F.when(F.col("nearest") > 0, F.struct("cloaking", "nearest"))).alias("guessed"),
    )
    first = F.array(F.struct(F.shiftleft("bucket", BUCKET).alias("cloaking"), "n"))
    once = F.col("place") == 0  # each exploded row repeats the bucket's figures; use them once
    return (
        buckets.withColumn("wanted", _holds_a_rank(ranks, shares))
        .select("*", F.posexplode(F.when(F.col("wanted"), F.col("exact")).otherwise(first)).alias("place", "part"))
        .withColumn("up_to", F.sum("part.n").over(Window.partitionBy("scope").orderBy("part.cloaking")))
        .groupBy("scope")
        .agg(
            F.percentile("part.cloaking", F.array(*map(F.lit, shares)), F.col("part.n")).alias("quantiles"),
            F.array(*(F.min(F.when(F.col("up_to") >= rank, F.col("part.cloaking"))) for rank in ranks)).alias("ends"),
            *(F.sum(F.when(once, F.col(name))).alias(name) for name in ("n", "sum", *_SUMS)),
            F.min("min").alias("min"),
            F.max("max").alias("max"),
            F.array(*(F.sum(F.when(once, F.col(f"from_{k}"))) for k in levels)).alias("at_least"),
            F.flatten(F.collect_list(F.when(once, F.col("guessed")))).alias("guessed"),
        )
    )


def _holds_a_rank(ranks: Sequence[int], shares: Sequence[float]) -> Column:
    """Return whether a bucket contains one of the ranks (from 1) or a rank from which a quantile is interpolated."""
    scope = Window.partitionBy("scope")
    end, total = F.sum("n").over(scope.orderBy("bucket")), F.sum("n").over(scope)
    positions = [(total - 1) * F.lit(share) for share in shares]  # as in Spark's percentile, from 0
    wanted = [F.lit(rank) for rank in ranks] + [f(place) + 1 for place in positions for f in (F.floor, F.ceil)]
    return reduce(or_, ((end - F.col("n") < rank) & (rank <= end) for rank in wanted))


def _levels(avatars: int, wanted: Sequence[int]) -> list[int]:
    """Return the k, ascending, for the counts of originals with at least k: 1 to 10, six per decade, those wanted."""
    tens = (10**power for power in range(1, len(str(avatars))))
    steps = (ten * step // 10 for ten in tens for step in (10, 15, 20, 30, 50, 70))
    reachable = (k for k in wanted if k < avatars)
    return sorted({*reachable, *range(1, 11), *(low for low, _ in CLASSES if low), *(k for k in steps if k < avatars)})


def _summary(
    row: Any,
    avatars: int,
    components: Sequence[str],
    shares: Sequence[float],
    levels: Sequence[int],
    interval: Interval | None = None,
    warnings: Sequence[Notice] = (),
    groups: Mapping[str, Summary] | None = None,
) -> Summary:
    n = row["n"]
    at_least = dict(zip(levels, row["at_least"], strict=True)) | {0: n}
    quantiles = dict(zip(shares, map(float, row["quantiles"]), strict=True))
    # If no avatar is closer than the own avatar, the attacker finds it with chance 1 / (1 + tied).
    caught = math.fsum(count / (1 + tied) for tied, count in map(tuple, row["guessed"]))
    return Summary(
        local_cloaking=quantiles[0.5],
        hidden_rate=100 * (n - caught) / n,  # not 1 - caught / n, whose rounding can miss a threshold that is met
        hidden_rate_ties_hide=100 * at_least[1] / n,
        hidden_rate_ties_expose=100 * (n - row["nearest"]) / n,
        originals=n,
        avatars=avatars,
        components=tuple(components),
        mean=float(row["sum"] / n),
        min=row["min"],
        max=row["max"],
        quantiles=quantiles,
        classes=tuple(
            CloakingClass(low, high, at_least[low] - (0 if high is None else at_least[high + 1]))
            for low, high in CLASSES
        ),
        at_least=tuple((k, size) for k, size in sorted(at_least.items()) if 0 < k <= row["max"]),
        originals_with_ties=row["with_ties"],
        interval=interval,
        warnings=tuple(warnings),
        groups=groups or {},
    )


def _median_interval(n: int) -> tuple[int, int, float]:
    """Return the ranks, from 1, of the order statistics that enclose the median, and the confidence level.

    With B binomial (n, 1/2) and l the largest rank with 2 P(B < l) <= 1 - LEVEL, the interval from the l-th smallest
    to the l-th largest count covers the median with 1 - 2 P(B < l) (David and Nagaraja, Order Statistics, 7.1).
    Under 6 originals no rank reaches LEVEL; then the interval is from smallest to largest, at its actual level.
    """
    fits, beyond = 0, n // 2 + 1  # P(B < rank) is small enough for `fits`, too large for `beyond`
    while beyond - fits > 1:
        rank = (fits + beyond) // 2
        fits, beyond = (rank, beyond) if 2 * _below_half(rank - 1, n) <= 1 - LEVEL else (fits, rank)
    rank = max(1, fits)
    return rank, n + 1 - rank, 1 - 2 * _below_half(rank - 1, n)


def _below_half(k: int, n: int) -> float:
    """Return P(B <= k) for B binomial (n, 1/2) and k below n / 2, summed from the largest term downwards."""
    log_term = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
    total, ratio = 0.0, 1.0
    while k >= 0 and ratio > 1e-17:
        total += ratio
        ratio *= k / (n - k + 1)
        k -= 1
    return math.exp(log_term) * total
