"""Ties hold: counts do not move with the batch that coordinates were computed in, nor with their last bit."""

import numpy as np
import oracle
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloaking.kernel.index import AvatarIndex
from cloaking.sweep.simulate import in_order, nearest_others, simulate

SEEDS = range(12)
NCP = 3


def projector(profiles):
    """Standardise by these rows and rotate onto their first axes, as a projection does, in batches of any size."""
    mean, deviation = profiles.mean(axis=0), profiles.std(axis=0)
    axes = np.linalg.svd((profiles - mean) / deviation, full_matrices=False)[2][:NCP].T

    def project(rows, batch):
        parts = [rows[i : i + batch] for i in range(0, len(rows), batch)]
        return np.concatenate([((part - mean) / deviation) @ axes for part in parts])

    return project


def made(profiles, seed):
    """Avatars by the published method among the profiles, put back to whole numbers: many of them are equal."""
    profiles = in_order(profiles)
    rng = np.random.default_rng(seed)
    return profiles, np.round(simulate(profiles, nearest_others(profiles, 20), rng))


def counts(originals, avatars):
    closer, within = AvatarIndex(avatars).count(originals, avatars)
    return np.stack([closer, within - closer - 1])


def hold(profiles, seed):
    """Counts over projected whole numbers: those of the double loop, in every batch size, and an ulp away."""
    originals, avatars = made(profiles, seed)
    project = projector(originals)
    closer, tied, _ = oracle.cloaking(project(avatars, len(avatars)), project(originals, len(originals)))
    expected = np.stack([closer, tied])
    assert (expected[1] > 0).any()
    rng = np.random.default_rng(seed)
    for batch in (1, 2, 7, 100):
        x, y = project(originals, batch), project(avatars, batch + 3)
        np.testing.assert_array_equal(counts(x, y), expected)
        nudged = [np.nextafter(side, rng.choice([-np.inf, np.inf], side.shape)) for side in (x, y)]
        np.testing.assert_array_equal(counts(*nudged), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_ties_of_whole_numbers_hold(seed):
    rng = np.random.default_rng(1_000 + seed)
    hold(rng.integers(0, 4, size=(300, 5)) * np.array([1.0, 10.0, 0.1, 7.0, 3.0]), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_ties_of_real_whole_numbers_hold(reference_data, seed):
    table = pd.read_csv(reference_data / "wbcd_raw_originals.csv")
    profiles = table.select_dtypes("number").drop(columns=["id", "Class"], errors="ignore").to_numpy(dtype=float)
    hold(profiles, seed)


def test_without_a_tolerance_the_same_ties_are_lost():
    """What the tolerance is for: with none, the counts move."""
    moved = 0
    for seed in SEEDS:
        rng = np.random.default_rng(1_000 + seed)
        originals, avatars = made(rng.integers(0, 4, size=(300, 5)) * np.array([1.0, 10.0, 0.1, 7.0, 3.0]), seed)
        project = projector(originals)
        found = [
            AvatarIndex(y).count(x, y, tie_tolerance=0)[1]
            for x, y in ((project(originals, batch), project(avatars, batch + 3)) for batch in (1, 100))
        ]
        moved += np.count_nonzero(found[0] != found[1])
    assert moved > 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_an_ulp_moves_no_exact_tie(data):
    """Points on a grid of whole numbers, whose ties are exact, coordinates moved by a unit in their last place or not.

    None is 0, whose last place is 5e-324: the tolerance is relative, and at the origin itself there is none.
    """
    ncp = data.draw(st.integers(1, 4))
    shape = (data.draw(st.integers(2, 25)), ncp)
    grid = st.lists(st.integers(1, 13), min_size=2 * shape[0] * ncp, max_size=2 * shape[0] * ncp)
    x, y = np.array(data.draw(grid), dtype=float).reshape(2, *shape)
    steps = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1))).integers(-1, 2, size=(2, *shape))
    near = [np.where(s == 0, side, np.nextafter(side, s * 99.0)) for side, s in zip((x, y), steps, strict=True)]
    # where the own avatar is its original the distance is 0, and stays within the tolerance of the two norms
    squares = ((x[:, None] - y) ** 2).sum(axis=2).astype(int)
    own = np.diagonal(squares)[:, None]
    expected = np.stack([(squares < own).sum(axis=1), (squares == own).sum(axis=1) - 1])
    np.testing.assert_array_equal(counts(*near), expected)
