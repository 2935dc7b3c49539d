"""What the kernel's faces do not show: the error bound attacked, the tree's invariants, small sizes forced."""

from fractions import Fraction

import numpy as np
import oracle
import pytest

from cloaking.kernel import balls, duplicates, index, sieve, tie_rule, tree
from cloaking.kernel.index import AvatarIndex

UNIT = 2.0**-24


def reference(avatars, originals, own, tie_tolerance=1e-12):
    """The oracle's bounds, and its loop over the avatars in numpy, each operation rounded once and in order."""
    counts = []
    for x, y in zip(originals.tolist(), own.tolist(), strict=True):
        bounds = oracle.bounds(x, y, tie_tolerance)
        squares = np.zeros(len(avatars))
        with np.errstate(over="ignore", under="ignore"):
            for value, column in zip(bounds.original, avatars.T, strict=True):
                squares = squares + np.square(value - np.ldexp(column, -bounds.exponent))
        counts.append((np.count_nonzero(squares < bounds.lower), np.count_nonzero(squares <= bounds.upper)))
    return np.array(counts).T


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


# ------------------------------------------------------------------------------------------------ the error bound


def _nearly_tied(rng, ncp, far, width):
    """Originals and avatars in two bunches `far` apart, at distances that differ by `width` of themselves.

    All share a leaf, whose centre lies between the bunches: every product cancels all but a few bits.
    """
    avatars, originals = [], []
    for side in (-1.0, 1.0):
        centre = np.full(ncp, side * far)
        directions = rng.normal(size=(60, ncp))
        directions /= np.sqrt(np.square(directions).sum(axis=1, keepdims=True))
        avatars.append(centre + directions * (1 + width * rng.uniform(-1, 1, size=(60, 1))))
        originals.append(np.tile(centre, (4, 1)))
    avatars, originals = np.concatenate(avatars), np.concatenate(originals)
    return avatars, originals, avatars[[0, 1, 2, 3, 60, 61, 62, 63]]


WIDTHS = [0.3, 0.1, 0.01, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12]


@pytest.mark.parametrize("ncp", [1, 2, 3, 5, 10, 20, 40])
@pytest.mark.parametrize("far", [0.0, 1.0, 10.0, 30.0, 100.0, 1e3, 1e5])
def test_products_that_cancel_change_no_count(ncp, far):
    rng = np.random.default_rng([ncp, int(far)])
    for width in WIDTHS:
        avatars, originals, own = _nearly_tied(rng, ncp, far, width)
        np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), reference(avatars, originals, own))


def test_the_attack_would_break_a_kernel_without_the_bound(monkeypatch):
    rng = np.random.default_rng(0)
    problems = [_nearly_tied(rng, ncp, 30.0, width) for ncp in (2, 3, 5, 20) for width in (0.3, 0.1)]
    expected = [reference(*problem) for problem in problems]
    for module in (balls, sieve):
        monkeypatch.setattr(module, "slack", lambda ncp: 2.0**-52)
    found = []
    for avatars, originals, own in problems:
        found.append(np.array(AvatarIndex(avatars).count(originals, own, own_in_index=False)))
    broken = sum(not np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert broken > len(problems) / 2


def _worst_rounding(rng, ncp, trials):
    """Pairs of float64 points whose float32 images are about half a unit in the last place away, all to one side."""
    a = np.ldexp(1 + rng.integers(0, 2**10, size=(trials, ncp)) * 2.0**-10, rng.integers(-3, 3, size=(trials, ncp)))
    a += 0.499 * np.spacing(a.astype(np.float32))
    sign = rng.choice([-1.0, 1.0], size=(trials, ncp))
    near = np.where(rng.random((trials, 1)) < 0.5, 1.0, rng.choice([-1.0, 1.0], size=(trials, ncp)))
    b = near * (a - np.spacing(a.astype(np.float32)) * rng.integers(0, 3, size=(trials, ncp)))
    return a * sign, b * sign


def _float32_sum(terms, fused):
    """The sum of products in float32: each rounded first, or fused with the sum, exactly as such hardware does."""
    total = np.float32(0)
    for a, b in terms:
        exact = Fraction(float(a)) * Fraction(float(b))
        product = exact if fused else Fraction(float(np.float32(float(exact))))
        total = np.float32(float(Fraction(float(total)) + product))
    return total


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("ncp", [1, 3, 10, 40])
def test_the_bound_holds_for_any_order_of_the_sum_fused_or_not(ncp, fused):
    rng = np.random.default_rng([ncp, fused])
    worst = 0.0
    for a, b in zip(*_worst_rounding(rng, ncp, 60), strict=True):
        a32, b32 = a.astype(np.float32), b.astype(np.float32)
        norm = np.float32(np.square(b32.astype(np.float64)).sum())
        terms = [*zip(-2 * b32, a32, strict=True), (norm, np.float32(1))]
        for order in (range(ncp + 1), range(ncp, -1, -1), rng.permutation(ncp + 1)):
            product = _float32_sum([terms[i] for i in order], fused)
            computed = product + _float32_sum(list(zip(a32, a32, strict=True)), fused)
            exact = sum((Fraction(float(p)) - Fraction(float(q))) ** 2 for p, q in zip(a, b, strict=True))
            scale = float(np.square(a).sum() + np.square(b).sum())
            worst = max(worst, abs(float(Fraction(float(computed)) - exact)) / scale)
    assert worst <= balls.slack(ncp) / 2  # the bound as derived; the other half is for float64
    assert worst > UNIT / 4  # and the attack comes near rounding's own size


def test_what_float32_cannot_hold_decides_nothing():
    # leaves that are points beside leaves 1e60 wide: sides, squares and bounds overflow or vanish in the tree's unit
    rng = np.random.default_rng(1)
    avatars = np.concatenate([rng.normal(size=(700, 2)) * scale for scale in (1.0, 1e60, 1e-60)])
    rows = rng.integers(len(avatars), size=60)
    originals = avatars[rng.permutation(rows)] * 1.5
    found = AvatarIndex(avatars).count(originals, avatars[rows])
    np.testing.assert_array_equal(found, reference(avatars, originals, avatars[rows]))


@pytest.mark.parametrize("power", range(56, 76, 2))
@pytest.mark.parametrize("ncp", [1, 2, 5])
def test_products_that_would_overflow_float32_decide_nothing(power, ncp):
    # a few avatars far out share a leaf with others: seen from its centre, squares and products pass 2^128
    rng = np.random.default_rng([power, ncp])
    far = 2.0**power * (1 + rng.random(size=(60, ncp)) * 2.0 ** -rng.integers(0, 12, size=(60, 1)))
    avatars = np.concatenate([rng.normal(size=(3_000, ncp)), far * rng.choice([-1, 1], size=(60, 1))])
    rows = 3_000 + rng.integers(60, size=80)
    originals = avatars[rows] * (1 + rng.normal(size=(80, 1)) * 2.0 ** -rng.integers(1, 12, size=(80, 1)))
    for own in (avatars[rows], avatars[rng.integers(len(avatars), size=80)]):
        np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), reference(avatars, originals, own))


