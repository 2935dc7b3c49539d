"""Count, for each original, the avatars closer than its own and those within its tie bound, in numpy arrays.

The counts are those of the definition, bit for bit: `sieve` counts in float32, leaf by leaf of a `tree`, what rounding
cannot change; `tie_rule` decides the rest in float64 with the definition's own operations.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloaking.kernel.duplicates import CACHED, distinct
from cloaking.kernel.sieve import Sieve, Undecided
from cloaking.kernel.tie_rule import bounds, exact, scaled
from cloaking.kernel.tree import Counts, Floats, Rows, Tree, build, leaf_of, load, save
from cloaking.options import EXACT_INTEGER, LARGEST_TIE_TOLERANCE, TIE_TOLERANCE

_BATCH = 1 << 17  # originals counted together: many share a leaf, and their arrays stay small
_NEIGHBOURS = 3  # levels above the leaves of the nodes in which originals are sorted by radius: blocks of like radii
_WAITING = 1 << 20  # undecided pairs that may wait until all undecided points of their originals are known


class AvatarIndex:
    """An index of the avatars that counts how many of them are closer to originals than their own.

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
        groups = distinct(points)
        if groups:
            points, weights = points[groups.first], np.bincount(groups.of)
        with np.errstate(all="ignore"):  # values that overflow decide nothing
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
        """Open a saved index; all processes of a machine that open the same file share its memory pages."""
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
            ValueError: as for the constructor, or an original's own avatar should be in the index, but no avatar there
                lies within the tie bound. A wrong `own_in_index` is detected only in that case: if a single avatar
                lies within the bound, it is taken for the own avatar.
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

        groups = distinct(x, y, *([expected[:, None].astype(np.float64)] if expected.ndim else []))
        expected = np.broadcast_to(expected, len(x))
        if groups:
            x, y, expected = x[groups.first], y[groups.first], expected[groups.first]
        closer, within, lost = np.empty(len(x), np.int64), np.empty(len(x), np.int64), np.empty(len(x), np.bool_)
        with np.errstate(all="ignore"):  # values that overflow are beyond their bound or stay undecided
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
        """Return an order (n,) in which successive originals are near each other and have balls of similar size."""
        key = np.empty(len(x), np.uint64)
        for i in range(0, len(x), CACHED):
            part = slice(i, i + CACHED)
            apart = x[part] - own[part]
            distance = np.einsum("ik,ik->i", apart, apart).astype(np.float32)
            key[part] = leaf_of(self._tree, x[part]) >> _NEIGHBOURS
            key[part] <<= np.uint64(32)
            key[part] |= distance.view(np.uint32)
        return np.argsort(key)


def _coordinates(name: str, values: ArrayLike) -> Floats:
    """Return the values as a float64 matrix, converted exactly, or raise an error that says why that is impossible."""
    array = np.asarray(values)
    if array.ndim != 2:
        raise ValueError(f"{name}: a matrix (rows, ncp) is needed, found {array.ndim} dimension(s)")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise ValueError(f"{name}: integers or floats of at most 64 bits are needed, found {array.dtype}")
    if array.dtype.kind in "iu":
        beyond = np.count_nonzero(((array > EXACT_INTEGER) | (array < -EXACT_INTEGER)).any(axis=1))
        if beyond:
            raise ValueError(f"{name}: {beyond} rows hold integers beyond 2^53, which float64 would round")
    array = array.astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.count_nonzero(~finite.all(axis=1))
        raise ValueError(f"{name}: {bad} rows hold nan or infinite values")
    return array


def _count(
    tree: Tree, x: Floats, own: Floats, tie_tolerance: float, expected: NDArray[np.bool_]
) -> tuple[Counts, Counts, NDArray[np.bool_]]:
    """Return closer and within, and whether the own avatar is expected but missing, (n,) each."""
    exponents, lower, upper = bounds(x, own, tie_tolerance)
    sieve, n, seen = Sieve(tree, x, lower, upper, exponents), len(x), scaled(np.ascontiguousarray(x.T), exponents)
    counts, points = np.zeros((2, n)), np.zeros(n)

    def settle(pairs: Undecided) -> None:
        found = exact(tree, seen, lower, upper, exponents, pairs.rows, pairs.leaves) - pairs.sure
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
        # the sieve never decides the own avatar, so that a single undecided point must be the own avatar
        lone = (expected & (points == 1))[pairs.rows]
        counts[1] += np.bincount(pairs.rows[lone], weights=pairs.avatars[lone], minlength=n)
        settle(Undecided(*(column[~lone] for column in pairs)))
    counts += sieve.closer
    closer, within = counts.astype(np.int64)
    return closer, within, expected & (closer == within)
