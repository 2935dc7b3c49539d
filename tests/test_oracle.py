"""The oracle itself, against counts made by hand and against real data whose counts are known."""

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pandas as pd
import pytest

HERE = Path(__file__).resolve().parent
REFERENCE_DATA = Path(os.environ.get("CLOAKING_REFERENCE_DATA", HERE.parents[1] / "shared" / "data"))


def counts(avatars, originals, own, tie_tolerance=1e-12):
    closer, within = oracle.count(avatars, originals, own, tie_tolerance)
    return closer.tolist(), within.tolist()


def test_the_nearer_the_own_and_the_tied_avatar_are_told_apart():
    avatars = [[0, 0], [3, 4], [-4, 3], [6, 8]]  # 0, 5, 5 and 10 from the origin
    assert counts(avatars, [[0, 0]], [[3, 4]]) == ([1], [3])


def test_rounding_ties_within_the_tolerance_and_not_without():
    assert 0.3 - 0.1 < 0.5 - 0.3  # both are 0.2 on paper
    assert counts([[0.1], [0.5]], [[0.3]], [[0.1]]) == ([0], [2])
    assert counts([[0.1], [0.5]], [[0.3]], [[0.1]], tie_tolerance=0) == ([0], [1])
    assert counts([[0.1], [0.5]], [[0.3]], [[0.5]], tie_tolerance=0) == ([1], [2])


def test_the_tolerance_grows_with_the_norms_not_with_the_distance():
    # |x| + |own| is 10, tau is 1e-5, and the own avatar is 3e-5 away: 0 and 1.9 closer, 2.1, 3 and 3.9 tied.
    avatars = [[3, 4 + 1e-5 * step] for step in (0, 1.9, 2.1, 3, 3.9, 4.1)]
    assert counts(avatars, [[3, 4]], [avatars[3]], tie_tolerance=1e-6) == ([2], [5])


def test_nobody_is_closer_than_an_own_avatar_within_the_tolerance_of_its_original():
    assert counts([[3, 4], [3, 4 + 5e-6]], [[3, 4]], [[3, 4 + 5e-6]], tie_tolerance=1e-6) == ([0], [2])


def test_a_sum_runs_in_component_order():
    a = 2.0**-27  # 1 + a^2 is 1, but 4 a^2 + 1 is more
    avatars = [[1, a, a, a, a], [a, a, 1, a, a], [a, a, a, a, 1]]
    assert counts(avatars, [[0] * 5], [avatars[0]], tie_tolerance=0) == ([0], [2])
    assert counts(avatars, [[0] * 5], [avatars[2]], tie_tolerance=0) == ([2], [3])


@pytest.mark.parametrize("power", [-1074, -1022, -540, -401, -400, 0, 400, 401, 1020])
def test_multiples_of_any_float_count_as_the_integers_do(power):
    unit = 2.0**power
    avatars = [[unit * multiple] for multiple in (1, 2, 3, -1, 5)]  # 0, 1, 2, 2 and 4 from the original
    assert counts(avatars, [[unit]], [[3 * unit]], tie_tolerance=0) == ([2], [4])


def test_the_unscaled_range_includes_its_ends():
    low, high = 2.0**-400, 2.0**400
    # 2^-540 squared underflows, unless the original is scaled up first
    avatars = [[low, 2.0**-540], [low, 2.0**-541]]
    assert counts(avatars, [[low, 0]], avatars[:1], tie_tolerance=0) == ([0], [2])
    avatars = [[low / 2, 2.0**-540], [low / 2, 2.0**-541]]
    assert counts(avatars, [[low / 2, 0]], avatars[:1], tie_tolerance=0) == ([1], [2])
    # 2^-200 squared does not underflow, unless the original is scaled down first
    avatars = [[high, 2.0**-200], [high, 2.0**-201]]
    assert counts(avatars, [[high, 0]], avatars[:1], tie_tolerance=0) == ([1], [2])
    avatars = [[2 * high, 2.0**-200], [2 * high, 2.0**-201]]
    assert counts(avatars, [[2 * high, 0]], avatars[:1], tie_tolerance=0) == ([0], [2])


def test_an_avatar_whose_sum_overflows_is_beyond():
    assert counts([[2.0], [1e200], [-1.7e308]], [[1.0]], [[2.0]]) == ([0], [1])
    assert counts([[3e-320], [1e300], [-1.7e308]], [[1e-320]], [[3e-320]]) == ([0], [1])  # scaled by 2^1062
    largest = np.finfo(np.float64).max
    assert counts([[-largest], [0.0], [largest]], [[largest]], [[-largest]]) == ([2], [3])


