"""Problems for the kernel: avatars and originals of many kinds, and the counts that are expected of them."""

from typing import NamedTuple

import numpy as np
import oracle
import pytest
from hypothesis import settings

from cloaking.kernel.index import AvatarIndex

LARGEST = np.finfo(np.float64).max
SMALLEST = 5e-324
TOLERANCES = (0.0, 1e-12, 1e-6)

repeatable = settings(derandomize=True, deadline=None, database=None)
numpy_warnings_are_errors = pytest.mark.filterwarnings("error::RuntimeWarning")  # any finite input is ordinary


class Problem(NamedTuple):
    """Avatars (m, ncp), originals (n, ncp) and the row of each original's own avatar (n,)."""

    avatars: np.ndarray
    originals: np.ndarray
    own_rows: np.ndarray

    @property
    def own(self):
        return self.avatars[self.own_rows]


def counts(avatars, originals, own, **options):
    """Return closer and within as lists, so that a claim fits on one line."""
    closer, within = AvatarIndex(np.array(avatars, dtype=np.float64)).count(
        np.array(originals, dtype=np.float64), np.array(own, dtype=np.float64), **options
    )
    return closer.tolist(), within.tolist()


def assert_counts(problem, expected, tie_tolerance=1e-12):
    """Check that the kernel gives the expected counts in the promised type and does not change its input."""
    arrays = [problem.avatars.copy(), problem.originals.copy(), problem.own]
    kept = [array.copy() for array in arrays]
    avatars, originals, own = arrays
    found = AvatarIndex(avatars).count(originals, own, tie_tolerance=tie_tolerance)
    for name, actual, wanted in zip(("closer", "within"), found, expected, strict=True):
        assert actual.dtype == np.int64
        assert actual.shape == (len(originals),)
        np.testing.assert_array_equal(actual, wanted, err_msg=name)
    for array, before in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(array, before)


def loop(problem, tie_tolerance=1e-12):
    """Return the expected counts by the oracle's double loop."""
    return oracle.count(problem.avatars, problem.originals, problem.own, tie_tolerance)


def reference(problem, tie_tolerance=1e-12):
    """Return the expected counts by the oracle's faster loop, for problems of thousands of avatars."""
    return oracle.fast_count(problem.avatars, problem.originals, problem.own, tie_tolerance)


def near_avatars(rng, avatars, n, noise=0.3):
    """Make n originals: most near an avatar, some equal to it; a quarter of them have another avatar as their own."""
    near = rng.integers(len(avatars), size=n)
    with np.errstate(over="ignore"):
        spread = np.minimum(np.abs(avatars).max(axis=0), LARGEST / 16) * noise
    moved = np.clip(rng.normal(size=(n, avatars.shape[1])), -3, 3) * spread
    moved[rng.random(n) < 0.2] = 0.0
    originals = np.clip(avatars[near] / 2 + moved / 2, -LARGEST / 2, LARGEST / 2) * 2
    own_rows = np.where(rng.random(n) < 0.25, rng.integers(len(avatars), size=n), near)
    return Problem(avatars, originals, own_rows)


def on_a_grid(rng, avatars, n):
    """Make n originals from the values of the avatars, each component drawn separately."""
    originals = rng.permuted(avatars, axis=0)[rng.integers(len(avatars), size=n)]
    return Problem(avatars, originals, rng.integers(len(avatars), size=n))


def _normal(scale=1.0, ncp=3):
    return lambda rng, m, n: near_avatars(rng, rng.normal(size=(m, ncp)) * scale, n)


def _offset(offset, noise):
    def build(rng, m, n):
        return near_avatars(rng, rng.normal(size=(m, 3)) + np.array(offset), n, noise)

    return build


def _grid(values, ncp, unit=1.0):
    return lambda rng, m, n: on_a_grid(rng, rng.choice(np.array(values) * unit, size=(m, ncp)), n)


def _far_originals(distance):
    def build(rng, m, n):
        directions = rng.normal(size=(n, 3))
        return Problem(rng.normal(size=(m, 3)), distance * np.clip(directions, -1, 1), rng.integers(m, size=n))

    return build


def _mostly_equal(rng, m, n):
    avatars = rng.normal(size=(m, 3))
    avatars[rng.random(m) < 0.9] = avatars[0]
    return near_avatars(rng, avatars, n)


def _mostly_nearly_equal(rng, m, n):
    """Make avatars that differ by a few units in the last place, far from the origin, and one in ten elsewhere."""
    avatars = 1e8 + rng.integers(-4, 5, size=(m, 3)) * np.spacing(1e8)
    avatars[rng.random(m) < 0.1] += rng.normal(size=3)
    return on_a_grid(rng, avatars, n)


def _signs(rng, shape):
    return rng.choice([-1.0, 1.0], size=shape)


def _any_magnitude(rng, m, n):
    avatars = _signs(rng, (m, 3)) * 10.0 ** rng.uniform(-160, 160, size=(m, 3))
    return on_a_grid(rng, avatars, n)


