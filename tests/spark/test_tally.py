"""Counts -> figures, on tables of counts made by hand, and against the oracle where they are too many for a hand."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pandas as pd
import pytest

from cloaking.options import Options
from cloaking.spark import tally as module
from cloaking.spark.checks import Rows
from cloaking.spark.link import Columns
from cloaking.spark.plan import Plan, Spread
from cloaking.spark.tally import summarise

NAMES = ("dim_1", "dim_2")


def summarised(spark, closer, tied, avatars=1000, group=0, groups=None, at_least=()):
    closer, tied = np.asarray(closer, dtype=np.int64), np.asarray(tied, dtype=np.int64)
    rows = pd.DataFrame({"group": group, "closer": closer, "tied": tied, "cloaking": closer + tied})
    counts = spark.createDataFrame(rows.astype({"group": "int32"}))
    plan = Plan(
        originals=counts,
        avatars=counts,
        columns=Columns(("id",), ("id",), NAMES),
        rows=Rows(len(rows), avatars, ()),
        groups=groups or {},
        options=Options(at_least=tuple(at_least)),
        spread=Spread("broadcast", 1),
    )
    return summarise(plan, counts)


def test_figures_by_hand(spark):
    # found for certain, one of 2, one of 4, not at all: 1 - (1 + 1/2 + 1/4 + 0) / 4
    found = summarised(spark, [0, 0, 0, 5], [0, 1, 3, 1])
    assert (found.local_cloaking, found.mean, found.min, found.max) == (2.0, 2.5, 0, 6)
    assert found.hidden_rate == 56.25
    assert found.hidden_rate_ties_hide == 75.0
    assert found.hidden_rate_ties_expose == 25.0
    assert (found.originals, found.avatars, found.ncp, found.components) == (4, 1000, 2, NAMES)
    assert found.originals_with_ties == 3


def test_one_original_has_its_own_count_for_every_figure(spark):
    found = summarised(spark, [7], [0])
    assert (found.local_cloaking, found.mean, found.min, found.max) == (7.0, 7.0, 7, 7)
    assert set(found.quantiles.values()) == {7.0}
    assert found.hidden_rate == found.hidden_rate_ties_hide == found.hidden_rate_ties_expose == 100.0


def test_the_median_of_an_even_number_is_the_mean_of_the_two_middle_counts(spark):
    assert summarised(spark, [100, 3, 2, 1], [0] * 4).local_cloaking == 2.5


def test_quantiles_by_hand(spark):
    # 21 counts, 0 to 20: the p-quantile is 20 p
    assert summarised(spark, range(21), [0] * 21).quantiles == {0.05: 1, 0.25: 5, 0.5: 10, 0.75: 15, 0.95: 19}
    # 4 counts: ranks 0.15, 0.75, 1.5, 2.25, 2.85 from 0
    found = summarised(spark, [10, 20, 40, 80], [0] * 4).quantiles
    assert found == pytest.approx({0.05: 11.5, 0.25: 17.5, 0.5: 30, 0.75: 50, 0.95: 74})


def test_classes_include_both_ends(spark):
    edges = [0, 1, 2, 3, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 10**12]
    found = [(c.low, c.high, c.originals) for c in summarised(spark, edges, [0] * len(edges), 2 * 10**12).classes]
    assert found == [
        (0, 0, 1), (1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 9, 2), (10, 19, 2), (20, 49, 2), (50, 99, 2), (100, None, 2),
    ]  # fmt: skip


def test_a_rate_that_is_a_round_number_is_that_number(spark):
    """17 of 50 are found: 100 * (1 - 17 / 50) would be 65.99999999999999, below a threshold of 66."""
    assert summarised(spark, [0] * 17 + [1] * 33, [0] * 50).hidden_rate == 66.0


def test_a_class_without_originals_is_there_with_none(spark):
    assert [c.originals for c in summarised(spark, [3], [0]).classes] == [0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_how_many_have_at_least_k_is_counted_at_each_k_up_to_10_then_at_six_a_decade_up_to_the_largest(spark):
    closer = [0, 3, 15, 29, 29, 150, 1000, 1000]
    found = summarised(spark, closer, [0] * 8, avatars=1001).at_least
    assert dict(found) == dict.fromkeys((1, 2, 3), 7) | dict.fromkeys((*range(4, 11), 15), 6) | {20: 5} | dict.fromkeys(
        (30, 50, 70, 100, 150), 3
    ) | dict.fromkeys((200, 300, 500, 700, 1000), 2)
    assert list(found) == sorted(found)
    assert summarised(spark, [2, 2], [0, 0]).at_least == ((1, 2), (2, 2))
    asked = summarised(
        spark, [0, 3, 15, 29, 29, 150, 1000, 1000], [0] * 8, avatars=1001, at_least=(29, 12, 3, 31, 10**19)
    )
    assert dict(asked.at_least) == dict(found) | {29: 5, 12: 6, 31: 3}
    assert summarised(spark, [0], [0]).at_least == ()


@pytest.mark.parametrize("rest", [0, 20_000], ids=["few originals", "many distinct counts"])
def test_the_attacker_picks_among_equals_wherever_the_counts_lie(spark, rest):
    tied = [0, 4_095, 4_096, 10_000, 10_000]
    closer = [0] * 5 + list(range(1, rest + 1))
    found = summarised(spark, closer, tied + [0] * rest, avatars=10**6)
    caught = 1 + Fraction(1, 4_096) + Fraction(1, 4_097) + Fraction(2, 10_001)
    assert found.hidden_rate == pytest.approx(float(100 * (1 - caught / len(closer))), rel=1e-14)
    assert found.originals_with_ties == 4


@pytest.mark.parametrize("seed", range(3))
def test_far_more_distinct_counts_than_one_bucket_are_exact(spark, seed):
    rng = np.random.default_rng(seed)
    # all over the range; a heap at the edges of a bucket; half of them one count
    counts = [
        rng.integers(0, 10**9, 20_000),
        np.concatenate([rng.integers(4_090, 4_102, 9_000), rng.integers(0, 10**9, 10_001)]),
        np.concatenate([np.full(10_000, 8_192), rng.integers(0, 20_000, 10_003)]),
    ][seed]
    found = summarised(spark, counts, np.zeros_like(counts), avatars=10**10)
    for p, value in found.quantiles.items():
        assert value == pytest.approx(oracle.quantile(counts, p), rel=1e-15), p
    assert found.local_cloaking == np.median(counts)
    assert (found.min, found.max) == (counts.min(), counts.max())
    assert found.mean == pytest.approx(counts.sum() / len(counts), rel=1e-15)
    low, high, _ = _ranks_and_level(len(counts))
    ordered = np.sort(counts)
    assert (found.interval.low, found.interval.high) == (ordered[low - 1], ordered[high - 1])


def test_small_counts_of_many_originals_agree_with_the_oracle(spark):
    rng = np.random.default_rng(3)
    closer, tied = rng.geometric(0.08, 3_001) - 1, rng.integers(0, 3, 3_001)
    found = summarised(spark, closer, tied)
    expected = oracle.figures(closer, tied)._asdict()
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-13)
    assert found.quantiles == pytest.approx({p: oracle.quantile(closer + tied, p) for p in found.quantiles}, rel=1e-15)


def _ranks_and_level(n):
    """The ranks from 1 that enclose the median with at least 95 %, or the ends, and with how much, in whole numbers."""
    below, term, rank = 0, 1, 0  # 2^n times P(B < rank) and P(B = rank), for B binomial (n, 1/2)
    while rank < n and 2 * (below + term) * 20 <= 2**n:
        below, term, rank = below + term, term * (n - rank) // (rank + 1), rank + 1
    if rank == 0:
        below, rank = 1, 1
    return rank, n + 1 - rank, float(1 - Fraction(2 * below, 2**n))


@pytest.mark.parametrize(
    ("n", "low", "high", "level"),
    [
        (1, 1, 1, 0.0),
        (2, 1, 2, 0.5),
        (5, 1, 5, 0.9375),
        (6, 1, 6, 0.96875),
        (9, 2, 8, 0.9609375),
        (10, 2, 9, 0.978515625),
        (25, 8, 18, 0.95671475),
        (100, 40, 61, 0.96479980),
    ],
)
def test_the_interval_of_the_median_is_between_two_ranks(spark, n, low, high, level):
    values = [rank * rank for rank in range(1, n + 1)]
    interval = summarised(spark, values[::-1], [0] * n, avatars=10**6).interval
    assert (interval.low, interval.high) == (low * low, high * high)
    assert interval.level == pytest.approx(level, abs=1e-8)


def test_the_ranks_of_the_interval_are_right_for_every_number_of_originals():
    for n in [*range(1, 600), 1_001, 2_139, 20_000]:
        low, high, level = _ranks_and_level(n)
        assert module._median_interval(n) == (low, high, pytest.approx(level, abs=1e-10)), n


def test_the_level_is_right_for_more_originals_than_binomials_can_be_summed_for():
    for n in (10**6, 10**8 + 1):
        low, high, level = module._median_interval(n)
        assert low + high == n + 1
        assert 0.95 <= level < 0.951
        assert low == pytest.approx(n / 2 - 1.96 / 2 * math.sqrt(n), abs=0.002 * math.sqrt(n) + 2)


def codes(found):
    return {notice.code for notice in found.warnings}


def test_shuffled_links_are_suspect_and_honest_ones_are_not(spark):
    rng = np.random.default_rng(5)
    shuffled = rng.integers(0, 1_000, 1_000)
    assert "link_suspect" in codes(summarised(spark, shuffled, [0] * 1_000))
    honest = np.minimum(rng.geometric(1 / 40, 1_000), 999)
    assert codes(summarised(spark, honest, [0] * 1_000)) == set()
    half = np.where(np.arange(1_000) % 2, honest, shuffled)
    assert "link_suspect" in codes(summarised(spark, half, [0] * 1_000))


def test_equal_avatars_are_no_sign_of_a_wrong_link(spark):
    found = codes(summarised(spark, [0] * 500, [999] * 500))
    assert "link_suspect" not in found
    assert "many_ties" in found


def test_a_single_original_is_too_little_for_suspicion(spark):
    assert codes(summarised(spark, [999], [0])) == set()


def test_each_group_has_figures_of_its_own(spark):
    closer, group = [0, 2, 4, 1, 1, 1, 9], [1, 1, 1, 2, 2, 2, 2]
    found = summarised(spark, closer, [0, 0, 0, 1, 0, 0, 0], group=group, groups={1: "a", 2: "b"})
    assert (found.originals, found.local_cloaking) == (7, 2.0)  # of 0, 1, 1, 2, 2, 4, 9
    a, b = found.groups["a"], found.groups["b"]
    assert (a.originals, a.local_cloaking, a.min, a.max) == (3, 2.0, 0, 4)
    assert a.hidden_rate == pytest.approx(200 / 3)
    assert (b.originals, b.local_cloaking, b.hidden_rate) == (4, 1.5, 100.0)  # of 1, 1, 2, 9
    assert (a.avatars, a.ncp) == (1000, 2)
    assert list(found.groups) == ["a", "b"]


def test_groups_with_many_distinct_counts_are_exact(spark):
    rng = np.random.default_rng(11)
    counts, group = rng.integers(0, 10**7, 20_000), rng.integers(1, 3, 20_000)
    found = summarised(spark, counts, np.zeros_like(counts), avatars=10**8, group=group, groups={1: "a", 2: "b"})
    for number, label in ((1, "a"), (2, "b")):
        for p, value in found.groups[label].quantiles.items():
            assert value == pytest.approx(oracle.quantile(counts[group == number], p), rel=1e-15)
