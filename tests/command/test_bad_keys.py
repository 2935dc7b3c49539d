"""Bad keys: of types that make no key, of two types, null, repeated, missing, without a partner."""

import decimal

import pyarrow as pa
import pytest
from bad_input import (
    KEYS,
    Refused,
    X,
    Y,
    as_type,
    assert_refused,
    avatars,
    binaries,
    both,
    csv_text,
    dates,
    doubles_in_lists,
    local_timestamps,
    maps,
    moment,
    nested_structs,
    originals,
    parameters,
    planted_texts,
    renamed,
    timestamps,
)

# The type's name in Spark -> how to make a column of it.
NO_KEY = {
    "double": as_type(pa.float64()),
    "float": as_type(pa.float32()),
    "boolean": as_type(pa.bool_(), lambda value: value % 2 == 0),
    "array<double>": doubles_in_lists,
    "map<string,double>": maps,
    "struct<a:bigint>": as_type(pa.struct({"a": pa.int64()}), lambda value: {"a": value}),
    "struct<a:struct<b:array<double>>>": nested_structs,
}

BAD_KEYS = {
    **{
        f"a key of type {kind}": Refused(
            files=both(make), problems=[f"{t}.parquet' | 'id' | {kind} | makes no key" for t in "oa"]
        )
        for kind, make in NO_KEY.items()
    },
    "one key column of two with a type that makes no key": Refused(
        files={"o.parquet": originals(n=X), "a.parquet": avatars(n=Y)},
        arguments="--id id,n --components x",
        problems=["o.parquet' | 'n' | double | makes no key", "a.parquet' | 'n' | double | makes no key"],
    ),
    "integers against text": Refused(
        files={"a.parquet": avatars(id=[str(k) for k in KEYS])},
        problems=["o.parquet' | a.parquet' | 'id' | bigint | string | cast"],
    ),
    "integers against zero-padded text": Refused(
        files={"a.parquet": avatars(id=[f"{k:09}" for k in KEYS])}, problems=["'id' | bigint | string | cast"]
    ),
    "integers against decimals": Refused(
        files={"a.parquet": avatars(id=as_type(pa.decimal128(12, 0))(KEYS))},
        problems=["'id' | bigint | decimal(12,0) | cast"],
    ),
    "integers against doubles": Refused(
        files={"a.parquet": avatars(id=[float(k) for k in KEYS])},
        problems=["a.parquet' | 'id' | double | makes no key"],
    ),
    "dates against timestamps": Refused(
        files={"o.parquet": originals(id=dates(KEYS[:4])), "a.parquet": avatars(id=timestamps(KEYS))},
        problems=["'id' | date | timestamp | cast"],
    ),
    "timestamps with and without a zone": Refused(
        files={"o.parquet": originals(id=local_timestamps(KEYS[:4])), "a.parquet": avatars(id=timestamps(KEYS))},
        problems=["'id' | timestamp_ntz | timestamp | cast"],
    ),
    "unsigned longs against longs": Refused(
        files={"a.parquet": avatars(id=pa.array(KEYS, pa.uint64()))}, problems=["'id' | bigint | decimal(20,0) | cast"]
    ),
    "decimals of scales that no type holds both": Refused(
        files={
            "o.parquet": originals(id=as_type(pa.decimal128(38, 30), decimal.Decimal)(KEYS[:4])),
            "a.parquet": avatars(id=as_type(pa.decimal128(38, 0), decimal.Decimal)(KEYS)),
        },
        arguments="--components x",
        problems=["'id' | decimal(38,30) | decimal(38,0) | cast"],
    ),
    "a key of no type": Refused(
        files=both(lambda values: pa.nulls(len(values))), problems=["o.parquet'", "a.parquet'"]
    ),
    "times of a day": Refused(
        files=both(as_type(pa.time64("us"), lambda value: moment(value).time())), problems=["o.parquet'", "a.parquet'"]
    ),
    "text against binary": Refused(
        files={"o.parquet": originals(id=planted_texts(KEYS[:4])), "a.parquet": avatars(id=binaries(KEYS))},
        problems=["'id' | string | binary | cast"],
    ),
    "timestamps of nanoseconds": Refused(
        files=both(as_type(pa.timestamp("ns"), moment)),
        problems=["o.parquet' | 'id' is timestamp in nanoseconds", "a.parquet' | 'id' is timestamp in nanoseconds"],
    ),
    "zero-padded text against text": Refused(
        files={
            "o.parquet": originals(id=[f"{k:09}" for k in KEYS[:4]]),
            "a.parquet": avatars(id=[str(k) for k in KEYS]),
        },
        problems=["a.parquet' | 4 of 4 originals have no avatar | 'id' | with zeros in front of numbers"],
    ),
    "zero-padded CSV against integers": Refused(
        files={"o.csv": csv_text(originals(id=[f"{k:09}" for k in KEYS[:4]]))},
        problems=["a.parquet' | 4 of 4 originals have no avatar | 'id'"],
    ),
    "blanks after some ids": Refused(
        files={
            "o.parquet": originals(id=["a", "b", "c ", "d"]),
            "a.parquet": avatars(id=["a", "b", "c", "d ", "e", "f"]),
        },
        problems=["a.parquet' | 2 of 4 originals have no avatar | 'id'"],
    ),
    "blanks after ids in CSV": Refused(
        files={"o.csv": csv_text(originals(id=[f"{k} " for k in KEYS[:4]])), "a.csv": csv_text(avatars())},
        problems=["a.csv' | 4 of 4 originals have no avatar | 'id'"],
    ),
    "ids of another case": Refused(
        files={"o.parquet": originals(id=list("abcd")), "a.parquet": avatars(id=list("ABCDEF"))},
        problems=["4 of 4 originals have no avatar"],
    ),
    "null keys of originals": Refused(
        files={"o.parquet": originals(id=[*KEYS[:3], None])},
        problems=["originals | o.parquet' | 1 of 4 rows have no key | 'id' | fill or drop"],
    ),
    "null keys of avatars": Refused(
        files={"a.parquet": avatars(id=[*KEYS[:5], None])},
        problems=["avatars | a.parquet' | 1 of 6 rows have no key | 'id' | fill or drop"],
    ),
    "nothing but null keys": Refused(
        files=both(lambda values: pa.array([None] * len(values), pa.int64())),
        problems=["o.parquet' | 4 of 4", "a.parquet' | 6 of 6"],
    ),
    "an empty key in CSV": Refused(
        files={"o.csv": csv_text(originals(id=[*KEYS[:3], ""]))}, problems=["o.csv' | 1 of 4 rows have no key | 'id'"]
    ),
    "half a key of two": Refused(
        files={"o.parquet": originals(n=[1, 1, 1, None]), "a.parquet": avatars(n=[1] * 6)},
        arguments="--id id,n --components x",
        problems=["o.parquet' | 1 of 4 | 'id', 'n'"],
    ),
    "repeated originals": Refused(
        files={"o.parquet": originals(id=[*KEYS[:3], KEYS[0]])},
        problems=["o.parquet' | 1 key(s) | several | 'id' | keep one"],
    ),
    "several avatars of an original": Refused(
        files={"a.parquet": avatars(id=[*KEYS[:4], KEYS[0], KEYS[0]])},
        problems=["a.parquet' | 1 key(s) | several | 'id' | keep one"],
    ),
    "repeated on both sides": Refused(
        files={"o.parquet": originals(id=[KEYS[0]] * 4), "a.parquet": avatars(id=[KEYS[0]] * 6)},
        problems=["o.parquet' | 1 key(s)", "a.parquet' | 1 key(s)"],
    ),
    "originals without avatars": Refused(
        files={"a.parquet": avatars(id=[*KEYS[1:], 73920])},
        problems=["a.parquet' | 1 of 4 originals have no avatar | 'id' | --made-from"],
    ),
    "no key column": Refused(files={"o.parquet": originals(id=None)}, problems=["o.parquet' | 'id' | missing | --id"]),
    "no key column anywhere": Refused(
        files={"o.parquet": originals(id=None), "a.parquet": avatars(id=None)},
        problems=["o.parquet' | 'id' | missing", "a.parquet' | 'id' | missing"],
    ),
    "a key column of another case": Refused(
        files={"o.parquet": renamed(originals(), id="ID")},
        problems=["o.parquet' | 'id' | missing | 'ID' | write it alike"],
    ),
    "a field of a struct as key": Refused(
        files=both(lambda v: pa.array([{"id": k} for k in v])),
        arguments="--id id.id",
        problems=["o.parquet' | 'id.id' | missing", "a.parquet' | 'id.id' | missing"],
    ),
    "--made-from a missing column": Refused(
        arguments="--made-from source", problems=["a.parquet' | 'source' | missing | --made-from"]
    ),
    "a key named like a result": Refused(
        files={"o.parquet": renamed(originals(), id="tied"), "a.parquet": renamed(avatars(), id="tied")},
        arguments="--id tied",
        problems=["o.parquet' | 'tied' | rename"],
    ),
}


@pytest.mark.parametrize("case", parameters(BAD_KEYS))
def test_bad_keys_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