# ------------------------------------------------------------------------------------------------- the tree's shape


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
        apart = np.abs(points - built.centres[node][:, None])
        assert (apart <= built.halves[node][:, None])[real].all()
        node //= 2


def test_leaves_hold_no_more_points_than_a_byte_counts():
    assert tree.LEAF <= 255


# ------------------------------------------------------------------------------------------- small sizes, many levels


@pytest.mark.parametrize("spread", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("ncp", [1, 2, 5, 9])
def test_an_index_of_many_levels_with_full_buffers_counts_the_same(tiny, ncp, spread):
    rng = np.random.default_rng(ncp)
    avatars = rng.normal(size=(900, ncp))
    rows = rng.integers(900, size=150)
    originals = avatars[rows] + spread * rng.normal(size=(150, ncp))
    index = AvatarIndex(avatars)
    assert index._tree.depth >= 8
    expected = reference(avatars, originals, avatars[rows])
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
    np.testing.assert_array_equal(index.count(originals, own), reference(avatars, originals, own))


def test_ties_everywhere_wait_in_bounded_numbers(tiny, monkeypatch):
    rng = np.random.default_rng(3)
    avatars = np.unique(rng.integers(-4, 5, size=(900, 3)), axis=0).astype(np.float64)
    rows = rng.integers(len(avatars), size=100)
    originals = rng.integers(-4, 5, size=(100, 3)) / 2
    settled = []
    settle = index.exact
    monkeypatch.setattr(index, "exact", lambda *args: settled.append(len(args[-1])) or settle(*args))
    found = AvatarIndex(avatars).count(originals, avatars[rows])
    np.testing.assert_array_equal(found, reference(avatars, originals, avatars[rows]))
    assert max(settled) <= sieve._STRIP // 3
    assert sum(settled) > 10 * index._WAITING


def test_a_lone_undecided_avatar_costs_no_exact_distance(monkeypatch):
    rng = np.random.default_rng(4)
    avatars = rng.normal(size=(3_000, 3))
    originals = avatars + 0.1 * rng.normal(size=(3_000, 3))
    pairs = []
    settle = index.exact
    monkeypatch.setattr(index, "exact", lambda *args: pairs.append(len(args[-1])) or settle(*args))
    AvatarIndex(avatars).count(originals, avatars)
    assert sum(pairs) < 300


# ----------------------------------------------------------------------------------------- equal rows, files, bounds


def test_where_all_rows_share_a_hash_every_row_still_counts(monkeypatch):
    rng = np.random.default_rng(5)
    avatars = rng.integers(0, 3, size=(400, 3)).astype(np.float64)
    originals, own = rng.permuted(avatars, axis=0), avatars
    expected = reference(avatars, originals, own)
    monkeypatch.setattr(duplicates, "_hash", lambda arrays: np.zeros(len(arrays[0]), np.uint64))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), expected)


def test_equal_rows_are_found_whatever_the_sign_of_zero():
    values = np.tile([[0.0, 1.0], [-0.0, 1.0], [2.0, 0.0], [2.0, -0.0]], (50, 1))
    groups = duplicates.distinct(values)
    assert len(groups.first) == 2
    np.testing.assert_array_equal(values[groups.first][groups.of], values)


def test_rows_are_not_grouped_where_few_are_equal():
    values = np.random.default_rng(6).normal(size=(1_000, 2))
    values[:100] = values[0]
    assert duplicates.distinct(values) is None


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
    np.testing.assert_array_equal(loaded.count(originals, own), reference(avatars, originals, own))


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e160, 5e-324, 1e307])
@pytest.mark.parametrize("tie_tolerance", [0.0, 1e-12, 1e-6])
def test_bounds_are_those_of_the_definition(scale, tie_tolerance):
    rng = np.random.default_rng(8)
    originals, own = (rng.integers(-9, 10, size=(50, 4)) * scale for _ in range(2))
    own[:10] = originals[:10]
    exponents, lower, upper = index.bounds(originals, own, tie_tolerance)
    for i, (x, y) in enumerate(zip(originals.tolist(), own.tolist(), strict=True)):
        bounds = oracle.bounds(x, y, tie_tolerance)
        assert (exponents[i], lower[i], upper[i]) == (bounds.exponent, bounds.lower, bounds.upper)
