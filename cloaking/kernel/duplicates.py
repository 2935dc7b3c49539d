"""Group equal rows, so that each distinct row is counted only once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloaking.kernel.tree import Floats, Rows

CACHED = 1 << 13  # rows processed together, few enough for a core's cache
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, as in Fibonacci hashing


class Groups(NamedTuple):
    """Groups of equal rows."""

    first: Rows  # (k,) one row of each group
    of: Rows  # (n,) the group of each row


def distinct(*arrays: Floats) -> Groups | None:
    """Return groups of rows equal in all arrays (n, any), or None if grouping would save less than half of the rows.

    The rows of a hash bucket that equal the bucket's last row form a group; each other row is a group of its own.
    """
    n = len(arrays[0])
    rows = np.arange(n)
    if n >= 2**31:
        return None
    bits = (2 * n).bit_length()
    bucket = np.empty(n, np.intp)
    for i in range(0, n, CACHED):
        part = slice(i, i + CACHED)
        bucket[part] = _hash([array[part] for array in arrays]) >> np.uint64(64 - bits)
    last = np.empty(1 << bits, np.int32)  # half the bytes of int64: twice as much fits into the cache
    last[bucket] = rows
    like = last.take(bucket).astype(np.intp)
    if 2 * np.count_nonzero(like == rows) > n:
        return None
    for i in range(0, n, CACHED):
        part = slice(i, i + CACHED)
        for array in arrays:
            differ = array[part] != array.take(like[part], axis=0)
            if differ.any():
                like[part] = np.where(differ.any(axis=1), rows[part], like[part])
    first = np.flatnonzero(like == rows)
    last[first] = np.arange(len(first))
    return Groups(first, last.take(like).astype(np.intp))


def _hash(arrays: list[Floats]) -> NDArray[np.uint64]:
    """Return a hash (n,) that is equal for equal rows; its upper bits depend on all bits of all arrays (n, any)."""
    digest = np.zeros(len(arrays[0]), np.uint64)
    for array in arrays:
        bits = (array + 0.0).view(np.uint64)  # + 0.0 turns -0.0 into 0.0
        bits ^= bits >> np.uint64(32)
        bits *= _ODD
        bits ^= bits >> np.uint64(29)
        digest *= _ODD
        digest += bits @ np.cumprod(np.full(array.shape[1], _ODD))
    return digest
