"""The k-d tree and the traversal over it: its invariants, small sizes that fill every buffer, and its file."""

import numpy as np
import oracle
import pytest

from cloaking.kernel import balls, duplicates, index, sieve, tie_rule, tree
from cloaking.kernel.index import AvatarIndex


@pytest.fixture
def tiny(monkeypatch):
    """Leaves of three avatars, blocks of four originals, and every buffer full after a few pairs."""
    monkeypatch.setattr(tree, "LEAF", 3)
    for name, value in {
        "_PAIRS": 16,
        "_TILE": 64,
        "_OPEN": 20,
        "_STRIP": 9,
        "_PRODUCT": 64,
    }.items():
        monkeypatch.setattr(sieve, name, value)
    for module, name, value in (
        (balls, "BLOCK", 4),
        (balls, "_BLOCK_1D", 4),
        (index, "_BATCH", 37),
        (index, "_WAITING", 11),
        (index, "CACHED", 5),
        (duplicates, "CACHED", 5),
        (tie_rule, "_SETTLED", 50),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("leaf", [2, 3, 16, 250])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 31, 64, 65, 1_000, 4_097])
def test_every_avatar_is_in_one_leaf_and_in_the_boxes_above_it(monkeypatch, leaf, m):
    monkeypatch.setattr(tree, "LEAF", leaf)
    rng = np.random.default_rng(m)
    avatars, weights = rng.normal(size=(m, 3)), rng.integers(1, 5, size=m)
    built = tree.build(avatars, weights)
    assert built.points.shape[2] <= leaf
    points = built.points.transpose(0, 2, 1)
    real = np.isfinite(points).all(axis=2)
    assert (real.sum(axis=1) >= built.points.shape[2] - 1).all()
    order = np.lexsort(points[real].T)
    np.testing.assert_array_equal(points[real][order], avatars[np.lexsort(avatars.T)])
    np.testing.assert_array_equal(built.weights[real][order], weights[np.lexsort(avatars.T)])
    assert (built.weights[~real] == 0).all()
    node = np.arange(built.leaves) + built.leaves
    while node[0]:
        counts = np.zeros(2 * built.leaves, np.int64)
        np.add.at(counts, node, built.weights.sum(axis=1))
        np.testing.assert_array_equal(built.counts[np.unique(node)], counts[np.unique(node)])
        offsets = np.abs(points - built.centres[node][:, None])
        assert (offsets <= built.halves[node][:, None])[real].all()
        node //= 2


def test_leaves_hold_no_more_points_than_a_byte_counts():
    assert tree.LEAF <= 255


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("ncp", [1, 2, 5, 9])
def test_an_index_of_many_levels_with_full_buffers_counts_the_same(tiny, ncp, spread):
    rng = np.random.default_rng(ncp)
    avatars = rng.normal(size=(900, ncp))
    rows = rng.integers(900, size=150)
    originals = avatars[rows] + spread * rng.normal(size=(150, ncp))
    index = AvatarIndex(avatars)
    assert index._tree.depth >= 8
    expected = oracle.fast_count(avatars, originals, avatars[rows])
    for own_in_index in (True, False, rng.random(150) < 0.5):
        found = index.count(originals, avatars[rows], own_in_index=own_in_index)
        np.testing.assert_array_equal(found, expected)


def test_whole_nodes_and_whole_leaves_inside_a_ball_are_counted(tiny):
    rng = np.random.default_rng(2)
    avatars = rng.integers(0, 12, size=(800, 2)) + rng.normal(size=(800, 2)) * 1e-3
    originals = rng.normal(size=(40, 2)) + 6
    own = avatars[rng.integers(800, size=40)]
    index = AvatarIndex(avatars)
    exponents, lower, upper = tie_rule.bounds(originals, own, 1e-12)
    counting = sieve.Sieve(index._tree, originals, lower, upper, exponents)
    list(counting)
    assert counting.inside.any()
    np.testing.assert_array_equal(index.count(originals, own), oracle.fast_count(avatars, originals, own))


def test_ties_everywhere_wait_in_bounded_numbers(tiny, monkeypatch):
    rng = np.random.default_rng(3)
    avatars = np.unique(rng.integers(-4, 5, size=(900, 3)), axis=0).astype(np.float64)
    rows = rng.integers(len(avatars), size=100)
    originals = rng.integers(-4, 5, size=(100, 3)) / 2
    settled = []
    settle = index.exact
    monkeypatch.setattr(index, "exact", lambda *args: settled.append(len(args[-1])) or settle(*args))
    found = AvatarIndex(avatars).count(originals, avatars[rows])
    np.testing.assert_array_equal(found, oracle.fast_count(avatars, originals, avatars[rows]))
    assert max(settled) <= sieve._STRIP // 3
    assert sum(settled) > 10 * index._WAITING


def test_a_single_undecided_avatar_costs_no_exact_distance(monkeypatch):
    rng = np.random.default_rng(4)
    avatars = rng.normal(size=(3_000, 3))
    originals = avatars + 0.1 * rng.normal(size=(3_000, 3))
    pairs = []
    settle = index.exact
    monkeypatch.setattr(index, "exact", lambda *args: pairs.append(len(args[-1])) or settle(*args))
    AvatarIndex(avatars).count(originals, avatars)
    assert sum(pairs) < 300


def test_a_loaded_index_is_mapped_read_only_and_counts_the_same(tmp_path):
    rng = np.random.default_rng(7)
    avatars = np.repeat(rng.normal(size=(900, 3)), rng.integers(1, 6, size=900), axis=0)
    originals, own = rng.normal(size=(200, 3)), avatars[rng.integers(len(avatars), size=200)]
    path = tmp_path / "index"
    index = AvatarIndex(avatars)
    index.save(path)
    loaded = AvatarIndex.load(path)
    assert loaded.shape == index.shape == avatars.shape
    for array in loaded._tree:
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
        assert array.flags.aligned
    np.testing.assert_array_equal(loaded.count(originals, own), index.count(originals, own))
    np.testing.assert_array_equal(loaded.count(originals, own), oracle.fast_count(avatars, originals, own))
