"""Counts, per original, the avatars nearer than its own and those within its tie bound: numpy arrays in and out.

The counts are those of the definition, bit for bit: `sieve` counts what no rounding can turn, in float32, leaf by leaf
of a `tree`; `_settle` decides the rest by the definition's own operations in float64.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloaking.sieve import Sieve, Undecided
from cloaking.tree import Counts, Floats, Rows, Tree, build, leaf_of, load, save, squares

TIE_TOLERANCE = 1e-12
LARGEST_TIE_TOLERANCE = 1e-6
_EXACT_INTEGER = 2**53  # the largest magnitude up to which every integer is a float64
_SAFE_EXPONENT = 400  # squares and sums of coordinates within 2^+-400 neither overflow nor lose bits
_BATCH = 1 << 17  # originals counted together: many meet in a leaf, and their arrays stay small
_NEIGHBOURS = 3  # levels above the leaves within which originals are ordered by distance: blocks of like radii
_CACHED = 1 << 13  # rows looked at together, in a core's cache
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as in Fibonacci hashing
_WAITING = 1 << 20  # pairs of original and leaf that may wait to be known as lone
_SETTLED = 1 << 18  # coordinates that exact distances are computed from at a time, 2 MiB a temporary


class AvatarIndex:
    """The avatars, ready to be counted against.

    Args:
        avatars: `(m, ncp)` finite numbers, m and ncp at least 1; float32 and integers are converted exactly.

    Raises:
        ValueError: nan or infinite rows, a shape that does not fit, integers beyond 2^53.
    """

    def __init__(self, avatars: ArrayLike) -> None:
        points = _coordinates("avatars", avatars)
        if 0 in points.shape:
            raise ValueError(f"avatars: at least one row and one column are needed, found {points.shape}")
        weights = np.ones(len(points), np.int64)
        groups = _distinct(points)
        if groups:
            points, weights = points[groups.first], np.bincount(groups.of)
        with np.errstate(all="ignore"):  # what overflows decides nothing
            self._tree = build(points, weights)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of avatars and of components, `(m, ncp)`."""
        return int(self._tree.counts[1]), self._tree.points.shape[1]

    def save(self, path: Path | str) -> None:
        """Write the index to one file, which `load` can map into memory."""
        save(self._tree, path)

    @classmethod
    def load(cls, path: Path | str) -> AvatarIndex:
        """Open a saved index; its pages are shared by all processes of a machine that open the same file."""
        index = cls.__new__(cls)
        index._tree = load(path)
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
            ValueError: as for the constructor, or an original whose own avatar is said to be in the index and nothing
                there lies within its tie bound. A wrong word is noticed only so: what alone lies there is taken for it.
        """
        x, y = _coordinates("originals", originals), _coordinates("own", own)
        if x.shape != y.shape or x.shape[1] != self.shape[1]:
            raise ValueError(
                f"originals {x.shape} and own {y.shape} must have one shape, with as many columns as the avatars, "
                f"{self.shape[1]}"
            )
        if not 0 <= tie_tolerance <= LARGEST_TIE_TOLERANCE:
            raise ValueError(f"tie_tolerance must be from 0 to {LARGEST_TIE_TOLERANCE}, not {tie_tolerance}")
        expected = np.asarray(own_in_index)
        if expected.dtype != bool or expected.shape not in ((), (len(x),)):
            raise ValueError(f"own_in_index must be one boolean or {len(x)} of them")

        groups = _distinct(x, y, *([expected[:, None].astype(np.float64)] if expected.ndim else []))
        expected = np.broadcast_to(expected, len(x))
        if groups:
            x, y, expected = x[groups.first], y[groups.first], expected[groups.first]
        closer, within, lost = np.empty(len(x), np.int64), np.empty(len(x), np.int64), np.empty(len(x), np.bool_)
        with np.errstate(all="ignore"):  # what overflows is beyond its bound, or left undecided
            order = self._order(x, y)
            for i in range(0, len(order), _BATCH):
                rows = order[i : i + _BATCH]
                counts = _count(self._tree, x[rows], y[rows], tie_tolerance, expected[rows])
                closer[rows], within[rows], lost[rows] = counts
        if groups:
            closer, within, lost = closer[groups.of], within[groups.of], lost[groups.of]
        missing = np.count_nonzero(lost)
        if missing:
            raise ValueError(f"own: {missing} of {len(lost)} rows are not among the avatars of this index")
        return closer, within

    def _order(self, x: Floats, own: Floats) -> Rows:
        """Return an order (n,) in which neighbours are near each other in space and have balls of like size."""
        key = np.empty(len(x), np.uint64)
        for i in range(0, len(x), _CACHED):
            part = slice(i, i + _CACHED)
            apart = x[part] - own[part]
            distance = np.einsum("ik,ik->i", apart, apart).astype(np.float32)
            key[part] = leaf_of(self._tree, x[part]) >> _NEIGHBOURS
            key[part] <<= np.uint64(32)
            key[part] |= distance.view(np.uint32)
        return np.argsort(key)


class _Groups(NamedTuple):
    """Rows put together because they are equal."""

    first: Rows  # (k,) one row of each group
    of: Rows  # (n,) the group of each row


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
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.count_nonzero(~finite.all(axis=1))
        raise ValueError(f"{name}: {bad} rows hold nan or infinite values")
    return array


def _distinct(*arrays: Floats) -> _Groups | None:
    """Return groups of rows equal in all arrays (n, any), or None where they would save less than half of them.

    A group is the rows in the bucket of a hash that equal the bucket's last row; the others stay alone.
    """
    n = len(arrays[0])
    rows = np.arange(n)
    if n >= 2**31:
        return None
    bits = (2 * n).bit_length()
    bucket = np.empty(n, np.intp)
    for i in range(0, n, _CACHED):
        part = slice(i, i + _CACHED)
        bucket[part] = _hash([array[part] for array in arrays]) >> np.uint64(64 - bits)
    last = np.empty(1 << bits, np.int32)  # half the bytes, twice the share in cache
    last[bucket] = rows
    like = last.take(bucket).astype(np.intp)
    if 2 * np.count_nonzero(like == rows) > n:
        return None
    for i in range(0, n, _CACHED):
        part = slice(i, i + _CACHED)
        for array in arrays:
            differ = array[part] != array.take(like[part], axis=0)
            if differ.any():
                like[part] = np.where(differ.any(axis=1), rows[part], like[part])
    first = np.flatnonzero(like == rows)
    last[first] = np.arange(len(first))
    return _Groups(first, last.take(like).astype(np.intp))


def _hash(arrays: list[Floats]) -> NDArray[np.uint64]:
    """Return a number (n,) that is equal for equal rows; its upper bits depend on all bits of all arrays (n, any)."""
    digest = np.zeros(len(arrays[0]), np.uint64)
    for array in arrays:
        bits = (array + 0.0).view(np.uint64)  # + 0.0 makes zeros of either sign one
        bits ^= bits >> np.uint64(32)
        bits *= _ODD
        bits ^= bits >> np.uint64(29)
        digest *= _ODD
        digest += bits @ np.cumprod(np.full(array.shape[1], _ODD))
    return digest


def _squares(a: Floats, b: Floats) -> Floats:
    """Return the squared distances of the columns of (ncp, ...), rounded at each step in component order."""
    return squares(a - b)


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
        x, y = _scaled(x, exponents), _scaled(y, exponents)
        s = _squares(x, y)
        d = np.sqrt(s)
        tau = tie_tolerance * (np.sqrt(squares(x)) + np.sqrt(squares(y)))
        lower = np.where(d <= tau, 0.0, (s - 2 * d * tau) + tau * tau)
        return exponents, lower, (s + 2 * d * tau) + tau * tau


def _exponents(x: Floats, own: Floats) -> NDArray[np.int32]:
    """Return the power of two that brings each original and its own avatar, (ncp, n), near 1; 0 if not needed."""
    largest = np.maximum(np.abs(x).max(axis=0), np.abs(own).max(axis=0))
    usual = (largest == 0) | ((largest >= 2.0**-_SAFE_EXPONENT) & (largest <= 2.0**_SAFE_EXPONENT))
    return np.zeros(len(usual), np.int32) if usual.all() else np.where(usual, 0, np.frexp(largest)[1])


def _scaled(columns: Floats, exponents: NDArray[np.int32]) -> Floats:
    """Return the columns (ncp, n) over 2^exponents."""
    return np.ldexp(columns, -exponents) if exponents.any() else columns


def _count(
    tree: Tree, x: Floats, own: Floats, tie_tolerance: float, expected: NDArray[np.bool_]
) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """Return closer and within, and which own avatars are expected and not found, (n,) each."""
    exponents, lower, upper = bounds(x, own, tie_tolerance)
    sieve, n, seen = Sieve(tree, x, lower, upper, exponents), len(x), _scaled(np.ascontiguousarray(x.T), exponents)
    counts, points = np.zeros((2, n)), np.zeros(n)

    def settle(pairs: Undecided) -> None:
        found = _settle(tree, seen, lower, upper, exponents, pairs.rows, pairs.leaves) - pairs.sure
        for total, values in zip(counts, found, strict=True):
            total += np.bincount(pairs.rows, weights=values, minlength=n)

    waiting: list[Undecided] = []
    for undecided in sieve:
        points += np.bincount(undecided.rows, weights=undecided.points, minlength=n)
        waiting.append(undecided)
        if sum(len(pairs.rows) for pairs in waiting) > _WAITING:
            for pairs in waiting:
                settle(pairs)
            waiting = []
    for pairs in waiting:
        # the own avatar is never decided by the sieve, so that a lone undecided point is the own one
        lone = (expected & (points == 1))[pairs.rows]
        counts[1] += np.bincount(pairs.rows[lone], weights=pairs.avatars[lone], minlength=n)
        settle(Undecided(*(column[~lone] for column in pairs)))
    counts += sieve.closer
    closer, within = counts.astype(np.int64)
    return closer, within, expected & (closer == within)


def _settle(
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
        distances = _squares(x[:, row, None], points)  # inf where a leaf has no avatar, and never within
        counts[0, part] = ((distances < lower[row, None]) * weights).sum(axis=1)
        counts[1, part] = ((distances <= upper[row, None]) * weights).sum(axis=1)
    return counts
