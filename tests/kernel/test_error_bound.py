"""The error bound of float32 products: attacks on it that must change no count, and its derivation checked."""

from fractions import Fraction

import numpy as np
import oracle
import pytest

from cloaking.kernel import balls, sieve
from cloaking.kernel.index import AvatarIndex

UNIT = 2.0**-24


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
        np.testing.assert_array_equal(
            AvatarIndex(avatars).count(originals, own), oracle.fast_count(avatars, originals, own)
        )


def test_the_attack_would_break_a_kernel_without_the_bound(monkeypatch):
    rng = np.random.default_rng(0)
    problems = [_nearly_tied(rng, ncp, 30.0, width) for ncp in (2, 3, 5, 20) for width in (0.3, 0.1)]
    expected = [oracle.fast_count(*problem) for problem in problems]
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
    assert worst > UNIT / 4  # and the attack causes errors of the size of rounding


def test_what_float32_cannot_hold_decides_nothing():
    # some leaves are points and others 1e60 wide: in the tree's unit, sides, squares and bounds overflow or underflow
    rng = np.random.default_rng(1)
    avatars = np.concatenate([rng.normal(size=(700, 2)) * scale for scale in (1.0, 1e60, 1e-60)])
    rows = rng.integers(len(avatars), size=60)
    originals = avatars[rng.permutation(rows)] * 1.5
    found = AvatarIndex(avatars).count(originals, avatars[rows])
    np.testing.assert_array_equal(found, oracle.fast_count(avatars, originals, avatars[rows]))


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
        np.testing.assert_array_equal(
            AvatarIndex(avatars).count(originals, own), oracle.fast_count(avatars, originals, own)
        )
