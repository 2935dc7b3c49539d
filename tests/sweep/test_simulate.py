"""Simulated avatars and their figures, held against hand, the published formula and the double loop."""

import math
import statistics

import numpy as np
import oracle
import pandas as pd
import pytest
from conftest import ROOT

from cloaking.command.k_sweep_settings import KS
from cloaking.sweep.results import AtK, Sweep
from cloaking.sweep.simulate import in_order, measure, nearest_others, refusals, simulate, sweep


def wine():
    table = pd.read_parquet(ROOT / "tests" / "data" / "wine_originals.parquet")
    return table[[f"dim_{i}" for i in range(1, 6)]].to_numpy()


def grid(rows=90, seed=1):
    """Points of which many are equal and many equally far."""
    return np.random.default_rng(seed).integers(0, 5, (rows, 2)).astype(float)


CLOUD = np.random.default_rng(0).normal(size=(120, 3))
DATA = {"cloud": CLOUD, "grid": grid(), "one value": np.zeros((20, 2)), "wine": wine()}


def avatars_of(points, k, rng=0):
    return simulate(points, nearest_others(points, k), np.random.default_rng(rng))


@pytest.mark.parametrize("k", [1, 7, 19])
@pytest.mark.parametrize("name", DATA)
def test_neighbours_are_the_k_nearest_originals_other_than_itself(name, k):
    points = DATA[name]
    for i, rows in enumerate(nearest_others(points, k).tolist()):
        others = [math.dist(points[i], points[j]) for j in range(len(points)) if j != i]
        assert i not in rows
        assert len(set(rows)) == k
        assert [math.dist(points[i], points[j]) for j in rows] == pytest.approx(sorted(others)[:k], abs=1e-12)


def test_a_row_that_equals_the_original_is_a_neighbour():
    points = np.array([[0.0, 0.0], [5.0, 5.0], [0.0, 0.0], [9.0, 9.0]])
    assert nearest_others(points, 1)[[0, 2], 0].tolist() == [2, 0]


def test_there_must_be_k_other_originals():
    with pytest.raises(ValueError, match="k is 4: expected 1 to 3"):
        nearest_others(np.zeros((4, 1)), 4)


def test_with_one_neighbour_the_avatar_is_the_nearest_other_original_to_the_last_bit():
    assert avatars_of(np.array([[0.0], [1.0], [3.0], [7.0]]), 1).tolist() == [[1.0], [0.0], [1.0], [3.0]]
    nearest = [min((j for j in range(120) if j != i), key=lambda j: math.dist(CLOUD[i], CLOUD[j])) for i in range(120)]
    assert avatars_of(CLOUD, 1).tolist() == CLOUD[nearest].tolist()


def test_among_equal_rows_the_avatar_is_that_row_to_the_last_bit():
    points = np.vstack([np.full((9, 3), 0.1), CLOUD[:30]])
    assert avatars_of(points, 5)[:9].tolist() == np.full((9, 3), 0.1).tolist()


def test_a_neighbour_equal_to_the_original_outweighs_all_others_and_divides_nothing_by_0():
    points = np.array([[1.0], [1.0], [50.0], [51.0]])
    avatars = avatars_of(points, 2)
    assert np.isfinite(avatars).all()
    assert avatars[:2] == pytest.approx(1.0, abs=1e-6)  # the other weighs 49 / 1e-12 times less, but for chance