def _a_magnitude_per_row(rng, m, n):
    avatars = rng.normal(size=(m, 3)) * 10.0 ** rng.uniform(-170, 170, size=(m, 1))
    return near_avatars(rng, avatars, n)


def _heavy_tails(rng, m, n):
    return near_avatars(rng, rng.standard_cauchy(size=(m, 3)) ** 3, n, noise=1e-6)


def _edges_of_the_range(rng, m, n):
    ends = [np.nextafter(end, side) for end in (2.0**-400, 2.0**400) for side in (0, end, np.inf)]
    values = [0.0, -0.0, SMALLEST, 2.0**-1022, 2.0**-540, 1e-160, 1.0, 1e160, 2.0**511, LARGEST, *ends]
    return on_a_grid(rng, _signs(rng, (m, 2)) * rng.choice(values, size=(m, 2)), n)


def _on_a_sphere(rng, m, n):
    """Make avatars of the same coordinates in any order and with any sign, equally far from zero but for rounding."""
    avatars = rng.permuted(np.tile(rng.normal(size=6), (m, 1)), axis=1) * _signs(rng, (m, 6))
    avatars[: m // 8, 0] *= 1 + 2.0**-50
    return Problem(avatars, np.zeros((n, 6)), rng.integers(m, size=n))


def _clusters(rng, m, n):
    return near_avatars(rng, rng.choice([-1e15, 0.0, 1e6], size=(m, 3)) + rng.normal(size=(m, 3)), n, noise=1e-15)


def _on_a_line(rng, m, n):
    return near_avatars(rng, rng.normal(size=(m, 1)) * np.array([1.0, -2.0, 3.0]), n, noise=1e-3)


def _categories(rng, m, n):
    avatars = np.column_stack([rng.integers(0, 2, size=(m, 4)) * [1.1, 0.7, 0.3, 2.9], rng.integers(0, 30, m) / 7])
    return on_a_grid(rng, avatars, n)


def _midpoints(rng, m, n):
    """Make originals halfway between two avatars, one of which is their own."""
    avatars = rng.normal(size=(m, 3)).astype(np.float32).astype(np.float64)
    own_rows, other = rng.integers(m, size=(2, n))
    return Problem(avatars, (avatars[own_rows] + avatars[other]) / 2, own_rows)


def _beyond(rng, m, n):
    avatars = rng.normal(size=(m, 3))
    avatars[: m // 2] *= 10.0 ** rng.uniform(150, 307, size=(m // 2, 1))
    return Problem(avatars, rng.normal(size=(n, 3)), rng.integers(m, size=n))


REGIMES = {
    "ordinary": _normal(),
    "one component": _normal(ncp=1),
    "forty components": _normal(ncp=40),
    "near 1e-160": _normal(1e-160),
    "near 1e160": _normal(1e160),
    "near 1e307": _normal(1e307),
    "squares too large for float32": _normal(1e30),
    "too large for float32": _normal(1e100),
    "squares too small for float32": _normal(1e-30),
    "too small for float32": _normal(1e-100),
    "components a million times larger": _normal(np.array([1e6, 1.0, 1e-6])),
    "components 1e30 times larger": _normal(np.array([1e-30, 1.0, 1e30])),
    "offset of 1e8 on one component": _offset([1e8, 0.0, 0.0], 1e-9),
    "offset of 1e8": _offset([1e8, -1e8, 1e8], 1e-9),
    "offset of 1e15": _offset([1e15, 0.0, 1e15], 1e-15),
    "subnormals": _grid(range(-6, 7), 3, SMALLEST),
    "signed zeros": _grid([-0.0, 0.0, 1.0, -1.0], 3),
    "all avatars equal": _grid([0.1], 3),
    "small grid": _grid(range(3), 3),
    "tenths": _grid(range(-9, 10), 2, 0.1),
    "grid of forty components": _grid([0.0, 1.0], 40),
    "originals 1e6 away": _far_originals(1e6),
    "originals 1e12 away": _far_originals(1e12),
    "originals 1e300 away": _far_originals(1e300),
    "nine in ten avatars equal": _mostly_equal,
    "nine in ten avatars nearly equal": _mostly_nearly_equal,
    "any magnitude": _any_magnitude,
    "a magnitude per row": _a_magnitude_per_row,
    "heavy tails": _heavy_tails,
    "edges of the range": _edges_of_the_range,
    "sphere": _on_a_sphere,
    "clusters": _clusters,
    "line": _on_a_line,
    "categories": _categories,
    "midpoints": _midpoints,
    "half of the avatars beyond": _beyond,
}


# Regimes that differ most from each other, for claims that are costly to check in all of them.
VARIED = ("ordinary", "small grid", "nine in ten avatars equal", "a magnitude per row", "edges of the range", "sphere")


def problem_of(regime, m, n, seed=0):
    return REGIMES[regime](np.random.default_rng([seed, *regime.encode()]), m, n)
