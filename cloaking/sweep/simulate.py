"""Originals -> how Local Cloaking and hidden rate answer to k: avatars simulated by the published method, then counted.

Only the avatars are drawn at random; each of them is counted against every original, exactly, by the kernel.
"""

import logging
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from cloaking.kernel import AvatarIndex
from cloaking.kernel.tree import Floats, squares
from cloaking.sweep.results import AtK

log = logging.getLogger(__name__)

SMALLEST_DISTANCE = 1e-12  # of the published method: a neighbour equal to the original has no infinite weight
MOST_ORIGINALS = 1_000_000
MOST_NEIGHBOURS = 1 << 28  # originals times k: their row numbers are held, 1 GiB
LARGEST_COORDINATE = 1e150  # squares of differences of larger ones overflow
METHOD = (
    "Avatars are simulated by the published method (Guillaudeux et al., npj Digital Medicine 6:37, 2023): each is the "
    "weighted mean of the k nearest originals other than its own, the weight of neighbour j proportional to "
    "(1/d_j) e_j 2^-pi(j), with e_j ~ Exp(1), pi a random permutation of 1..k and d_j at least 1e-12. "
    "Each set is measured exactly, every original of it against every avatar."
)

_LEAF = 40  # rows in a leaf of the tree: with tens of neighbours to find, larger ones are faster
_CELLS = 1 << 22  # numbers that an array of a block holds, 32 MiB

Neighbours = NDArray[np.int32]


def refusals(originals: int, ks: Sequence[int]) -> list[str]:
    """Return what cannot be asked of this many originals, one line each."""
    if originals > MOST_ORIGINALS:
        return [
            f"{originals:,} rows, and the sweep takes up to {MOST_ORIGINALS:,}; run the sweep on a sample of them "
            '(--where, such as "pmod(hash(id), 10) = 0"), whose figures are too high for the whole: its k is the least'
        ]
    largest = max(ks)
    if largest >= originals:
        beyond = ",".join(str(k) for k in sorted(ks) if k >= originals)
        return [f"--k {beyond}: an avatar is made of k other originals, and there are {originals - 1:,}; leave it out"]
    if originals * largest > MOST_NEIGHBOURS:
        return [
            f"--k {largest}: {originals:,} originals with that many neighbours do not fit into memory; "
            f"leave out what is above {MOST_NEIGHBOURS // originals:,}, or run the sweep on a sample (--where), whose "
            "figures are too high for the whole"
        ]
    return []


def sweep(originals: Floats, ks: Sequence[int], repeats: int, seed: int) -> tuple[AtK, ...]:
    """Simulate avatars at each k, several times, and measure each time.

    Args:
        originals: `(n, ncp)` finite; their order makes no difference.
        ks: from 1 to n - 1 each.
        repeats: how many sets of avatars to simulate at each k.
        seed: from 0 to 2^32 - 1; with k and the number of the repeat, from 1, it decides a set of avatars, whatever
            other k and repeats there are.

    Returns:
        One result per k, rising.

    Raises:
        ValueError: a k that is out of range.
    """
    points = in_order(originals)
    results = []
    for k in sorted(ks):
        start = time.monotonic()
        # A search for each k: among equally near rows the tree's choice depends on how many it is asked for, and the
        # values at one k must not depend on the others.
        neighbours = nearest_others(points, k)
        seeds = tuple((seed, k, repeat) for repeat in range(1, repeats + 1))
        found = [measure(points, simulate(points, neighbours, np.random.default_rng(own))) for own in seeds]
        at = AtK(k, seeds, *zip(*found, strict=True))
        results.append(at)
        spread = at.spread("local_cloaking")
        log.info("k=%d: local_cloaking=%g (%g to %g) seconds=%.1f", k, *spread, time.monotonic() - start)
    return tuple(results)


def in_order(originals: Floats) -> Floats:
    """Return the rows `(n, ncp)` sorted by their first component, then the second, and so on: the same for any order.

    Rows change hands with random numbers by their place, and a table on a cluster has no order of its own.
    """
    return np.ascontiguousarray(originals[np.lexsort(originals.T[::-1])] + 0.0)  # + 0.0 makes zeros of either sign one


