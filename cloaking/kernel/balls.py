"""Put float32 balls around originals, with a proven bound on the rounding error of a squared distance.

The bound. Let u = 2^-24, K the number of components, a = original - centre and b = avatar - centre, where the centre is
that of a leaf or of a block of originals. The error of a float32 a is at most u|a|: one subtraction in float64, then
one rounding. So the error of the distance between the rounded points is at most u(|a| + |b|), and that of its square at
most 2.1u(|a| + |b|)^2. The error of a sum of K + 1 products in float32, in any order, with or without fused
multiply-add, is at most (K+1)u/(1-(K+1)u) times the sum of their magnitudes (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., sections 3.1 and 4.2). For |b|^2 - 2ab, and also for |a|^2, the sum of the magnitudes is
at most (|a| + |b|)^2. The later roundings (of |b|^2, the bound, the differences) add at most 6u times the same and the
bound. As (|a| + |b|)^2 <= 2(|a|^2 + |b|^2), the total error stays below (4K + 24)u times |a|^2 + |b|^2, or times the
bound if that is larger. `slack` is twice that, which also covers the float64 sums of the definition, whose relative
error is at most (K + 2)2^-53. Underflow adds at most 2^-126 per product in float32, flushed to zero or not, and 2^-1074
in float64: `balls_of` widens the bounds by this `floor`. Overflow decides nothing: where a squared bound, |a|^2 or a
leaf's squared radius reaches 2^120, no avatar of the leaf is decided, and below that no product can overflow. A box
whose squared distance overflows is beyond any bound below 2^120, and every comparison with nan is false.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloaking.kernel.tree import Floats, Singles, Tree, box

BLOCK = 128  # the least number of originals that descend together: more save calls, fewer have a smaller common box
_BLOCK_1D = 1024  # the same for one component, halved with each further one: with few components, boxes stay small
_UNIT = 2.0**-24  # rounding of float32
LARGEST = 2.0**120  # squared distances from here on decide nothing, since float32 may overflow while computing them


class Balls(NamedTuple):
    """Two balls around each original, in the tree's unit, and blocks of neighbouring originals, the last one padded."""

    centres: Floats  # (n, ncp)
    lower: Singles  # (n,) squared radius minus its slack
    upper: Singles  # (n,) squared radius plus its slack
    middles: Floats  # (blocks, ncp) centres of the blocks' boxes
    halves: Floats  # (blocks, ncp) half the sides of these boxes
    offsets: Singles  # (blocks, ncp, 2, size) 1, and the coordinate relative to the block's middle
    bounds: Floats  # (3, blocks) smallest and largest `lower`, largest `upper`
    lowers: Singles  # (blocks, size)
    uppers: Singles  # (blocks, 2, size) 1, and the upper


def slack(ncp: int) -> float:
    """Return the error of a squared distance, relative to |a|^2 + |b|^2: twice the bound derived above."""
    return (8 * ncp + 48) * _UNIT


def balls_of(tree: Tree, originals: Floats, lower: Floats, upper: Floats, exponents: NDArray[np.int32]) -> Balls:
    """Return the balls in the tree's unit, the lower ones shrunk and the upper ones widened by the rounding error."""
    n, ncp = originals.shape
    unit, error = int(tree.exponent[0]), slack(ncp)
    power = 2 * (exponents - unit)
    floor = error / _UNIT * (2.0**-126 + np.ldexp(1.0, power - 1070))
    low, high = np.ldexp(lower, power) * (1 - error) - floor, np.ldexp(upper, power) * (1 + error) + floor

    size = max(BLOCK, _BLOCK_1D >> (ncp - 1))
    blocks = -(-n // size)
    filled = np.minimum(np.arange(blocks * size), n - 1).reshape(blocks, size)
    centres = originals * np.ldexp(1.0, -unit)
    grouped = np.ascontiguousarray(centres.T)[:, filled]
    middles, halves = box(grouped.min(axis=2), grouped.max(axis=2))
    offsets = np.ones((blocks, ncp, 2, size), np.float32)
    offsets[:, :, 1] = (grouped - middles[:, :, None]).transpose(1, 0, 2)
    bounds = np.stack([low[filled].min(axis=1), low[filled].max(axis=1), high[filled].max(axis=1)])

    decided = high < LARGEST
    lower32 = np.where(decided, low, -np.inf).astype(np.float32)
    upper32 = np.where(decided, high, np.inf).astype(np.float32)
    uppers = np.ones((blocks, 2, size), np.float32)
    uppers[:, 1] = upper32[filled]
    return Balls(centres, lower32, upper32, middles.T.copy(), halves.T.copy(), offsets, bounds, lower32[filled], uppers)