def test_counting_the_others_is_counting_all_less_the_own():
    rng = np.random.default_rng(1)
    avatars, originals = rng.integers(-2, 3, (60, 3)), rng.integers(-2, 3, (40, 3))
    rows = rng.integers(60, size=40)
    closer, tied, cloaking = oracle.cloaking(avatars, originals, rows)
    all_closer, within = oracle.count(avatars, originals, avatars[rows])
    np.testing.assert_array_equal(closer, all_closer)
    np.testing.assert_array_equal(cloaking, within - 1)
    np.testing.assert_array_equal(tied, within - closer - 1)
    assert tied.any()


def test_fractions_agree_with_floats_on_a_grid_and_take_what_floats_cannot():
    rng = np.random.default_rng(2)
    avatars, originals = rng.integers(-2, 3, (50, 3)), rng.integers(-2, 3, (30, 3))
    for tie_tolerance in (0, 1e-12):
        floats = oracle.count(avatars, originals, avatars[:30], tie_tolerance)
        np.testing.assert_array_equal(oracle.exact_count(avatars, originals, avatars[:30]), floats)
    thirds = [[Fraction(1, 3)], [Fraction(-1, 3)], [Fraction(1, 3) + Fraction(1, 10**40)]]
    closer, within = oracle.exact_count(thirds, [[0]], thirds[:1])
    assert (closer.tolist(), within.tolist()) == ([0], [2])


def test_figures_by_hand():
    # found for certain, one of 2, one of 4, not at all: 1 - (1 + 1/2 + 1/4 + 0) / 4
    figures = oracle.figures(closer=[0, 0, 0, 5], tied=[0, 1, 3, 1])
    assert figures == (2.0, 56.25, 75.0, 25.0)
    assert oracle.figures(closer=[7], tied=[0]) == (7.0, 100.0, 100.0, 100.0)


def test_quantiles_by_hand():
    assert [oracle.quantile([5, 1, 2, 4], p) for p in (0, 0.25, 0.5, 0.95, 1)] == [1, 1.75, 3, 4.85, 5]
    assert oracle.quantile([3], 0.95) == 3


def test_the_sample_carries_the_counts_of_the_oracle():
    originals = pd.read_csv(HERE / "data" / "wine.projections.original-0.csv", float_precision="round_trip")
    avatars = pd.read_csv(HERE / "data" / "wine.projections.avatars-0.csv", float_precision="round_trip")
    counted = pd.read_csv(HERE / "data" / "wine_counts.csv")
    closer, tied, cloaking = oracle.cloaking(avatars, originals)
    np.testing.assert_array_equal(counted[["closer", "tied", "cloaking"]], np.column_stack([closer, tied, cloaking]))


@pytest.mark.parametrize("name", ["aids_famd_nf5", "wbcd_famd_nf2"])
def test_real_data_give_their_known_counts_and_figures(name):
    if not REFERENCE_DATA.is_dir():
        pytest.skip(f"no reference data in {REFERENCE_DATA}; CLOAKING_REFERENCE_DATA names the folder")
    known = pd.read_csv(REFERENCE_DATA / f"{name}_counts.csv")
    expected = json.loads((REFERENCE_DATA / "expected.json").read_text())[name]
    originals, avatars = (
        _table(f"{name}_{side}").set_index("id").loc[known["id"]] for side in ("originals", "avatars")
    )

    closer, tied, cloaking = oracle.cloaking(avatars, originals)

    np.testing.assert_array_equal(np.column_stack([closer, tied, cloaking]), known[["closer", "tied", "cloaking"]])
    figures = oracle.figures(closer, tied)._asdict()
    assert figures == pytest.approx({figure: expected[figure] for figure in figures}, rel=1e-12)
    quantiles = {p: oracle.quantile(cloaking, p) for p in expected["quantiles"]}
    assert quantiles == pytest.approx(expected["quantiles"], rel=1e-12)


def _table(name):
    parquet = REFERENCE_DATA / f"{name}.parquet"
    if parquet.exists():
        return pd.read_parquet(parquet)
    return pd.read_csv(REFERENCE_DATA / f"{name}.csv", float_precision="round_trip")