def nearest_others(originals: Floats, k: int) -> Neighbours:
    """Return the rows `(n, k)` of the k nearest originals other than itself, the nearest first, for each of `(n, ncp)`.

    Other by identity: a row that equals the original is a neighbour.

    Raises:
        ValueError: there are no k other originals.
    """
    n = len(originals)
    if not 1 <= k < n:
        raise ValueError(f"k is {k}: expected 1 to {n - 1}, the other originals")
    tree = cKDTree(originals, leafsize=_LEAF)
    neighbours = np.empty((n, k), np.int32)
    step = max(1, _CELLS // (k + 1))
    for i in range(0, n, step):
        _, found = tree.query(originals[i : i + step], k=k + 1, workers=-1)
        itself = found == np.arange(i, i + len(found))[:, None]
        itself[~itself.any(axis=1), k] = True  # more than k equal rows can hide the row itself: then the last one goes
        neighbours[i : i + step] = found[~itself].reshape(-1, k)
    return neighbours


def simulate(originals: Floats, neighbours: Neighbours, rng: np.random.Generator) -> Floats:
    """Return one avatar per original by the published method, in the same order, `(n, ncp)`.

    An avatar is the weighted mean of the original's neighbours; the weight of neighbour j, at a distance d_j, is
    proportional to (1 / d_j) e_j 2^-pi(j), with e_j ~ Exp(1) and pi a random permutation of 1..k.
    Source: Guillaudeux et al., npj Digital Medicine 6:37, 2023.

    Args:
        originals: `(n, ncp)`.
        neighbours: `(n, k)`, as `nearest_others` gives them.
        rng: where the random numbers come from.
    """
    k = neighbours.shape[1]
    avatars = np.empty_like(originals)
    powers = np.exp2(-np.arange(1.0, k + 1.0))
    step = max(1, _CELLS // max(k, originals.shape[1]))
    for i in range(0, len(originals), step):
        rows = neighbours[i : i + step]
        weights = rng.exponential(size=rows.shape) * rng.permuted(np.tile(powers, (len(rows), 1)), axis=1)
        avatars[i : i + step] = _weighted_mean(originals, originals[i : i + step], rows, weights)
    return avatars


def _weighted_mean(originals: Floats, x: Floats, neighbours: Neighbours, weights: Floats) -> Floats:
    """Return the mean `(b, ncp)` of the neighbours `(b, k)` of x by `weights` over their distances.

    It is taken around the nearest one, so that with k = 1, or equal neighbours, the mean is that row to the last bit.
    """
    nearest = originals[neighbours[:, 0]]
    moved, total = np.zeros_like(x), np.zeros(len(x))
    for j in range(neighbours.shape[1]):  # never an array (b, k, ncp)
        other = originals[neighbours[:, j]]
        weight = weights[:, j] / np.maximum(np.sqrt(squares((other - x).T)), SMALLEST_DISTANCE)
        moved += weight[:, None] * (other - nearest)
        total += weight
    return nearest + moved / total[:, None]


def measure(originals: Floats, avatars: Floats) -> tuple[float, float]:
    """Return Local Cloaking and the hidden rate in percent of originals and their avatars, row by row, `(n, ncp)`.

    Where no avatar is closer than its own, an attacker picks among that one and those tied with it: 1 / (1 + tied).
    """
    closer, within = AvatarIndex(avatars).count(originals, avatars)
    cloaking = within - 1  # its own avatar is within, and does not hide it
    n = len(cloaking)
    middle = [(n - 1) // 2, n // 2]
    ties, originals_with = np.unique(cloaking[closer == 0], return_counts=True)
    caught = math.fsum(count / (1 + tied) for tied, count in zip(ties.tolist(), originals_with.tolist(), strict=True))
    return int(np.partition(cloaking, middle)[middle].sum()) / 2, 100 * (n - caught) / n
