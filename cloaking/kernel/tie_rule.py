"""Decide, with the definition's own operations, which avatars are closer than the original's own or tied with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloaking.kernel.tree import Counts, Floats, Rows, Tree, squares

_SAFE_EXPONENT = 400  # squares and sums of coordinates within 2^+-400 neither overflow nor lose bits
_SETTLED = 1 << 18  # coordinates in one batch of exact distances, 2 MiB per temporary array


def bounds(originals: Floats, own: Floats, tie_tolerance: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Return the bounds that decide about other avatars, from the originals and their own avatars, both `(n, ncp)`.

    Returns:
        exponents: `(n,)`; original and avatars are to be divided by 2^exponent first, which is nearly always 1.
        lower: `(n,)`, the squared distance, so scaled, below which an avatar is closer than the original's own.
        upper: `(n,)`, the squared distance, so scaled, up to which an avatar is within the tie bound.
    """
    with np.errstate(all="ignore"):  # a bound that overflows includes every distance that does not
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
    """Return closer and within (2, pairs) by the definition, for originals `rows` in `leaves`; x is (ncp, n)."""
    counts = np.empty((2, len(rows)), np.int64)
    step = max(1, _SETTLED // tree.points[0].size)
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        row, points, weights = rows[part], tree.points[leaves[part]].transpose(1, 0, 2), tree.weights[leaves[part]]
        if exponents[row].any():
            points = np.ldexp(points, -exponents[row, None])
        distances = squares(x[:, row, None] - points)  # inf in an empty slot of a leaf, hence never within
        counts[0, part] = ((distances < lower[row, None]) * weights).sum(axis=1)
        counts[1, part] = ((distances <= upper[row, None]) * weights).sum(axis=1)
    return counts


def scaled(columns: Floats, exponents: NDArray[np.int32]) -> Floats:
    """Return the columns (ncp, n) divided by 2^exponents."""
    return np.ldexp(columns, -exponents) if exponents.any() else columns


def _exponents(x: Floats, own: Floats) -> NDArray[np.int32]:
    """Return the exponents that scale each original and its own avatar, (ncp, n), to about 1; 0 if not needed."""
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(own).max(axis=0))
    usual = (largest == 0) | ((largest >= 2.0**-_SAFE_EXPONENT) & (largest <= 2.0**_SAFE_EXPONENT))
    return np.zeros(len(usual), np.int32) if usual.all() else np.where(usual, 0, np.frexp(largest)[1])
