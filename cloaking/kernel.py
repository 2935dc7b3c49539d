"""Counts, per original, the avatars nearer than its own and those within its tie bound: numpy arrays in and out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

TIE_TOLERANCE = 1e-12
LARGEST_TIE_TOLERANCE = 1e-6
_EXACT_INTEGER = 2**53  # the largest magnitude up to which every integer is a float64
_SAFE_EXPONENT = 400  # squares and sums of coordinates within 2^+-400 neither overflow nor lose bits
_BLOCK = 1 << 22  # pairs compared at a time, 32 MiB a temporary


class AvatarIndex:
    """The avatars, ready to be counted against.

    Args:
        avatars: `(m, ncp)` finite numbers, m and ncp at least 1; float32 and integers are converted exactly.

    Raises:
        ValueError: nan or infinite rows, a shape that does not fit, integers beyond 2^53.
    """

    def __init__(self, avatars: ArrayLike) -> None:
        self._avatars = np.ascontiguousarray(_coordinates("avatars", avatars).T)
        if 0 in self._avatars.shape:
            raise ValueError(f"avatars: at least one row and one column are needed, found {self._avatars.shape[::-1]}")

    @property
    def shape(self) -> tuple[int, int]:
        """The number of avatars and of components, `(m, ncp)`."""
        ncp, m = self._avatars.shape
        return m, ncp

    def save(self, path: Path | str) -> None:
        """Write the index to one file, which `load` can map into memory."""
        np.save(path, self._avatars)

    @classmethod
    def load(cls, path: Path | str) -> AvatarIndex:
        """Open a saved index; its pages are shared by all processes of a machine that open the same file."""
        index = cls.__new__(cls)
        index._avatars = np.load(path, mmap_mode="r")
        return index

    def count(
        self,
        originals: ArrayLike,
        own: ArrayLike,
        tie_tolerance: float = TIE_TOLERANCE,
        own_in_index: bool | ArrayLike = True,
    ) -> tuple[Counts, Counts]:
        """Count, for each original, the avatars closer than its own and those within its tie bound.

        With d the distance of an original x to its own avatar and tau = tie_tolerance * (|x| + |own|), `closer` counts
        the avatars nearer than d - tau and `within` those up to d + tau. `within` counts the own avatar where it is
        in this index. Counts over disjoint sets of avatars add up.

        Args:
            originals: `(n, ncp)` finite numbers.
            own: `(n, ncp)`, each original's own avatar.
            tie_tolerance: relative width of a tie, from 0 to 1e-6.
            own_in_index: whether an original's own avatar is among the avatars of this index, one value or `(n,)`.

        Returns:
            closer, within: `(n,)` int64 each.

        Raises:
            ValueError: as for the constructor, or an original whose own avatar is said to be in the index and is not.
        """
        x, y = _coordinates("originals", originals), _coordinates("own", own)
        if x.shape != y.shape or x.shape[1] != self.shape[1]:
            raise ValueError(
                f"originals {x.shape} and own {y.shape} must have one shape, with {self.shape[1]} columns as the avatars"
            )
        if not 0 <= tie_tolerance <= LARGEST_TIE_TOLERANCE:
            raise ValueError(f"tie_tolerance must be from 0 to {LARGEST_TIE_TOLERANCE}, not {tie_tolerance}")
        expected = np.asarray(own_in_index)
        if expected.dtype != bool or expected.shape not in ((), (len(x),)):
            raise ValueError(f"own_in_index must be one boolean or {len(x)} of them")

        closer, within = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64)
        found = np.zeros(len(x), bool)
        exponents = _exponents(x, y)
        with np.errstate(over="ignore", under="ignore"):
            for exponent in np.unique(exponents):
                rows = np.flatnonzero(exponents == exponent)
                scaled = [np.ldexp(values, -exponent) for values in (self._avatars, x[rows], y[rows])]
                closer[rows], within[rows], found[rows] = _count(*scaled, tie_tolerance)
        lost = np.count_nonzero(expected & ~found)
        if lost:
            raise ValueError(f"own: {lost} of {len(x)} rows are not among the avatars of this index")
        return closer, within


def _coordinates(name: str, values: ArrayLike) -> Floats:
    """Return the values as a float64 matrix, converted exactly, or say why they cannot be counted."""
    array = np.asarray(values)
    if array.ndim != 2:
        raise ValueError(f"{name}: a matrix (rows, ncp) is needed, found {array.ndim} dimension(s)")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(f"{name}: integers or floats of at most 64 bits are needed, found {array.dtype}")
    if array.dtype.kind in "iu":
        beyond = np.count_nonzero(((array > _EXACT_INTEGER) | (array < -_EXACT_INTEGER)).any(axis=1))
        if beyond:
            raise ValueError(f"{name}: {beyond} rows hold integers beyond 2^53, which float64 would round")
    array = array.astype(np.float64, copy=False)
    bad = np.count_nonzero(~np.isfinite(array).all(axis=1))
    if bad:
        raise ValueError(f"{name}: {bad} rows hold nan or infinite values")
    return array


def _exponents(x: Floats, own: Floats) -> NDArray[np.int32]:
    """Return the power of two that brings each original and its own avatar near 1; 0 where no scaling is needed."""
    largest = np.maximum(np.abs(x).max(axis=1, initial=0.0), np.abs(own).max(axis=1, initial=0.0))
    usual = (largest == 0) | ((largest >= 2.0**-_SAFE_EXPONENT) & (largest <= 2.0**_SAFE_EXPONENT))
    return np.where(usual, 0, np.frexp(largest)[1])


def _squares(a: Floats, b: Floats) -> Floats:
    """Return sum_k (a_k - b_k)^2 over the first axis, rounded at each step in component order."""
    total = np.square(a[0] - b[0])
    for k in range(1, len(a)):
        total += np.square(a[k] - b[k])
    return total


def _count(avatars: Floats, x: Floats, own: Floats, tie_tolerance: float) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """Count every pair; the avatars are (ncp, m), the originals (n, ncp)."""
    x, own = np.ascontiguousarray(x.T), np.ascontiguousarray(own.T)
    s = _squares(x, own)
    d = np.sqrt(s)
    zero = np.zeros_like(x)
    tau = tie_tolerance * (np.sqrt(_squares(x, zero)) + np.sqrt(_squares(own, zero)))
    lower = np.where(d <= tau, 0.0, (s - 2 * d * tau) + tau * tau)
    upper = (s + 2 * d * tau) + tau * tau

    n, m = x.shape[1], avatars.shape[1]
    closer, within, found = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, bool)
    step = max(1, _BLOCK // m)
    width = min(m, _BLOCK)
    for i in range(0, n, step):
        rows = slice(i, i + step)
        for j in range(0, m, width):
            block = avatars[:, j : j + width]
            squares = _squares(x[:, rows, None], block[:, None, :])
            closer[rows] += np.count_nonzero(squares < lower[rows, None], axis=1)
            within[rows] += np.count_nonzero(squares <= upper[rows, None], axis=1)
            candidates = np.flatnonzero((squares == s[rows, None]).any(axis=1) & ~found[rows])
            for row in candidates + i:
                found[row] = (own[:, row, None] == block).all(axis=0).any()
    return closer, within, found
