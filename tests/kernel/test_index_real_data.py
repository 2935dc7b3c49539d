"""The kernel's counts of real data, against their published counts."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernel_problems import numpy_warnings_are_errors

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


HERE = Path(__file__).resolve().parents[1]


REFERENCE_DATA = Path(os.environ.get("CLOAKING_REFERENCE_DATA", HERE.parents[1] / "shared" / "data"))


def test_the_sample_has_its_counts():
    originals, avatars = (
        pd.read_parquet(HERE / "data" / f"wine_{side}.parquet").set_index("id").filter(like="dim_")
        for side in ("originals", "avatars")
    )
    known = pd.read_csv(HERE / "data" / "wine_counts.csv", index_col="id").loc[originals.index]
    own = avatars.loc[originals.index].to_numpy()
    closer, within = AvatarIndex(avatars.to_numpy()).count(originals.to_numpy(), own)
    np.testing.assert_array_equal(np.column_stack([closer, within - closer - 1, within - 1]), known)


@pytest.mark.parametrize("name", ["aids_famd_nf5", "wbcd_famd_nf2"])
def test_real_data_have_their_known_counts(name):
    if not REFERENCE_DATA.is_dir():
        pytest.skip(f"no reference data in {REFERENCE_DATA}; CLOAKING_REFERENCE_DATA names the folder")
    originals, avatars, known = (
        _table(f"{name}_{part}").set_index("id").sort_index() for part in ("originals", "avatars", "counts")
    )
    known = known[["closer", "tied", "cloaking"]].to_numpy()
    avatars, originals = avatars.to_numpy(), originals.to_numpy()
    index = AvatarIndex(avatars)
    for rows in (slice(None), slice(100, 300), slice(0, None, 7)):
        closer, within = index.count(originals[rows], avatars[rows])
        found = np.column_stack([closer, within - closer - 1, within - 1])
        np.testing.assert_array_equal(found, known[rows])


def _table(name):
    parquet = REFERENCE_DATA / f"{name}.parquet"
    if parquet.exists():
        return pd.read_parquet(parquet)
    return pd.read_csv(REFERENCE_DATA / f"{name}.csv", float_precision="round_trip")
