"""Compute the axes of PCA, MCA and FAMD from sums over the originals, by an exact eigendecomposition on the driver.

numpy only. A numeric column becomes (x - mean) / std, where the standard deviation divides by n, not n - 1; a modality
becomes (d - p) / sqrt(p), where d is 1 for the rows that have it and p is their share (Pagès, Multiple Factor Analysis
by Example Using R, 2015, chapter 3). The axes are the eigenvectors of Z'Z / n over these columns: this is FAMD, or PCA
if all columns are numeric. MCA takes the eigenvectors of X'X / (n Q^2) / sqrt(c c') - sqrt(c c') with c = p / Q and Q
the number of variables (Greenacre, Correspondence Analysis in Practice, 2017, appendix A): the same matrix, divided
by Q.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cloaking.errors import InputError

Floats = NDArray[np.float64]

RANK_TOLERANCE = 1e-12  # of the largest eigenvalue: some ten times the rounding error of a zero one for 1,000 columns
EQUAL = 1e-9  # relative gap below which two eigenvalues count as equal
SAME_SIZE = 1e-6  # loadings this near to the largest count as equal to it, so that rounding does not choose the sign


@dataclass(frozen=True)
class Sums:
    """The sums from one pass over the originals, in which number c is scaled to z = (x - centre[c]) / unit[c].

    `products` is `(p, p)` with p = numbers + modalities; only its upper triangle is used: sums of z z', sums of z per
    modality, rows per modality (on the diagonal) and rows per pair of modalities.
    """

    rows: int
    centre: Floats = field(repr=False)
    unit: Floats = field(repr=False)
    totals: Floats = field(repr=False)
    products: Floats = field(repr=False)


@dataclass(frozen=True)
class Axes:
    """The columns' scaling and their axes: mean, std `(numbers,)`, share `(modalities,)`, axes `(p, ncp)`."""

    mean: Floats
    std: Floats
    share: Floats
    eigenvalues: Floats
    axes: Floats
    rank: int

    def unique(self) -> bool:
        """Return whether the first ncp axes span a unique space: the next eigenvalue is below the last one kept."""
        ncp = self.axes.shape[1]
        if ncp >= len(self.eigenvalues):
            return True
        last, following = self.eigenvalues[ncp - 1 : ncp + 1]
        return bool(last - following > EQUAL * last)


def solve(sums: Sums, ncp: int, variables: int | None = None, label: str = "originals") -> Axes:
    """Return the first `ncp` axes of the scaled columns, by an exact eigendecomposition.

    The sign of an axis makes its largest loading positive; of several equally large ones, the first counts.

    Args:
        sums: sums over the originals, without constant columns.
        ncp: number of axes.
        variables: for MCA the number of variables, by which the eigenvalues are divided.
        label: the name of the originals in messages.

    Raises:
        InputError: there are fewer axes than `ncp`; the message gives their number.
    """
    numbers, n = len(sums.totals), sums.rows
    products = np.triu(sums.products) / n
    products += np.triu(products, 1).T
    mean = sums.totals / n  # relative to the centre, in units; small, since the centre is near the mean
    share = np.diag(products)[numbers:].copy()
    middle = np.concatenate([mean, share])
    covariance = products - np.outer(middle, middle)
    std = np.sqrt(np.diag(covariance)[:numbers])
    spread = np.concatenate([std, np.sqrt(share)])
    correlation = covariance / np.outer(spread, spread)

    eigenvalues, vectors = np.linalg.eigh(correlation / (variables or 1))
    eigenvalues, vectors = np.maximum(eigenvalues[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.count_nonzero(eigenvalues > RANK_TOLERANCE * eigenvalues[0]))
    if ncp > rank:
        raise InputError(f"{label}: --ncp {ncp} is above the rank of the columns, {rank}; give --ncp {rank} or less")
    axes = vectors[:, :ncp]
    size = np.abs(axes)
    first = np.argmax(size >= (1 - SAME_SIZE) * size.max(axis=0), axis=0)
    axes = axes * np.sign(axes[first, np.arange(ncp)])
    return Axes(sums.centre + sums.unit * mean, sums.unit * std, share, eigenvalues, axes, rank)