def test_weights_are_those_of_the_published_formula():
    k, n = 6, len(CLOUD)
    avatars = avatars_of(CLOUD, k, rng=11)
    rng = np.random.default_rng(11)
    exponential = rng.exponential(size=(n, k)).tolist()
    ranks = np.log2(rng.permuted(np.tile(np.exp2(-np.arange(1.0, k + 1)), (n, 1)), axis=1)).tolist()
    for i, rows in enumerate(nearest_others(CLOUD, k).tolist()):
        assert sorted(ranks[i]) == [-6, -5, -4, -3, -2, -1]
        weights = [
            e * 2.0**minus_pi / math.dist(CLOUD[i], CLOUD[j])
            for e, minus_pi, j in zip(exponential[i], ranks[i], rows, strict=True)
        ]
        expected = [math.fsum(w * CLOUD[j][c] for w, j in zip(weights, rows, strict=True)) for c in range(3)]
        assert avatars[i] == pytest.approx([value / math.fsum(weights) for value in expected], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", DATA)
def test_an_avatar_lies_among_its_neighbours(name):
    points = DATA[name]
    around = points[nearest_others(points, 8)]
    avatars = avatars_of(points, 8)
    assert (avatars >= around.min(axis=1) - 1e-12).all()
    assert (avatars <= around.max(axis=1) + 1e-12).all()
    between = avatars_of(CLOUD, 2)  # of two neighbours: on the line through them
    first, second = np.moveaxis(CLOUD[nearest_others(CLOUD, 2)], 1, 0)
    assert np.abs(np.cross(between - first, second - first)).max() < 1e-12


@pytest.mark.parametrize("block", [1, 50, 1_000])
def test_in_blocks_every_row_has_its_avatar(block, monkeypatch):
    monkeypatch.setattr("cloaking.sweep.simulate._CELLS", block)
    assert nearest_others(CLOUD, 7).shape == (120, 7)
    assert avatars_of(CLOUD, 1).tolist() == CLOUD[nearest_others(CLOUD, 1)[:, 0]].tolist()
    around = CLOUD[nearest_others(CLOUD, 7)]
    avatars = avatars_of(CLOUD, 7)
    assert ((avatars >= around.min(axis=1) - 1e-12) & (avatars <= around.max(axis=1) + 1e-12)).all()


@pytest.mark.parametrize("name", DATA)
def test_the_figures_of_a_sweep_are_those_of_the_double_loop_on_the_same_avatars(name):
    points = np.array(sorted(DATA[name].tolist()))
    [at] = sweep(DATA[name], [10], repeats=3, seed=4)
    assert at.seeds == ((4, 10, 1), (4, 10, 2), (4, 10, 3))
    for seeds, median, rate in zip(at.seeds, at.local_cloaking, at.hidden_rate, strict=True):
        closer, tied, _ = oracle.cloaking(avatars_of(points, 10, rng=seeds), points)
        expected = oracle.figures(closer, tied)
        assert median == expected.local_cloaking
        assert rate == pytest.approx(expected.hidden_rate, abs=1e-10)


@pytest.mark.parametrize("rows", [60, 61])
def test_ties_count_and_half_an_original_is_found(rows):
    originals, avatars = grid(rows, seed=2), grid(rows, seed=3)
    closer, tied, _ = oracle.cloaking(avatars, originals)
    assert tied.any()
    expected = oracle.figures(closer, tied)
    assert measure(originals, avatars) == (expected.local_cloaking, pytest.approx(expected.hidden_rate, abs=1e-10))


def test_figures_by_hand():
    originals = np.array([[0.0], [10.0], [20.0], [30.0]])
    avatars = np.array([[1.0], [10.0], [40.0], [-1.0]])  # cloaking 1 (a tie), 0, 2, 3
    assert measure(originals, avatars) == (1.5, 100 * (1 - 1.5 / 4))


def test_on_the_sample_the_figures_rise_with_every_k_tried_by_default():
    results = sweep(wine(), KS, repeats=5, seed=0)
    assert [at.k for at in results] == [5, 10, 20, 40, 80]
    for metric in ("local_cloaking", "hidden_rate"):
        medians = [statistics.median(at.values(metric)) for at in results]
        assert medians == sorted(set(medians))


def test_avatars_that_other_code_made_of_the_sample_with_k_20_lie_within_the_spread():
    counts = pd.read_csv(ROOT / "tests" / "data" / "wine_counts.csv")
    known = oracle.figures(counts["closer"], counts["tied"])
    [at] = sweep(wine(), [20], repeats=10, seed=0)
    assert min(at.local_cloaking) <= known.local_cloaking <= max(at.local_cloaking)
    assert min(at.hidden_rate) <= known.hidden_rate <= max(at.hidden_rate)


def test_a_set_of_avatars_depends_on_seed_k_and_repeat_alone():
    [at] = sweep(DATA["grid"], [10], repeats=2, seed=1)
    assert sweep(DATA["grid"], [10], repeats=2, seed=1) == (at,)
    with_others = sweep(DATA["grid"], [12, 3, 10], repeats=4, seed=1)
    assert [other.k for other in with_others] == [3, 10, 12]
    assert (with_others[1].local_cloaking[:2], with_others[1].hidden_rate[:2]) == (at.local_cloaking, at.hidden_rate)
    assert len({*sweep(wine(), [10], repeats=6, seed=0)[0].hidden_rate}) > 1
    assert len({sweep(wine(), [10], repeats=2, seed=seed)[0].hidden_rate for seed in (2, 3)}) == 2


@pytest.mark.parametrize("name", DATA)
def test_the_order_of_the_rows_makes_no_difference(name):
    points = DATA[name]
    shuffled = np.random.default_rng(5).permutation(points)
    assert in_order(shuffled).tolist() == sorted(points.tolist())
    assert sweep(shuffled, [5], repeats=2, seed=0) == sweep(points, [5], repeats=2, seed=0)


def test_zeros_of_either_sign_are_one():
    assert not np.signbit(in_order(np.array([[-0.0, 1.0], [0.0, -0.0]]))).any()


@pytest.mark.parametrize(
    ("originals", "ks", "said"),
    [
        (81, [80], []),
        (80, [5, 80, 90], ["--k 80,90: an avatar is made of k other originals, and there are 79; leave it out"]),
        (1, [1], ["--k 1: an avatar is made of k other originals, and there are 0; leave it out"]),
        (1_000_000, [80], []),
        (1_000_001, [80], ["1,000,001 rows, and the sweep takes up to 1,000,000; run the sweep on a sample of them "
                           '(--where, such as "pmod(hash(id), 10) = 0"), whose figures are too high for the '
                           "whole table: its k is a lower bound"]),
        (1_000_000, [5, 300], ["--k 300: 1,000,000 originals with that many neighbours do not fit into memory; "
                               "leave out what is above 268, or run the sweep on a sample (--where), whose figures "
                               "are too high for the whole table"]),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_with_the_fix(originals, ks, said):
    assert refusals(originals, ks) == said


def at(k, cloaking, rate=(99.0, 99.0, 99.0)):
    return AtK(k, tuple((0, k, repeat) for repeat in range(1, len(cloaking) + 1)), tuple(cloaking), tuple(rate))


RISING = (at(5, [1, 2, 1], [80, 81, 82]), at(10, [5, 4.5, 6], [88, 91, 92]), at(20, [7, 5, 9], [90, 95, 94]))


@pytest.mark.parametrize(
    ("thresholds", "answer", "verdict"),
    [
        ({}, None, "no target"),
        ({"local_cloaking": 1}, 5, "reached"),
        ({"local_cloaking": 4.5}, 10, "reached"),
        ({"local_cloaking": 5}, 20, "reached"),  # at 10 one repeat of three is below
        ({"local_cloaking": 5.5}, None, "not reached"),
        ({"hidden_rate": 90}, 20, "reached"),
        ({"hidden_rate": 80, "local_cloaking": 4}, 10, "reached"),
        ({"hidden_rate": 95, "local_cloaking": 1}, None, "not reached"),
    ],
)
def test_the_answer_is_the_smallest_k_that_reaches_every_target_in_every_repeat(thresholds, answer, verdict):
    found = Sweep(RISING, thresholds)
    assert (found.answer, found.verdict, found.relapses) == (answer, verdict, ())


def test_a_larger_k_that_falls_below_again_is_not_kept_quiet():
    found = Sweep((*RISING, at(40, [9, 9, 4])), {"local_cloaking": 5})
    assert (found.answer, found.relapses) == (20, (40,))


def test_repeats_that_reach_all_targets_at_once_are_counted():
    assert [one.reaches({"local_cloaking": 5, "hidden_rate": 90}) for one in RISING] == [0, 1, 3]


def test_the_spread_is_median_lowest_and_highest():
    assert at(5, [4, 1, 2.5, 3]).spread("local_cloaking") == (2.75, 1, 4)
