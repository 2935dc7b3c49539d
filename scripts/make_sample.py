"""Make the sample in tests/data from scikit-learn's wine data: originals, avatars and their counts.

Usage: python scripts/make_sample.py

178 Italian wines of three cultivars, 13 measurements (UCI Machine Learning Repository, "Wine", CC BY 4.0),
standardised and projected on 5 components; avatars by the published method with k = 20. Two runs write the same bytes:
the random generator has a fixed seed, the axes have a fixed sign, and the originals' coordinates are rounded to
9 decimals, so that another linear algebra library, which differs in the last bits, gives the same files. Those in
tests/data were made with Python 3.11, numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1, pandas 2.3.3 and pyarrow 26.0.1;
another pyarrow writes the same tables in other bytes.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.spatial import cKDTree
from sklearn.datasets import load_wine

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).resolve().parents[1]
K = 20
NCP = 5
SEED = 20230310  # any
DECIMALS = 9  # of the originals' coordinates: far coarser than the rounding of an SVD, far finer than the data
SMALLEST_DISTANCE = 1e-12  # of the published method: keeps the weight of a neighbour equal to the original finite


def avatars(originals: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return one avatar per original (n, ncp), by the published method, in the same order: (n, ncp).

    An avatar is the weighted mean of the k nearest originals other than its own; the weight of neighbour j is
    proportional to (1 / d_j) e_j 2^-pi(j), with e_j ~ Exp(1) and pi a random permutation of 1..k.
    Raises ValueError if there are fewer than k other originals, or k is below 1.
    Source: Guillaudeux et al., npj Digital Medicine 6:37, 2023.
    """
    n = len(originals)
    if not 1 <= k < n:
        raise ValueError(f"k is {k}: expected 1 to {n - 1}, the other originals")
    distances, neighbours = _nearest_others(originals, k)
    contributions = np.exp2(-rng.permuted(np.tile(np.arange(1.0, k + 1.0), (n, 1)), axis=1))
    weights = rng.exponential(size=(n, k)) * contributions / np.maximum(distances, SMALLEST_DISTANCE)
    weighted, total = np.zeros_like(originals), np.zeros((n, 1))
    for j in range(k):  # a plain sum in neighbour order: the same bits on every machine, and no (n, k, ncp) array
        weight = weights[:, j : j + 1]
        weighted += weight * originals[neighbours[:, j]]
        total += weight
    return weighted / total


def principal_coordinates(data: Floats, ncp: int) -> Floats:
    """Return the first `ncp` coordinates (n, ncp) of the standardised data (n, p).

    The sign of each axis makes its loading of largest magnitude positive.
    """
    standardised = (data - data.mean(axis=0)) / data.std(axis=0)
    _, _, axes = np.linalg.svd(standardised, full_matrices=False)
    axes = axes[:ncp]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(ncp), largest])[:, None]
    coordinates: Floats = standardised @ axes.T
    return coordinates


def counts(originals: Floats, own: Floats) -> tuple[pd.DataFrame, str]:
    """Return closer, tied and cloaking per original, by the double loop of tests/oracle.py, and the summary as text."""
    sys.path.insert(0, str(ROOT / "tests"))
    import oracle

    closer, tied, cloaking = oracle.cloaking(own, originals)
    table = pd.DataFrame({"id": np.arange(len(originals)), "closer": closer, "tied": tied, "cloaking": cloaking})
    summary = oracle.figures(closer, tied)
    return table, ", ".join(f"{name} {value!r}" for name, value in summary._asdict().items())


def main(argv: list[str] | None = None) -> int:
    """Write the sample."""
    parser = argparse.ArgumentParser(description="Write the wine sample: originals, avatars, counts.")
    parser.add_argument("--output", type=Path, default=ROOT / "tests" / "data", help="folder (default: tests/data)")
    output = parser.parse_args(argv).output
    output.mkdir(parents=True, exist_ok=True)

    data, target = load_wine(return_X_y=True)
    originals = principal_coordinates(data, NCP).round(DECIMALS) + 0.0  # + 0.0: no -0.0
    own = avatars(originals, K, np.random.default_rng(SEED))
    table, summary = counts(originals, own)

    cultivar = pa.array([str(label + 1) for label in target], pa.string())
    pq.write_table(_keyed(originals).append_column("cultivar", cultivar), output / "wine_originals.parquet")
    pq.write_table(_keyed(own), output / "wine_avatars.parquet")
    _write_projections(originals, output / "wine.projections.original-0.csv")
    _write_projections(own, output / "wine.projections.avatars-0.csv")
    table.to_csv(output / "wine_counts.csv", index=False, lineterminator="\n")
    print(f"{len(originals)} originals, k {K}, ncp {NCP}: {summary}")
    return 0


def _nearest_others(originals: Floats, k: int) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return distances and rows of each one's k nearest other originals; another row with equal values is one too."""
    n = len(originals)
    distances, neighbours = cKDTree(originals, leafsize=40).query(originals, k=k + 1, workers=-1)
    dropped = neighbours == np.arange(n)[:, None]
    dropped[~dropped.any(axis=1), k] = True  # the row itself may be missing among over k equal rows: drop the last
    return distances[~dropped].reshape(n, k), neighbours[~dropped].reshape(n, k)


def _keyed(coordinates: Floats) -> pa.Table:
    columns = {"id": pa.array(np.arange(len(coordinates)), pa.int64())}
    for number, column in enumerate(coordinates.T, start=1):
        columns[f"dim_{number}"] = pa.array(column, pa.float64())
    return pa.table(columns)


def _write_projections(coordinates: Floats, path: Path) -> None:
    names = [f"Dim. {number}" for number in range(1, coordinates.shape[1] + 1)]
    pd.DataFrame(coordinates, columns=names).to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    raise SystemExit(main())
