"""Decide by the definition's own operations which avatars are closer than the own one, and which tie with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloaking.kernel.tree import Counts, Floats, Rows, Tree, squares

_SAFE_EXPONENT = 400  # squares and sums of coordinates within 2^+-400 neither overflow nor lose bits
_SETTLED = 1 << 18  # coordinates that exact distances are computed from at a time, 2 MiB a temporary


def bounds(originals: Floats, own: Floats, tie_tolerance: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return what decides about an avatar, from an original and its own avatar, `(n, ncp)` both.

    Returns:
        exponents: `(n,)`, the power of two over which original and avatars are to be seen, nearly always 0.
        lower: `(n,)`, the squared distance, seen so, below which an avatar is closer than the own one.
        upper: `(n,)`, the squared distance up to which it is within the tie bound.
    """
    with np.errstate(all="ignore"):  # a bound that overflows holds whatever does not
        x, y = np.ascontiguousarray(originals.T), np.ascontiguousarray(own.T)
        exponents = _exponents(x, y)
        x, y = scaled(x, exponents), scaled(y, exponents)
        s = squares(x - y)
        d = np.sqrt(s)
        tau = tie_tolerance * (np.sqrt(squares(x)) + np.sqrt(squares(y)))
        lower = np.where(d <= tau, 0.0, (s - 2 * d * tau) + tau * tau)
        return exponents, lower, (s + 2 * d * tau) + tau * tau


def exact(
    tree: Tree, x: Floats, lower: Floats, upper: Floats, exponents: NDArray[np.int32], rows: Rows, leaves: Rows
) -> Counts:
    """Return closer and within (2, pairs) of originals `rows` in `leaves`, by the definition; x is (ncp, n)."""
    counts = np.empty((2, len(rows)), np.int64)
    step = max(1, _SETTLED // tree.points[0].size)
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        row, points, weights = rows[part], tree.points[leaves[part]].transpose(1, 0, 2), tree.weights[leaves[part]]
        if exponents[row].any():
            points = np.ldexp(points, -exponents[row, None])
        distances = squares(x[:, row, None] - points)  # inf where a leaf has no avatar, and never within
        counts[0, part] = ((distances < lower[row, None]) * weights).sum(axis=1)
        counts[1, part] = ((distances <= upper[row, None]) * weights).sum(axis=1)
    return counts


def scaled(columns: Floats, exponents: NDArray[np.int32]) -> Floats:
    """Return the columns (ncp, n) over 2^exponents."""
    return np.ldexp(columns, -exponents) if exponents.any() else columns


def _exponents(x: Floats, own: Floats) -> NDArray[np.int32]:
    """Return the power of two that brings each original and its own avatar, (ncp, n), near 1; 0 if not needed."""
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(own).max(axis=0))
    usual = (largest == 0) | ((largest >= 2.0**-_SAFE_EXPONENT) & (largest <= 2.0**_SAFE_EXPONENT))
    return np.zeros(len(usual), np.int32) if usual.all() else np.where(usual, 0, np.frexp(largest)[1])
