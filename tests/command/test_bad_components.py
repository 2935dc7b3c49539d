"""Bad components: no numbers, missing or infinite values, integers that float64 would round, missing columns."""

import decimal

import pyarrow as pa
import pytest
from bad_input import (
    INF,
    KEYS,
    NAN,
    Refused,
    X,
    Y,
    as_type,
    assert_refused,
    avatars,
    both,
    dates,
    doubles_in_lists,
    local_timestamps,
    maps,
    nested_structs,
    originals,
    parameters,
    renamed,
    timestamps,
    vectors,
)

# The type's name in Spark -> how to make a column of it.
NO_NUMBER = {
    "boolean": as_type(pa.bool_(), lambda value: value > 739160),
    "date": dates,
    "timestamp": timestamps,
    "timestamp_ntz": local_timestamps,
    "string": as_type(pa.string(), str),
    "binary": as_type(pa.binary(), lambda value: str(value).encode()),
    "array<double>": doubles_in_lists,
    "map<string,double>": maps,
    "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>": vectors,
    "struct<a:struct<b:array<double>>>": nested_structs,
}

BAD_COMPONENTS = {
    **{
        f"a component of type {kind[:30]}": Refused(
            files=both(make, "x"),
            arguments="--components x",
            problems=[f"{t}.parquet' | 'x' | {kind} | not a number | cast" for t in "oa"],
        )
        for kind, make in NO_NUMBER.items()
    },
    "nothing but a vector": Refused(
        files=both(vectors, "x"), problems=["originals | o.parquet' | no numeric column | --components"]
    ),
    "a component of text among the avatars": Refused(
        files={"a.parquet": avatars(x=[str(v) for v in Y])}, problems=["a.parquet' | 'x' | string | not a number"]
    ),
    "a null": Refused(
        files={"o.parquet": originals(x=[*X[:3], None])}, problems=["o.parquet' | 'x' | null | 1 of 4 | fill or drop"]
    ),
    "a NaN": Refused(
        files={"a.parquet": avatars(x=[*Y[:5], NAN])}, problems=["a.parquet' | 'x' | NaN | 1 of 6 | fill or drop"]
    ),
    "an infinity": Refused(
        files={"a.parquet": avatars(x=[*Y[:5], -INF])}, problems=["a.parquet' | 'x' | infinite | 1 of 6"]
    ),
    "null, NaN and infinity, each with its count": Refused(
        files={"o.parquet": originals(x=[None, NAN, NAN, INF])},
        problems=["'x' | null | 1 of 4", "'x' | NaN | 2 of 4", "'x' | infinite | 1 of 4"],
    ),
    "a float that is NaN": Refused(
        files={"o.parquet": originals(x=as_type(pa.float32())([*X[:3], NAN]))},
        problems=["o.parquet' | 'x' | NaN | 1 of 4"],
    ),
    "a column of nothing but nulls": Refused(
        files={"o.parquet": originals(x=as_type(pa.float64())([None] * 4))},
        problems=["o.parquet' | 'x' | null | 4 of 4"],
    ),
    "2^53 + 1": Refused(
        files={"o.parquet": originals(x=[2**53 + 1, 1, 2, 3])}, problems=["o.parquet' | 'x' | 2^53 | 1 of 4 | rescale"]
    ),
    "-2^53 - 1 among the avatars": Refused(
        files={"a.parquet": avatars(x=[-(2**53) - 1, 1, 2, 3, 4, 5])}, problems=["a.parquet' | 'x' | 2^53 | 1 of 6"]
    ),
    "unsigned longs beyond 2^53": Refused(
        files={"o.parquet": originals(x=pa.array([2**63 + 1, 1, 2, 3], pa.uint64()))},
        problems=["o.parquet' | 'x' | 2^53 | 1 of 4"],
    ),
    "decimals beyond 2^53": Refused(
        files={"o.parquet": originals(x=as_type(pa.decimal128(30, 0), decimal.Decimal)([10**29, 1, 2, 3]))},
        problems=["o.parquet' | 'x' | 2^53 | 1 of 4"],
    ),
    "a component that is nowhere": Refused(
        arguments="--components x,y",
        problems=["o.parquet' | 'y' | missing | --components", "a.parquet' | 'y' | missing"],
    ),
    "a component that avatars lack": Refused(
        files={"o.parquet": originals(y=X)}, problems=["a.parquet' | 'y' | missing"]
    ),
    "a component of another case": Refused(
        files={"a.parquet": renamed(avatars(), x="X")}, problems=["a.parquet' | 'x' | missing | 'X' | write it alike"]
    ),
    "a field of a struct as component": Refused(
        files=both(lambda v: pa.array([{"y": k} for k in v]), "x"),
        arguments="--components x.y",
        problems=["o.parquet' | 'x.y' | missing", "a.parquet' | 'x.y' | missing"],
    ),
    "no number but the key": Refused(
        files={"o.parquet": originals(x=None)}, problems=["originals | o.parquet' | no numeric column | --components"]
    ),
    "--ncp above the components": Refused(arguments="--ncp 2", problems=["--ncp 2 | 1 component"]),
    "--ncp immense": Refused(arguments="--ncp 99999999999999999999", problems=["--ncp | 99999999999999999999"]),
    "all that is wrong at once": Refused(
        files={
            "o.parquet": originals(id=[KEYS[0], KEYS[0], None, KEYS[3]], x=[NAN, INF, 1.0, 2.0]),
            "a.parquet": avatars(x=[*Y[:5], None]),
        },
        arguments="--group-by ward",
        problems=[
            "o.parquet' | 'ward' | missing",
            "o.parquet' | 1 of 4 rows have no key",
            "o.parquet' | 1 key(s)",
            "o.parquet' | NaN",
            "o.parquet' | infinite",
            "a.parquet' | 'x' | null | 1 of 6",
        ],
    ),
    "a name of two lines": Refused(
        files={"o.parquet": renamed(originals(), x="x\ny")}, problems=["a.parquet' | component 'x y' | missing"]
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_COMPONENTS))
def test_bad_components_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
