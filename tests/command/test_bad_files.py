"""Bad files of any format but CSV: damaged, empty, of another format, missing, folders that do not fit."""

import pyarrow as pa
import pytest
from bad_input import (
    KEYS,
    Refused,
    X,
    assert_refused,
    avatars,
    csv_text,
    damaged_parquet,
    link_table,
    originals,
    parameters,
    parquet_bytes,
)

BAD_FILES = {
    "a Parquet file cut short": Refused(
        files={"o.parquet": parquet_bytes(originals())[:-20]}, problems=["originals | o.parquet' | cannot be read"]
    ),
    "a Parquet file without its head": Refused(
        files={"a.parquet": parquet_bytes(avatars())[200:]}, problems=["avatars | a.parquet' | cannot be read"]
    ),
    "a Parquet file with damaged pages": Refused(
        files={"a.parquet": damaged_parquet(avatars())}, problems=["avatars | a.parquet' | cannot be read"]
    ),
    "an empty file named Parquet": Refused(
        files={"o.parquet": b""}, problems=["originals | o.parquet' | cannot be read"]
    ),
    "text named Parquet": Refused(
        files={"o.parquet": csv_text(originals())}, problems=["originals | o.parquet' | cannot be read | format"]
    ),
    "Parquet named CSV": Refused(files={"o.csv": parquet_bytes(originals())}, problems=["originals | o.csv' | UTF-8"]),
    "a Parquet file without rows": Refused(
        files={"o.parquet": {"id": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}},
        problems=["o.parquet' | no rows | --where"],
    ),
    "a Parquet file with only a key column, without rows": Refused(
        files={"o.parquet": {"id": pa.array([], pa.int64())}}, problems=["no numeric column", "o.parquet' | no rows"]
    ),
    "a column there twice but for case": Refused(
        files={"o.parquet": originals(X=X)}, problems=["originals | o.parquet' | x"]
    ),
    "a folder of schemas that differ": Refused(
        files={"f/1.parquet": originals(), "f/2.parquet": originals(x=["a"] * 4)},
        arguments="--originals parquet:{}/f",
        problems=["f' | cannot be read"],
    ),
    "a folder, one file without the component": Refused(
        files={"f/1.parquet": {"id": KEYS[:2], "x": X[:2]}, "f/2.parquet": {"id": KEYS[2:4]}},
        arguments="--originals parquet:{}/f",
        problems=["f' | 'x' | null | 2 of 4"],
    ),
    "a folder with a file of text": Refused(
        files={"f/1.parquet": originals(), "f/2.parquet": csv_text(originals())},
        arguments="--originals parquet:{}/f",
        problems=["f' | cannot be read"],
    ),
    "an empty folder": Refused(
        files={"f/_SUCCESS": b""}, arguments="--originals parquet:{}/f", problems=["f' | cannot be read"]
    ),
    "a path through a file": Refused(
        files={"f": b""}, arguments="--originals parquet:{}/f/o.parquet", problems=["f/o.parquet' | cannot be read"]
    ),
    "a path that is not there": Refused(
        arguments="--originals parquet:{}/no --avatars csv:{}/no",
        problems=["originals | no' | cannot be read", "avatars | no' | cannot be read"],
    ),
    "a path of a pattern without match": Refused(
        arguments="--originals parquet:{}/*.pqt", problems=["pqt' | cannot be read"]
    ),
    "a format that nobody has": Refused(
        arguments="--originals nosuch:{}/o.parquet", problems=["originals 'nosuch: | cannot be read"]
    ),
    "an address without its format": Refused(
        arguments="--originals s3://bucket/o", problems=["--originals | format | did you mean parquet:s3://bucket/o?"]
    ),
    "a streaming source": Refused(
        arguments="--originals rate:{}/o.parquet", problems=["originals 'rate: | cannot be read"]
    ),
    "text lines": Refused(
        files={"o.txt": csv_text(originals())},
        arguments="--originals text:{}/o.txt",
        problems=["'txt' | write the table as"],
    ),
    "a file named ORC that is not ORC": Refused(
        files={"o.orc": b"x"}, problems=["originals | o.orc' | cannot be read"]
    ),
    "a file named JSON that is not JSON": Refused(
        files={"o.json": "[1, 2"}, problems=["o.json' | no numeric column", "o.json' | 'id' | missing"]
    ),
    "a path of damaged rows and a condition": Refused(
        files={"o.parquet": damaged_parquet(originals())},
        arguments="--where 'x > 0'",
        problems=["originals | o.parquet' | cannot be read"],
    ),
    "damage on both sides": Refused(
        files={"o.parquet": damaged_parquet(originals()), "a.parquet": damaged_parquet(avatars())},
        problems=["originals | o.parquet' | cannot be read", "avatars | a.parquet' | cannot be read"],
    ),
    "a damaged link": Refused(
        files={"l.parquet": damaged_parquet(link_table())},
        arguments="--link parquet:{}/l.parquet",
        problems=["link | l.parquet' | cannot be read"],
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_FILES))
def test_bad_files_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
