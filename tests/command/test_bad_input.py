"""Input of every kind that can be wrong, or only looks so: the exit code, the lines, and that nothing else is left.

Each record holds 7391 in its key and its coordinates, which no line may show. `pytest -rA` prints all lines.
"""

import contextlib
import datetime
import decimal
import resource
import shlex
import subprocess

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

PLANTED = "7391"
KEYS = [73911, 73912, 73913, 73914, 73918, 73919]  # the last two of avatars alone
X = [739150.0, 739160.0, 739170.0, 739180.0]
Y = [739151.0, 739160.0, 739190.0, 739181.0, 739149.0, 739169.0]
# By hand: the cloaking is 1 (a tie), 0, 4, 0, and an attacker guesses one of two for the first.
FIGURES = {"local_cloaking": 0.5, "hidden_rate": 37.5, "originals": 4, "avatars": 6}
NAN, INF = float("nan"), float("inf")


def o(**columns):
    """Return good originals, with other columns where given, and without those that are None."""
    return {name: values for name, values in ({"id": KEYS[:4], "x": X} | columns).items() if values is not None}


def a(**columns):
    """Return good avatars, likewise."""
    return {name: values for name, values in ({"id": KEYS, "x": Y} | columns).items() if values is not None}


def both(make, name="id", **more):
    """Return good tables but for one column, made of its values."""
    return {
        "o.parquet": o(**{name: make(o()[name])}, **more),
        "a.parquet": a(**{name: make(a()[name])}, **more),
    }


def text(columns, sep=",", point="."):
    """Return a table as CSV of some dialect."""
    rows = [columns, *zip(*columns.values(), strict=True)]
    lines = [sep.join(str(v).replace(".", point) if isinstance(v, float) else str(v) for v in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def renamed(columns, **names):
    return {names.get(name, name): values for name, values in columns.items()}


def link(**columns):
    return {"original_id": KEYS[:4], "avatar_id": KEYS[:4]} | columns


def parquet(columns):
    """Return the bytes of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


def damaged(columns):
    """Return a Parquet file whose footer is whole and whose pages are not."""
    whole = bytearray(parquet(columns))
    whole[4:120] = b"\xff" * 116
    return bytes(whole)


def as_type(kind, made=lambda value: value):
    return lambda values: pa.array([made(value) for value in values], kind)


def day(value):
    return datetime.date(2000, 1, 1) + datetime.timedelta(days=int(value) % 7391)


def moment(value):
    return datetime.datetime(2000, 1, 1) + datetime.timedelta(seconds=int(value))


PAIR = [("Zz-planted-7391", 7391.25)]
VECTOR = {"type": 1, "size": None, "indices": None, "values": [7391.25]}
VECTOR_TYPE = pa.struct(
    {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float64())}
)
DOUBLES, STAMP, PLAIN_STAMP = pa.list_(pa.float64()), pa.timestamp("us", "UTC"), pa.timestamp("us")
NESTED = pa.struct({"a": pa.struct({"b": DOUBLES})})

# What Spark calls the type -> how a column of it is made.
NO_KEY = {
    "double": as_type(pa.float64()),
    "float": as_type(pa.float32()),
    "boolean": as_type(pa.bool_(), lambda value: value % 2 == 0),
    "array<double>": as_type(DOUBLES, lambda value: [value]),
    "map<string,double>": as_type(pa.map_(pa.string(), pa.float64()), lambda _: PAIR),
    "struct<a:bigint>": as_type(pa.struct({"a": pa.int64()}), lambda value: {"a": value}),
    "struct<a:struct<b:array<double>>>": as_type(NESTED, lambda value: {"a": {"b": [value]}}),
}
NO_NUMBER = {
    "boolean": as_type(pa.bool_(), lambda value: value > 739160),
    "date": as_type(pa.date32(), day),
    "timestamp": as_type(STAMP, moment),
    "timestamp_ntz": as_type(PLAIN_STAMP, moment),
    "string": as_type(pa.string(), str),
    "binary": as_type(pa.binary(), lambda value: str(value).encode()),
    "array<double>": as_type(DOUBLES, lambda value: [value]),
    "map<string,double>": as_type(pa.map_(pa.string(), pa.float64()), lambda _: PAIR),
    "struct<type:tinyint,size:int,indices:array<int>,values:array<double>>": as_type(VECTOR_TYPE, lambda _: VECTOR),
    "struct<a:struct<b:array<double>>>": as_type(NESTED, lambda value: {"a": {"b": [value]}}),
}
GOOD_KEYS = {
    "bytes": as_type(pa.int8(), lambda value: value - 73900),
    "shorts": as_type(pa.int16(), lambda value: value - 73900),
    "integers": as_type(pa.int32()),
    "unsigned longs": as_type(pa.uint64(), lambda value: value + 2**63),
    "longs beyond 2^53": as_type(pa.int64(), lambda value: value - 73911 + 2**53),
    "negative longs": as_type(pa.int64(), lambda value: value - 73913),
    "decimals": as_type(pa.decimal128(12, 2), lambda value: decimal.Decimal(value) / 4),
    "wide decimals": as_type(pa.decimal128(38, 0), lambda value: decimal.Decimal(10**37 + value)),
    "dates": as_type(pa.date32(), day),
    "timestamps": as_type(STAMP, moment),
    "timestamps without a zone": as_type(PLAIN_STAMP, moment),
    "binaries": as_type(pa.binary(), lambda value: bytes([0, 255, value % 256])),
    "text": as_type(pa.string(), lambda value: f"Zz-planted-{value}"),
    "large text": as_type(pa.large_string(), lambda value: f"Zz 'planted' {value}"),
    "texts with blanks": as_type(pa.string(), lambda value: " " * (value - 73910)),
    "texts one of which is empty": as_type(pa.string(), lambda value: "z" * (value - 73911)),
    "categories of pandas": lambda values: pa.array([f"k{value}" for value in values]).dictionary_encode(),
}
GOOD_NUMBERS = {
    "bytes": as_type(pa.int8(), lambda value: int(value) - 739150),
    "shorts": as_type(pa.int16(), lambda value: int(value) - 739150),
    "unsigned integers": as_type(pa.uint32(), int),
    "longs": as_type(pa.int64(), int),
    "longs near 2^53": as_type(pa.int64(), lambda value: int(value - 739150) * 2**47),
    "floats": as_type(pa.float32()),
    "decimals": as_type(pa.decimal128(12, 2), lambda value: decimal.Decimal(value) / 4),
    "wide decimals": as_type(pa.decimal128(38, 10), lambda value: decimal.Decimal(value)),
    "denormals": as_type(pa.float64(), lambda value: (value - 739150) * 5e-324),
    "immense doubles": as_type(pa.float64(), lambda value: (value - 739150) * 2e306),
}
STRANGE_NAMES = [
    "Dim. 1",
    "a.b.c",
    "a b",
    "it's",
    'a "b"',
    "a`b",
    "é ß 漢",
    "a\\b",
    "a;b",
    "*",
    "1",
    "key_1",
    "own_1",
    "x'",
]

DATABASE = "url = 'jdbc:postgresql://127.0.0.1:1/x'\ntable = 't'\n"
FROM_DATABASE = "--config {}/c.toml --originals jdbc:staff"
GATE = "gates = [{{ metric = '{}', at_least = {} }}]"
BY_POSITION = {"o.parquet": o(id=None), "a.parquet": {"x": Y[:4]}}
RAW = {"o.parquet": o(id=KEYS[:4], y=["b", "c", "b", "c"]), "a.parquet": a(y=["b", "c", "b", "c", "b", "b"])}

# Case -> files, arguments, and of each line the words that it must hold. Files named o.* and a.* are the originals and
# avatars unless the arguments say otherwise; {} is the folder of the case.
BAD = {
    # keys
    **{
        f"a key of type {kind}": (both(make), "", [f"{t}.parquet' | 'id' | {kind} | makes no key" for t in "oa"])
        for kind, make in NO_KEY.items()
    },
    "one key of two that makes none": ({"o.parquet": o(n=X), "a.parquet": a(n=Y)}, "--id id,n --components x",
        ["o.parquet' | 'n' | double | makes no key", "a.parquet' | 'n' | double | makes no key"]),
    "integers against text": ({"a.parquet": a(id=[str(k) for k in KEYS])}, "",
        ["o.parquet' | a.parquet' | 'id' | bigint | string | cast"]),
    "integers against zero-padded text": ({"a.parquet": a(id=[f"{k:09}" for k in KEYS])}, "",
        ["'id' | bigint | string | cast"]),
    "integers against decimals": ({"a.parquet": a(id=as_type(pa.decimal128(12, 0))(KEYS))}, "",
        ["'id' | bigint | decimal(12,0) | cast"]),
    "integers against doubles": ({"a.parquet": a(id=[float(k) for k in KEYS])}, "",
        ["a.parquet' | 'id' | double | makes no key"]),
    "dates against timestamps": ({"o.parquet": o(id=GOOD_KEYS["dates"](KEYS[:4])),
        "a.parquet": a(id=GOOD_KEYS["timestamps"](KEYS))}, "", ["'id' | date | timestamp | cast"]),
    "timestamps with and without a zone": ({"o.parquet": o(id=GOOD_KEYS["timestamps without a zone"](KEYS[:4])),
        "a.parquet": a(id=GOOD_KEYS["timestamps"](KEYS))}, "", ["'id' | timestamp_ntz | timestamp | cast"]),
    "unsigned longs against longs": ({"a.parquet": a(id=pa.array(KEYS, pa.uint64()))}, "",
        ["'id' | bigint | decimal(20,0) | cast"]),
    "decimals of scales that no type holds both": (
        {"o.parquet": o(id=as_type(pa.decimal128(38, 30), decimal.Decimal)(KEYS[:4])),
        "a.parquet": a(id=as_type(pa.decimal128(38, 0), decimal.Decimal)(KEYS))}, "--components x",
        ["'id' | decimal(38,30) | decimal(38,0) | cast"]),
    "a key of no type": (both(lambda values: pa.nulls(len(values))), "", ["o.parquet'", "a.parquet'"]),
    "times of a day": (both(as_type(pa.time64("us"), lambda value: moment(value).time())), "",
        ["o.parquet'", "a.parquet'"]),
    "text against binary": ({"o.parquet": o(id=GOOD_KEYS["text"](KEYS[:4])),
        "a.parquet": a(id=GOOD_KEYS["binaries"](KEYS))}, "", ["'id' | string | binary | cast"]),
    "timestamps of nanoseconds": (both(as_type(pa.timestamp("ns"), moment)), "",
        ["o.parquet' | 'id' is timestamp in nanoseconds", "a.parquet' | 'id' is timestamp in nanoseconds"]),
    "zero-padded text against text": ({"o.parquet": o(id=[f"{k:09}" for k in KEYS[:4]]),
        "a.parquet": a(id=[str(k) for k in KEYS])}, "",
        ["a.parquet' | 4 of 4 originals have no avatar | 'id' | with zeros in front of numbers"]),
    "zero-padded CSV against integers": ({"o.csv": text(o(id=[f"{k:09}" for k in KEYS[:4]]))}, "",
        ["a.parquet' | 4 of 4 originals have no avatar | 'id'"]),
    "blanks after some ids": ({"o.parquet": o(id=["a", "b", "c ", "d"]),
        "a.parquet": a(id=["a", "b", "c", "d ", "e", "f"])}, "",
        ["a.parquet' | 2 of 4 originals have no avatar | 'id'"]),
    "blanks after ids in CSV": ({"o.csv": text(o(id=[f"{k} " for k in KEYS[:4]])), "a.csv": text(a())}, "",
        ["a.csv' | 4 of 4 originals have no avatar | 'id'"]),
    "ids of another case": ({"o.parquet": o(id=list("abcd")), "a.parquet": a(id=list("ABCDEF"))}, "",
        ["4 of 4 originals have no avatar"]),
    "null keys of originals": ({"o.parquet": o(id=[*KEYS[:3], None])}, "",
        ["originals | o.parquet' | 1 of 4 rows have no key | 'id' | fill or drop"]),
    "null keys of avatars": ({"a.parquet": a(id=[*KEYS[:5], None])}, "",
        ["avatars | a.parquet' | 1 of 6 rows have no key | 'id' | fill or drop"]),
    "nothing but null keys": (both(lambda values: pa.array([None] * len(values), pa.int64())), "",
        ["o.parquet' | 4 of 4", "a.parquet' | 6 of 6"]),
    "an empty key in CSV": ({"o.csv": text(o(id=[*KEYS[:3], ""]))}, "", ["o.csv' | 1 of 4 rows have no key | 'id'"]),
    "half a key of two": (both(list, n=None) | {"o.parquet": o(n=[1, 1, 1, None]), "a.parquet": a(n=[1] * 6)},
        "--id id,n --components x", ["o.parquet' | 1 of 4 | 'id', 'n'"]),
    "repeated originals": ({"o.parquet": o(id=[*KEYS[:3], KEYS[0]])}, "",
        ["o.parquet' | 1 key(s) | several | 'id' | keep one"]),
    "several avatars of an original": ({"a.parquet": a(id=[*KEYS[:4], KEYS[0], KEYS[0]])}, "",
        ["a.parquet' | 1 key(s) | several | 'id' | keep one"]),
    "repeated on both sides": ({"o.parquet": o(id=[KEYS[0]] * 4), "a.parquet": a(id=[KEYS[0]] * 6)}, "",
        ["o.parquet' | 1 key(s)", "a.parquet' | 1 key(s)"]),
    "originals without avatars": ({"a.parquet": a(id=[*KEYS[1:], 73920])}, "",
        ["a.parquet' | 1 of 4 originals have no avatar | 'id' | --made-from"]),
    "no key column": ({"o.parquet": o(id=None)}, "", ["o.parquet' | 'id' | missing | --id"]),
    "no key column anywhere": ({"o.parquet": o(id=None), "a.parquet": a(id=None)}, "",
        ["o.parquet' | 'id' | missing", "a.parquet' | 'id' | missing"]),
    "a key column of another case": ({"o.parquet": renamed(o(), id="ID")}, "",
        ["o.parquet' | 'id' | missing | 'ID' | write it alike"]),
    "a field of a struct as key": (both(lambda v: pa.array([{"id": k} for k in v])), "--id id.id",
        ["o.parquet' | 'id.id' | missing", "a.parquet' | 'id.id' | missing"]),
    "--made-from a missing column": ({}, "--made-from source", ["a.parquet' | 'source' | missing | --made-from"]),
    "a key named like a result": ({"o.parquet": renamed(o(), id="tied"), "a.parquet": renamed(a(), id="tied")},
        "--id tied", ["o.parquet' | 'tied' | rename"]),
    # components
    **{
        f"a component of type {kind[:30]}": (both(make, "x"), "--components x",
            [f"{t}.parquet' | 'x' | {kind} | not a number | cast" for t in "oa"])
        for kind, make in NO_NUMBER.items()
    },
    "nothing but a vector": (both(NO_NUMBER[list(NO_NUMBER)[8]], "x"), "",
        ["originals | o.parquet' | no numeric column | --components"]),
    "a component of text among the avatars": ({"a.parquet": a(x=[str(v) for v in Y])}, "",
        ["a.parquet' | 'x' | string | not a number"]),
    "a null": ({"o.parquet": o(x=[*X[:3], None])}, "", ["o.parquet' | 'x' | null | 1 of 4 | fill or drop"]),
    "a NaN": ({"a.parquet": a(x=[*Y[:5], NAN])}, "", ["a.parquet' | 'x' | NaN | 1 of 6 | fill or drop"]),
    "an infinity": ({"a.parquet": a(x=[*Y[:5], -INF])}, "", ["a.parquet' | 'x' | infinite | 1 of 6"]),
    "null, NaN and infinity apart": ({"o.parquet": o(x=[None, NAN, NAN, INF])}, "",
        ["'x' | null | 1 of 4", "'x' | NaN | 2 of 4", "'x' | infinite | 1 of 4"]),
    "a float that is NaN": ({"o.parquet": o(x=as_type(pa.float32())([*X[:3], NAN]))}, "",
        ["o.parquet' | 'x' | NaN | 1 of 4"]),
    "a column of nulls alone": ({"o.parquet": o(x=as_type(pa.float64())([None] * 4))}, "",
        ["o.parquet' | 'x' | null | 4 of 4"]),
    "2^53 + 1": ({"o.parquet": o(x=[2**53 + 1, 1, 2, 3])}, "", ["o.parquet' | 'x' | 2^53 | 1 of 4 | rescale"]),
    "-2^53 - 1 among the avatars": ({"a.parquet": a(x=[-(2**53) - 1, 1, 2, 3, 4, 5])}, "",
        ["a.parquet' | 'x' | 2^53 | 1 of 6"]),
    "unsigned longs beyond 2^53": ({"o.parquet": o(x=pa.array([2**63 + 1, 1, 2, 3], pa.uint64()))}, "",
        ["o.parquet' | 'x' | 2^53 | 1 of 4"]),
    "decimals beyond 2^53": ({"o.parquet": o(x=as_type(pa.decimal128(30, 0), decimal.Decimal)([10**29, 1, 2, 3]))}, "",
        ["o.parquet' | 'x' | 2^53 | 1 of 4"]),
    "a component that is nowhere": ({}, "--components x,y", ["o.parquet' | 'y' | missing | --components",
        "a.parquet' | 'y' | missing"]),
    "a component that avatars lack": ({"o.parquet": o(y=X)}, "", ["a.parquet' | 'y' | missing"]),
    "a component of another case": ({"a.parquet": renamed(a(), x="X")}, "",
        ["a.parquet' | 'x' | missing | 'X' | write it alike"]),
    "a field of a struct as component": (both(lambda v: pa.array([{"y": k} for k in v]), "x"), "--components x.y",
        ["o.parquet' | 'x.y' | missing", "a.parquet' | 'x.y' | missing"]),
    "no number but the key": ({"o.parquet": o(x=None)}, "",
        ["originals | o.parquet' | no numeric column | --components"]),
    "--ncp above the components": ({}, "--ncp 2", ["--ncp 2 | 1 component"]),
    "--ncp immense": ({}, "--ncp 99999999999999999999", ["--ncp | 99999999999999999999"]),
    "all that is wrong at once": ({"o.parquet": o(id=[KEYS[0], KEYS[0], None, KEYS[3]], x=[NAN, INF, 1.0, 2.0]),
        "a.parquet": a(x=[*Y[:5], None])}, "--group-by ward",
        ["o.parquet' | 'ward' | missing", "o.parquet' | 1 of 4 rows have no key", "o.parquet' | 1 key(s)",
            "o.parquet' | NaN", "o.parquet' | infinite", "a.parquet' | 'x' | null | 1 of 6"]),
    # files
    "a Parquet file cut short": ({"o.parquet": parquet(o())[:-20]}, "", ["originals | o.parquet' | cannot be read"]),
    "a Parquet file without its head": ({"a.parquet": parquet(a())[200:]}, "",
        ["avatars | a.parquet' | cannot be read"]),
    "a Parquet file with damaged pages": ({"a.parquet": damaged(a())}, "", ["avatars | a.parquet' | cannot be read"]),
    "an empty file named Parquet": ({"o.parquet": b""}, "", ["originals | o.parquet' | cannot be read"]),
    "text named Parquet": ({"o.parquet": text(o())}, "", ["originals | o.parquet' | cannot be read | format"]),
    "Parquet named CSV": ({"o.csv": parquet(o())}, "", ["originals | o.csv' | UTF-8"]),
    "a Parquet file without rows": ({"o.parquet": {"id": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}},
        "", ["o.parquet' | no rows | --where"]),
    "a Parquet file of keys alone, without rows": ({"o.parquet": {"id": pa.array([], pa.int64())}}, "",
        ["no numeric column", "o.parquet' | no rows"]),
    "a column there twice but for case": ({"o.parquet": o(X=X)}, "", ["originals | o.parquet' | x"]),
    "a folder of schemas that differ": ({"f/1.parquet": o(), "f/2.parquet": o(x=["a"] * 4)},
        "--originals parquet:{}/f", ["f' | cannot be read"]),
    "a folder, one file without the component": ({"f/1.parquet": {"id": KEYS[:2], "x": X[:2]},
        "f/2.parquet": {"id": KEYS[2:4]}}, "--originals parquet:{}/f", ["f' | 'x' | null | 2 of 4"]),
    "a folder with a file of text": ({"f/1.parquet": o(), "f/2.parquet": text(o())}, "--originals parquet:{}/f",
        ["f' | cannot be read"]),
    "an empty folder": ({"f/_SUCCESS": b""}, "--originals parquet:{}/f", ["f' | cannot be read"]),
    "a path through a file": ({"f": b""}, "--originals parquet:{}/f/o.parquet", ["f/o.parquet' | cannot be read"]),
    "a path that is not there": ({}, "--originals parquet:{}/no --avatars csv:{}/no",
        ["originals | no' | cannot be read", "avatars | no' | cannot be read"]),
    "a path of a pattern without match": ({}, "--originals parquet:{}/*.pqt", ["pqt' | cannot be read"]),
    "a format that nobody has": ({}, "--originals nosuch:{}/o.parquet", ["originals 'nosuch: | cannot be read"]),
    "an address without its format": ({}, "--originals s3://bucket/o",
        ["--originals | format | did you mean parquet:s3://bucket/o?"]),
    "a streaming source": ({}, "--originals rate:{}/o.parquet", ["originals 'rate: | cannot be read"]),
    "text lines": ({"o.txt": text(o())}, "--originals text:{}/o.txt",
        ["'txt' | write the table as"]),
    "an ORC file that is none": ({"o.orc": b"x"}, "", ["originals | o.orc' | cannot be read"]),
    "JSON that is none": ({"o.json": "[1, 2"}, "", ["o.json' | no numeric column", "o.json' | 'id' | missing"]),
    # CSV
    "an empty CSV": ({"o.csv": ""}, "", ["originals | o.csv' | empty | header"]),
    "a byte order mark alone": ({"o.csv": b"\xef\xbb\xbf"}, "", ["originals | o.csv'"]),
    "a header alone": ({"o.csv": "id,x\n"}, "", ["o.csv' | no rows"]),
    "a header alone on both sides": ({"o.csv": "id,x\n", "a.csv": "id,x\n"}, "",
        ["o.csv' | no rows", "a.csv' | no rows"]),
    "UTF-16": ({"o.csv": text(o()).encode("utf-16")}, "", ["o.csv' | UTF-8"]),
    "UTF-16 without a mark": ({"o.csv": text(o()).encode("utf-16-le")}, "", ["o.csv' | UTF-8"]),
    "Latin-1 in a name": ({"o.csv": text(renamed(o(), x="é")).encode("latin-1")}, "", ["o.csv' | header | UTF-8"]),
    "Latin-1 in a value": ({"o.csv": text(o(id=["é", "b", "c", "d"])).encode("latin-1")}, "",
        ["o.csv' | 1 of 4 rows | UTF-8"]),
    "semicolons": ({"o.csv": text(o(), ";")}, "", ["o.csv' | semicolons | commas"]),
    "semicolons and decimal commas": ({"o.csv": text(o(y=X), ";", ",")}, "", ["o.csv' | semicolons | decimal points"]),
    "tabs": ({"o.csv": text(o(), "\t")}, "", ["o.csv' | tabs | commas"]),
    "bars": ({"o.csv": text(o(), "|")}, "", ["o.csv' | bars | commas"]),
    "decimal commas that break rows": ({"o.csv": text(o(), point=",")}, "",
        ["o.csv' | 4 of 4 rows | one value per column"]),
    "decimal commas in quotes": ({"o.csv": text(o(y=[f'"{v},5"' for v in range(4)])),
        "a.csv": text(a(y=[f'"{v},5"' for v in range(6)]))}, "",
        ["o.csv' | 'y' | 4 | decimal points", "a.csv' | 'y' | 6 | decimal points"]),
    "a blank before each number": ({"o.csv": text(o(y=[f" {v}" for v in X])),
        "a.csv": text(a(y=[f" {v}" for v in Y]))}, "", ["o.csv' | 'y' | 4", "a.csv' | 'y' | 6"]),
    "one number with a unit": ({"o.csv": text(o(x=[*X[:3], "7391 kg"]))}, "", ["o.csv' | 'x' | 1 of its 4 | no units"]),
    "one number of thousands": ({"o.csv": text(o(x=[*X[:3], '"739,180.0"']))}, "", ["o.csv' | 'x' | 1 of its 4"]),
    "NA for a missing number": ({"o.csv": text(o(x=[*X[:3], "NA"]))}, "", ["o.csv' | 'x' | 1 of its 4"]),
    "a number of another script": ({"o.csv": text(o(x=[*X[:3], "\u0667"]))}, "", ["o.csv' | 'x' | 1 of its 4"]),
    "a number too large": ({"o.csv": text(o(x=[*X[:3], "1e7391"]))}, "", ["o.csv' | 'x' | infinite | 1 of 4"]),
    "an empty value": ({"o.csv": text(o(x=[*X[:3], ""]))}, "", ["o.csv' | 'x' | null | 1 of 4"]),
    "NaN in CSV": ({"o.csv": text(o(x=[*X[:3], "nan"]))}, "", ["o.csv' | 'x' | NaN | 1 of 4"]),
    "names twice in CSV": ({"o.csv": "id,x,x\n73911,1,2\n"}, "", ["o.csv' | x | same name | rename"]),
    "names twice but for case in CSV": ({"o.csv": "id,x,X\n73911,1,2\n"}, "", ["o.csv' | x | X | same name | rename"]),
    "names twice but for the case of É": ({"o.csv": "id,é,É\n73911,1,2\n"}, "",
        ["o.csv' | é | É | same name | rename"]),
    "a column without a name": ({"o.csv": "id,,x\n73911,1,2\n"}, "", ["o.csv' | 1 column(s) have no name"]),
    "a comma at the end of each line but the first": ({"o.csv": "id,x\n73911,1,\n73912,2,\n"}, "",
        ["o.csv' | 2 of 2 rows | one value per column"]),
    "too few values": ({"o.csv": "id,x\n73911,1\n73912\n"}, "", ["o.csv' | 1 of 2 rows | one value per column"]),
    "a title above the header": ({"o.csv": "Export of 7391\nid,x\n73911,1\n"}, "",
        ["o.csv' | 2 of 2 rows | one value per column"]),
    "a quote that never ends": ({"o.csv": 'id,x\n"73911,1\n73912,2\n'}, "", ["o.csv' | rows | double quotes"]),
    "a line break in quotes": ({"o.csv": 'id,x\n"7391\n1",1\n'}, "", ["o.csv' | rows | line breaks"]),
    "a folder of headers that differ": ({"f/1.csv": "id,x\n73911,1\n", "f/2.csv": "x,id\n1,73912\n"},
        "--originals csv:{}/f", ["f' | header"]),
    # references
    **{
        f"a reference like {ref}": ({}, f"--originals '{ref}'", ["originals | cannot be read"])
        for ref in ("t; DROP TABLE victim", "(select 1)", "(select * from victim)", "`victim`; drop table victim",
            "victim where 1=1", "`", "a..b", "a.b.c.d", "nosuch", "parquet:", "range(10)", "C:\\o.parquet")
    },
    "counts that are SQL": ({}, "--counts 't; DROP TABLE victim'",
        ["counts 't; DROP TABLE victim' | is not a table name"]),
    "history that is SQL": ({}, "--history '(select 1)'", ["history '(select 1)'"]),
    "counts with a comment": ({}, "--counts 'new -- x'", ["counts 'new -- x'"]),
    "counts in backticks that do not match": ({}, "--counts '`t'", ["counts '`t' | is not a table name"]),
    **{
        f"a password in {option}": ({}, f"{option} 'parquet:s3://key:hunter7391@bucket/x'",
            [f"{option} | password | credentials provider"])
        for option in ("--originals", "--avatars", "--link", "--counts", "--history", "--output")
    },
    "a signature in an address": ({}, "--originals 'parquet:https://a/b?sig=hunter7391'",
        ["--originals | password or a key"]),
    "jdbc without a file": ({}, "--originals jdbc:staff", ["jdbc:NAME | [jdbc.NAME] | --config"]),
    "jdbc without its block": ({"c.toml": f"[jdbc.other]\n{DATABASE}"}, FROM_DATABASE,
        ["c.toml | [jdbc.staff] | other"]),
    "jdbc without table and url": ({"c.toml": "[jdbc.staff]\nuser = 'u'\n"}, FROM_DATABASE,
        ["jdbc.staff | url is missing", "jdbc.staff | table is missing"]),
    "a password in a jdbc address": ({"c.toml": f"[jdbc.staff]\n{DATABASE}".replace("//", "//u:hunter7391@")},
        FROM_DATABASE, ["jdbc.staff | url | password_env"]),
    "a password in the file": ({"c.toml": f"[jdbc.staff]\n{DATABASE}password = 'hunter7391'\n"}, FROM_DATABASE,
        ["jdbc.staff | 'password' | password_env"]),
    "jdbc without a driver": ({"c.toml": f"[jdbc.staff]\n{DATABASE}driver = 'org.nosuch.Driver'\n"}, FROM_DATABASE,
        ["originals 'jdbc:staff' | JDBC driver org.nosuch.Driver | spark.jars"]),
    "jdbc with a variable that is not set": ({"c.toml": f"[jdbc.staff]\n{DATABASE}password_env = 'CLOAKING_NO_SUCH'\n"},
        FROM_DATABASE, ["jdbc:staff' | CLOAKING_NO_SUCH | not set"]),
    "jdbc with a password file that is not there": ({"c.toml": f"[jdbc.staff]\n{DATABASE}password_file = '/no/such'\n"},
        FROM_DATABASE, ["jdbc:staff' | /no/such | cannot be read"]),
    "counts into a database": ({}, "--counts jdbc:staff", ["counts 'jdbc:staff' | parquet:"]),
    # conditions and groups
    "a condition that does not parse": ({}, "--where 'id >'",
        ["originals | o.parquet' | id > | PARSE", "avatars | a.parquet' | id > | PARSE"]),
    "a condition on no column": ({}, "--where 'ward = 1'", ["o.parquet' | ward = 1 | UNRESOLVED_COLUMN",
        "a.parquet' | ward = 1 | UNRESOLVED_COLUMN"]),
    "a condition that is no condition": ({}, "--where-avatars x", ['a.parquet\' | "x" | FILTER_NOT_BOOLEAN']),
    "a condition with a statement": ({}, "--where '1=1; drop table victim'",
        ["o.parquet' | PARSE", "a.parquet' | PARSE"]),
    "a condition of an aggregate": ({}, "--where-avatars 'count(x) > 1'", ["a.parquet' | count(x)"]),
    "a condition that keeps no row": ({}, "--where 'id < 0'",
        ["o.parquet' | no rows | --where", "a.parquet' | no rows | --where"]),
    "a condition that keeps no avatar": ({}, "--where-avatars 'id < 0'", ["a.parquet' | no rows | --where"]),
    "a path of damaged rows and a condition": ({"o.parquet": damaged(o())}, "--where 'x > 0'",
        ["originals | o.parquet' | cannot be read"]),
    "damage on both sides": ({"o.parquet": damaged(o()), "a.parquet": damaged(a())}, "",
        ["originals | o.parquet' | cannot be read", "avatars | a.parquet' | cannot be read"]),
    "a damaged link": ({"l.parquet": damaged(link())}, "--link parquet:{}/l.parquet",
        ["link | l.parquet' | cannot be read"]),
    "a condition that leaves originals alone": ({}, "--where-avatars 'x < 739175'",
        ["a.parquet' | 2 of 4 originals have no avatar"]),
    "a condition of several lines": ({"c.toml": "where = '''\nid > 1\nand and'''\n"}, "--config {}/c.toml",
        ["o.parquet' | UNRESOLVED", "a.parquet' | UNRESOLVED"]),
    "a condition that casts text": ({"o.parquet": o(ward=["7391x"] * 4)},
        "--where 'int(ward) = 1' --where-avatars 'x > 0'", ["originals | o.parquet' | cannot be read | CAST"]),
    "--group-by a missing column": ({}, "--group-by ward", ["o.parquet' | 'ward' | missing | --group-by"]),
    "--group-by a column of another case": ({"o.parquet": o(Ward=["a"] * 4)}, "--group-by ward",
        ["o.parquet' | 'ward' | missing | 'Ward'"]),
    "a gate on a group that is not there": ({"o.parquet": o(ward=["a"] * 4),
        "c.toml": "group_by = 'ward'\n" + "gates = [{ metric = 'hidden_rate', at_least = 1, group = 'b' }]"},
        "--config {}/c.toml", ["gates | 'b' | 'ward' | (other)"]),
    # links
    "an original linked twice": ({"l.parquet": link(original_id=[KEYS[0], *KEYS[:3]])}, "--link parquet:{}/l.parquet",
        ["l.parquet' | 1 value(s) | 'original_id' | keep one"]),
    "an avatar linked twice": ({"l.parquet": link(avatar_id=[KEYS[0], *KEYS[:3]])}, "--link parquet:{}/l.parquet",
        ["l.parquet' | 1 value(s) | 'avatar_id' | keep one"]),
    "a link of nulls": ({"l.parquet": link(original_id=[None, *KEYS[:3]], avatar_id=[None, None, *KEYS[:2]])},
        "--link parquet:{}/l.parquet", ["l.parquet' | 1 rows | 'original_id'", "l.parquet' | 2 rows | 'avatar_id'"]),
    "a link without its columns": ({"l.parquet": {"original": KEYS, "avatar": KEYS}}, "--link parquet:{}/l.parquet",
        ["l.parquet' | 'original_id' | missing", "l.parquet' | 'avatar_id' | missing"]),
    "a link of another case": ({"l.parquet": renamed(link(), original_id="ORIGINAL_ID")},
        "--link parquet:{}/l.parquet", ["l.parquet' | 'original_id' | 'ORIGINAL_ID'"]),
    "a link of text": ({"l.parquet": link(avatar_id=[str(k) for k in KEYS[:4]])}, "--link parquet:{}/l.parquet",
        ["a.parquet' | l.parquet' | 'avatar_id' | bigint | string"]),
    "a link of doubles": ({"l.parquet": link(avatar_id=[float(k) for k in KEYS[:4]])}, "--link parquet:{}/l.parquet",
        ["l.parquet' | 'avatar_id' | double | makes no key"]),
    "a link that leaves originals out": ({"l.parquet": {"original_id": KEYS[:1], "avatar_id": KEYS[:1]}},
        "--link parquet:{}/l.parquet", ["3 of 4 originals have no avatar"]),
    "a link to avatars that are not there": ({"l.parquet": link(avatar_id=[1, 2, 3, KEYS[3]])},
        "--link parquet:{}/l.parquet", ["3 of 4 originals have no avatar"]),
    "an empty link": ({"l.csv": "original_id,avatar_id\n"}, "--link csv:{}/l.csv", ["4 of 4 originals have no avatar"]),
    "repeated avatars of a link": ({"a.parquet": a(id=[*KEYS[:5], KEYS[0]]), "l.parquet": link()},
        "--link parquet:{}/l.parquet", ["a.parquet' | 1 value(s) | 'id'"]),
    "a link that is not there": ({}, "--link parquet:{}/l.parquet", ["link | l.parquet' | cannot be read"]),
    "a link for a key of two": ({}, "--link parquet:{}/l.parquet --id id,x", ["--link | one column"]),
    # positions
    "positions of different lengths": (BY_POSITION | {"a.parquet": {"x": Y[:3]}}, "--by-position",
        ["a.parquet' | 1 of 4 originals have no avatar"]),
    "positions in several files": (BY_POSITION | {"f/1.parquet": {"x": X[:2]}, "f/2.parquet": {"x": X[2:]}},
        "--by-position --originals parquet:{}/f", ["f' | --by-position | one file, found 2 | --id"]),
    "positions in ORC": (BY_POSITION | {"o.orc": o(id=None)}, "--by-position", ["o.orc' | --by-position | orc | --id"]),
    "positions hidden by a column": (BY_POSITION | {"o.parquet": {"_metadata": ["7391"] * 4, "x": X}}, "--by-position",
        ["o.parquet' | '_metadata' | rename"]),
    "positions in a catalog": (BY_POSITION, "--by-position --originals victim",
        ["originals 'victim' | --by-position | --id"]),
    "positions beside a key": ({}, "--by-position --id id", ["--by-position | --id"]),
    "positions beside a link": ({}, "--by-position --link parquet:{}/l", ["only one of --link, --by-position"]),
    "positions without a component": ({}, "--by-position --components id", ["'id'"]),
    # projection
    "raw numbers missing": (RAW | {"o.parquet": RAW["o.parquet"] | {"x": [*X[:3], None]}}, "--project famd --ncp 1",
        ["o.parquet' | 'x' | missing | 1 of 4 | --missing-continuous"]),
    "raw categories missing": (RAW | {"o.parquet": RAW["o.parquet"] | {"y": ["b", "c", None, "b"]}},
        "--project famd --ncp 1", ["o.parquet' | 'y' | missing | 1 of 4 | --missing-categorical"]),
    "raw numbers infinite": (RAW | {"o.parquet": RAW["o.parquet"] | {"x": [*X[:3], INF]}}, "--project famd --ncp 1",
        ["o.parquet' | 'x' | infinite | 1 of 4"]),
    "raw avatars missing": (RAW | {"a.parquet": RAW["a.parquet"] | {"x": [NAN, *Y[1:]]}}, "--project famd --ncp 1",
        ["a.parquet' | 'x' | missing | 1 of 6"]),
    "unseen modalities": (RAW | {"a.parquet": RAW["a.parquet"] | {"y": ["Zz-7391", *"bcbcb"]}},
        "--project famd --ncp 1", ["a.parquet' | 'y' | 1 modalities in 1 of 6 | --unseen ignore"]),
    "modalities of another type": (RAW | {"o.parquet": o(y=["7391", "73912", "7391", "73912"]),
        "a.parquet": a(y=[7391.0, 73912.0] * 3)}, "--project famd --ncp 1 --categorical y",
        ["a.parquet' | 'y' | 2 modalities in 6 of 6 | string | double | cast"]),
    "constant columns alone": (RAW | {"o.parquet": o(x=[739150.0] * 4)}, "--project pca --ncp 1",
        ["o.parquet' | one value | nothing to project"]),
    "more components than the rank": (RAW, "--project famd --ncp 3", ["o.parquet' | --ncp 3 | rank | 2"]),
    "PCA of text": (RAW, "--project pca --ncp 1", ["o.parquet' | numbers only | y | --drop"]),
    "MCA of numbers": (RAW, "--project mca --ncp 1", ["o.parquet' | categories only | x | --drop"]),
    "raw dates": (RAW | both(NO_NUMBER["date"], "x"), "--project auto --ncp 1", ["o.parquet' | 'x' | date"]),
    "raw vectors": (RAW | both(NO_NUMBER[list(NO_NUMBER)[8]], "x"), "--project auto --ncp 1",
        ["o.parquet' | 'x' | struct"]),
    "raw avatars without a column": (RAW | {"a.parquet": a()}, "--project famd --ncp 1",
        ["a.parquet' | 'y' | missing"]),
    "raw roles of no column": (RAW, "--project famd --ncp 1 --continuous z --drop w",
        ["o.parquet' | 'z' | --continuous", "o.parquet' | 'w' | --drop"]),
    "raw roles twice": (RAW, "--project famd --ncp 1 --continuous x --categorical x", ["'x' | more than one | once"]),
    "raw rows none": (RAW, "--project famd --ncp 1 --where 'id < 0'", ["o.parquet' | no rows | --where"]),
    "a key named like a coordinate": ({"o.parquet": renamed(o(), id="dim_1"), "a.parquet": renamed(a(), id="dim_1")},
        "--project pca --ncp 1 --id dim_1", ["'dim_1' | rename"]),
    "--project without --ncp": (RAW, "--project famd", ["--project | --ncp"]),
    "--project with --components": (RAW, "--project famd --ncp 1 --components x", ["--components | leave it out"]),
    "--unseen without --project": (RAW, "--unseen ignore", ["--unseen | --project"]),
    # results
    "counts that exist": ({"n/part.parquet": o()}, "--counts parquet:{}/n",
        ["counts 'parquet: | n' | exists | --overwrite"]),
    "counts over the originals": ({}, "--counts parquet:{}/o.parquet --overwrite",
        ["counts | o.parquet' | one of the tables to read"]),
    "counts over the avatars by another way": ({"f/x": b""}, "--counts parquet:{}/f/../a.parquet --overwrite",
        ["counts | a.parquet' | one of the tables to read"]),
    "counts over the link": ({"l.parquet": link()},
        "--link parquet:{}/l.parquet --counts parquet:{}/l.parquet --overwrite",
        ["counts | l.parquet' | one of the tables to read"]),
    "counts over the folder of an input": ({"f/o.parquet": o()},
        "--originals parquet:{}/f/o.parquet --counts parquet:{}/f --overwrite",
        ["counts | f' | one of the tables to read"]),
    "counts within an input": ({"f/o.parquet": o()}, "--originals parquet:{}/f --counts parquet:{}/f/n",
        ["counts | f/n' | one of the tables to read"]),
    "a report within an input": ({"f/o.parquet": o()}, "--originals parquet:{}/f --output {}/f",
        ["--output | f | one of the tables to read"]),
    "counts through a file": ({"f": b""}, "--counts parquet:{}/f/n", ["counts | f/n' | cannot be written"]),
    "counts of a format that nobody has": ({}, "--counts nosuch:{}/n", ["counts 'nosuch: | cannot be written"]),
    "counts as lines of text": ({}, "--counts text:{}/n", ["counts 'text: | cannot be written"]),
    "counts in the report's folder": ({}, "--counts parquet:{}/report", ["counts | report' | --output"]),
    "counts in the history": ({}, "--counts parquet:{}/h --history parquet:{}/h", ["counts | h' | history"]),
    "a history as CSV": ({}, "--history csv:{}/h", ["history 'csv: | parquet:"]),
    "a history through a file": ({"f": b""}, "--history parquet:{}/f/h --counts parquet:{}/n",
        ["history | f/h' | cannot be"]),
    "a history that is a file": ({"h": parquet(o())}, "--history parquet:{}/h --counts parquet:{}/n",
        ["history | h' | is another table"]),
    "a history over the originals": ({"f/o.parquet": o()}, "--originals parquet:{}/f --history parquet:{}/f",
        ["history | f' | one of the tables to read"]),
    "a history that is another table": ({"h/o.parquet": o()}, "--history parquet:{}/h", ["history | h'"]),
    "a history that is another table of the catalog": ({}, "--history victim", ["history 'victim'"]),
    "a report through a file": ({"f": b""}, "--output {}/f/r --counts parquet:{}/n --history parquet:{}/h",
        ["--output | f/r"]),
    "a report in a store that nobody has": ({}, "--output nosuch://a/b --counts parquet:{}/n",
        ["--output nosuch://a/b"]),
    "a report where the system lets nobody write": ({}, "--output /proc/cloaking --counts parquet:{}/n",
        ["--output /proc/cloaking"]),
    "a report on a full device": ({}, "--output /dev/full/r --counts parquet:{}/n", ["--output /dev/full/r"]),
    # the file of settings
    **{
        f"a file with {line[:40]}": ({"c.toml": line}, "--config {}/c.toml", [f"c.toml | {words}"])
        for line, words in {
            "orignals = 'x'": "'orignals' | originals",
            "group-by = 'x'": "'group-by' | group_by",
            "ncp = '2'": "ncp | number",
            "ncp = 2.5": "ncp | whole number",
            "ncp = 0": "ncp | from 1 to",
            "ncp = true": "ncp",
            "id = []": "id | names",
            "id = [1]": "id | names",
            "by_position = 'yes'": "by_position | true or false",
            "dry_run = 1": "dry_run | true or false",
            "where = 3": "where | text",
            "name = ['a']": "name | text",
            "name = ' '": "name | empty",
            "conf = 'x=y'": "conf | table",
            "conf = { a = [1] }": "conf | a",
            "strategy = 'fast'": "strategy | broadcast",
            "tie_tolerance = nan": "tie_tolerance | 0 to",
            "min_hidden_rate = 101": "min_hidden_rate | 0 to 100",
            "min_local_cloaking = inf": "min_local_cloaking | at least 0",
            "run_date = 'yesterday'": "run_date | YYYY-MM-DD",
            "gates = 3": "gates | list",
            "ncp = 1\nncp = 2": "TOML",
            "ncp = ": "TOML",
            "name = '${CLOAKING_NO_SUCH}'": "CLOAKING_NO_SUCH | not set",
            "reports = 3": "reports | table",
            "[reports.a]\n[reports.b]": "a, b | --report",
            GATE.format("median", 1): "metric",
            GATE.format("hidden_rate", 101): "at_least | 100",
            GATE.format("local_cloaking", "nan"): "at_least",
            GATE.format("local_cloaking", -1): "at_least",
        }.items()
    },
    "a file of bytes": ({"c.toml": b"name = '\xe9'"}, "--config {}/c.toml", ["c.toml | TOML"]),
    "a folder for a file": ({"c/x": b""}, "--config {}/c", ["--config | cannot be read"]),
    "a name of two lines": ({"o.parquet": renamed(o(), x="x\ny")}, "", ["a.parquet' | component 'x y' | missing"]),
    "no such file": ({}, "--config {}/c.toml", ["c.toml | cannot be read"]),
    "two rules on one figure": ({"c.toml": GATE.format("hidden_rate", 80)}, "--config {}/c.toml --min-hidden-rate 90",
        ["gates | several rules on hidden_rate"]),
    "a rule on a group without --group-by": ({"c.toml": GATE.format("hidden_rate", "1, group = 'a'")},
        "--config {}/c.toml", ["gates | --group-by"]),
    # the command line
    **{
        f"the arguments {line}": ({}, line, [words])
        for line, words in {
            "--min-local-cloaking nan": "--min-local-cloaking | at least 0",
            "--min-local-cloaking inf": "--min-local-cloaking | at least 0",
            "--min-local-cloaking -1": "--min-local-cloaking | at least 0",
            "--min-local-cloaking many": "--min-local-cloaking | at least 0",
            "--min-hidden-rate 100.1": "--min-hidden-rate | 0 to 100",
            "--min-hidden-rate nan": "--min-hidden-rate | 0 to 100",
            "--min-hidden-rate 90%": "--min-hidden-rate | 0 to 100",
            "--tie-tolerance 1": "--tie-tolerance | 0 to",
            "--tie-tolerance -0.1": "--tie-tolerance | 0 to",
            "--ncp 0": "--ncp | from 1 to",
            "--ncp -3": "--ncp | from 1 to",
            "--ncp 2.0": "--ncp | from 1 to",
            "--tasks 0": "--tasks | from 1 to",
            "--tasks 3000000000": "tasks",
            "--strategy partition --cell-rows 99999999999999999999": "cell-rows",
            "--cell-rows 0": "--cell-rows | from 1 to",
            "--broadcast-limit 1.5": "--broadcast-limit | from 1 to",
            "--strategy fast": "--strategy | broadcast",
            "--project tsne": "--project | famd",
            "--run-date 2026-02-30": "--run-date | YYYY-MM-DD",
            "--run-date 30.11.2026": "--run-date | YYYY-MM-DD",
            "--id ''": "--id | names",
            "--id id,": "--id | names",
            "--id id,id": "--id | id more than once",
            "--components x,x": "--components | x more than once",
            "--made-from id,x": "--made-from names 2 | --id 1",
            "--originals ' '": "--originals | empty",
            "--output ''": "--output | empty",
            "--where ' '": "--where | empty",
            "--overwrite": "--overwrite | --counts",
            "--compare-last 0.2": "--compare-last | --history",
            "--compare-last 20 --history parquet:{}/h": "--compare-last | 0 to below 1",
            "--conf spark.a": "--conf | KEY=VALUE",
            "--report a": "--report | --config",
            "--nonsense": "--nonsense | --help",
            "--orig x": "--orig | --help",
            "stray": "without an option | --help",
            "--link parquet:{}/l --made-from id": "only one of --made-from, --link",
        }.items()
    },
}  # fmt: skip

# Case -> files, arguments, what report.json must say besides the figures that every form of the good tables gives.
GOOD = {
    "the plain tables": ({}, "", {"components": ["x"]}),
    **{f"keys that are {kind}": (both(make), "--components x", {}) for kind, make in GOOD_KEYS.items()},
    **{f"components that are {kind}": (both(make, "x"), "", {}) for kind, make in GOOD_NUMBERS.items()},
    **{
        f"a key and a component named {name}": (
            {"o.parquet": {name: KEYS[:4], f"{name} x": X, "note": ["7391"] * 4},
                "a.parquet": {name: KEYS, f"{name} x": Y}},
            f"--id {shlex.quote(name)} --counts parquet:{{}}/n",
            {"components": [f"{name} x"]},
        )
        for name in STRANGE_NAMES
    },
    "strange names in CSV": ({"o.csv": 'id,"a.b ""c"" `d` é"\n' + text(o()).split("\n", 1)[1],
        "a.csv": 'id,"a.b ""c"" `d` é"\n' + text(a()).split("\n", 1)[1]}, "", {"components": ['a.b "c" `d` é']}),
    "a name with a comma, in a file": ({"o.parquet": renamed(o(), id="a,b"), "a.parquet": renamed(a(), id="a,b"),
        "c.toml": "id = ['a,b']"}, "--config {}/c.toml", {}),
    "a name with blanks around, in a file": ({"o.parquet": renamed(o(), id=" id "),
        "a.parquet": renamed(a(), id=" id "), "c.toml": "id = [' id ']"}, "--config {}/c.toml", {}),
    "integers against longs": ({"o.parquet": o(id=as_type(pa.int32())(KEYS[:4]))}, "", {}),
    "decimals of another scale": ({"o.parquet": o(id=as_type(pa.decimal128(9, 0))(KEYS[:4])),
        "a.parquet": a(id=as_type(pa.decimal128(12, 2))(KEYS))}, "--components x", {}),
    "a key of two": ({"o.parquet": o(n=[1, 2, 1, 2]), "a.parquet": a(n=[1, 2, 1, 2, 1, 1])},
        "--id id,n --components x", {}),
    "a byte order mark": ({"o.csv": b"\xef\xbb\xbf" + text(o()).encode(),
        "a.csv": b"\xef\xbb\xbf" + text(a()).encode()}, "", {"components": ["x"]}),
    "line ends of Windows": ({"o.csv": text(o()).replace("\n", "\r\n"), "a.csv": text(a()).replace("\n", "\r\n")}, "",
        {"components": ["x"]}),
    "line ends of an old Mac": ({"o.csv": text(o()).replace("\n", "\r"), "a.csv": text(a()).replace("\n", "\r")}, "",
        {"components": ["x"]}),
    "quoted numbers": ({"o.csv": text(o(x=[f'"{v}"' for v in X], id=[f'"{k}"' for k in KEYS[:4]])),
        "a.csv": text(a())}, "", {"components": ["x"]}),
    "exponents and signs": ({"o.csv": text(o(x=["+739150", "7.3916e5", "739170.", "739180.000"])), "a.csv": text(a())},
        "", {}),
    "empty lines in CSV": ({"o.csv": text(o()).replace("\n", "\n\n"), "a.csv": text(a()) + "\n\n"}, "", {}),
    "no line end at the end": ({"o.csv": text(o())[:-1], "a.csv": text(a())[:-1]}, "", {}),
    "CSV against Parquet": ({"o.csv": text(o())}, "", {}),
    "dates in CSV": ({"o.csv": text(o(id=[str(day(k)) for k in KEYS[:4]])),
        "a.parquet": a(id=GOOD_KEYS["dates"](KEYS))}, "", {}),
    "timestamps in CSV": ({"o.csv": text(o(id=[str(moment(k)) for k in KEYS[:4]])),
        "a.parquet": a(id=GOOD_KEYS["timestamps"](KEYS))}, "", {}),
    "longs beyond 2^53 in CSV": ({"o.csv": text(o(id=[k - 73911 + 2**53 for k in KEYS[:4]])),
        "a.parquet": a(id=GOOD_KEYS["longs beyond 2^53"](KEYS))}, "", {}),
    "a column named like the mark of a broken row": ({"o.csv": text(o(_broken_row=["7391"] * 4)), "a.csv": text(a())},
        "--components x", {}),
    "a path with blanks and signs": ({"a b é % #/o 1.parquet": o(), "a b é % #/a+&.parquet": a()},
        "--originals 'parquet:{}/a b é % #/o 1.parquet' --avatars 'parquet:{}/a b é % #/a+&.parquet'", {}),
    "a folder with marks of Spark's": ({"f/1.parquet": {"id": KEYS[:2], "x": X[:2]},
        "f/2.parquet": {"id": KEYS[2:4], "x": X[2:]}, "f/_SUCCESS": b"", "f/.x.crc": b"x"}, "--originals parquet:{}/f",
        {}),
    "ORC": ({"o.orc": o(), "a.orc": a()}, "", {}),
    "JSON": ({"o.json": "".join(f'{{"id": {k}, "x": {v}}}\n' for k, v in zip(KEYS, X, strict=False))}, "", {}),
    "a component where names differ by case elsewhere": ({"o.parquet": o(Note=["7391"] * 4),
        "a.parquet": a(note=["7391"] * 6)}, "", {}),
    "a column of the avatars named like an inner one, and a link": ({"a.parquet": a(_key=Y, _avatar=Y),
        "l.parquet": link()}, "--link parquet:{}/l.parquet", {"link": {"kind": "link table",
        "columns": ["original_id"]}}),
    "groups by a list": ({"o.parquet": o(ward=[["a", "b"]] * 4)}, "--group-by ward", {}),
    "a link of more than is there": ({"l.parquet": {"original_id": [*KEYS[:4], 1], "avatar_id": [*KEYS[:4], 2]}},
        "--link parquet:{}/l.parquet", {}),
    "a file of settings with a byte order mark": ({"c.toml": b"\xef\xbb\xbfname = 'n'"}, "--config {}/c.toml",
        {"name": "n"}),
    "counts in backticks": ({}, "--counts '`a_b`'", {}),
    "thresholds that are met to the last digit": ({}, "--min-local-cloaking 0.5 --min-hidden-rate 37.5",
        {"verdict": "pass"}),
    "a name like SQL": ({}, "--name \"x'; DROP TABLE victim; --\" --history parquet:{}/h",
        {"name": "x'; DROP TABLE victim; --"}),
    "a condition of several lines that holds": ({"c.toml": "where = '''\nid > 1\nand x > 0'''\n"},
        "--config {}/c.toml", {}),
    "positions": (BY_POSITION, "--by-position", {"avatars": 4, "local_cloaking": 0.0, "hidden_rate": 25.0}),
    "one original, one avatar": ({"o.parquet": {"id": [73911], "x": [7391.0]},
        "a.parquet": {"id": [73911], "x": [7391.5]}}, "", {"originals": 1, "avatars": 1, "local_cloaking": 0.0,
        "hidden_rate": 0.0}),
}  # fmt: skip


@pytest.fixture(scope="module")
def victim(spark):
    """A table of the catalog that must stand whatever a reference says."""
    spark.createDataFrame([(1, 1.0)], "id long, x double").write.saveAsTable("victim", mode="overwrite")
    yield
    assert spark.table("victim").count() == 1
    for table in spark.catalog.listTables():
        spark.sql(f"DROP TABLE `{table.name}`")


@pytest.fixture
def run(victim, spark, command, tmp_path, caplog):
    """Write the files, run the command in their folder, and return what it left and what is new there."""

    def done(case, files, line, output=tmp_path / "report"):
        refs = {}
        for name, content in {"o.parquet": o(), "a.parquet": a(), **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, dict) and path.suffix == ".orc":
                pyarrow.orc.write_table(pa.table(content), path)
            else:
                content = parquet(content) if isinstance(content, dict) else content
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            refs[path.stem] = f"{path.suffix[1:]}:{path}"
        before = _state(spark, tmp_path)
        argv = [one.replace("{}", str(tmp_path)) for one in shlex.split(line)]
        result = command("--originals", refs["o"], "--avatars", refs["a"], *argv,
                         output=None if "--output" in argv else output)  # fmt: skip
        said = [*result.problems, *result.out.splitlines(), *caplog.messages]
        print(f"{result.code} {case}", *(f"  {one.replace(str(tmp_path), '')}" for one in said), sep="\n")
        assert not [one for one in said if PLANTED in one.replace(str(tmp_path), "")]
        return result, {name for name, state in _state(spark, tmp_path).items() if before.get(name) != state}

    return done


def _state(spark, folder):
    """Return the files below a folder and the tables of the catalog, with what changes when they are written."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    files = {str(path.relative_to(folder)): (one.st_size, one.st_mtime_ns) for path, one in found.items()}
    return files | {table.name: "a table" for table in spark.catalog.listTables()}


def _marked(cases):
    """Mark as slow the cases with tables of their own."""
    return [pytest.param(case, marks=[pytest.mark.slow] if set(cases[case][0]) - {"c.toml"} else []) for case in cases]


def _problems(result, lines):
    """Hold the lines of a refusal against the words that one each must have."""
    assert result.code == 2, result.problems
    assert all(problem.startswith("local-cloaking: ") for problem in result.problems), result.problems
    left = list(result.problems)
    for words in lines:
        fitting = [problem for problem in left if all(word in problem for word in words.split(" | "))]
        assert fitting, f"no line has {words}: {left}"
        left.remove(fitting[0])
    assert left == []


@pytest.mark.parametrize("case", _marked(BAD))
def test_bad_input_is_2_and_lines_that_name_it_and_nothing_is_written(run, case):
    files, line, lines = BAD[case]
    result, new = run(case, files, line)
    _problems(result, lines)
    assert (new, result.report) == (set(), None)


@pytest.mark.parametrize("case", _marked(GOOD))
def test_input_that_only_looks_bad_gives_the_right_figures(run, case):
    files, line, expected = GOOD[case]
    result, new = run(case, files, line)
    assert result.code == 0, result.problems
    assert {name: result.report[name] for name in FIGURES | expected} == FIGURES | expected
    wanted = {"report/report.json", "report/report.html"}
    assert {name for name in new if not name.startswith(("n/", "h/", "a_b"))} == wanted


@contextlib.contextmanager
def full_disk(folder):
    """A disk of 64 KiB that is full but for a page or two."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (folder / "filling").write_bytes(b"x" * 60 * 1024)
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # Spark may still hold a file of it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--output {}/disk/report", "--output"),
        ("--output {}/disk/report --counts parquet:{}/n --history parquet:{}/h", "--output"),
        ("--counts parquet:{}/disk/n", "counts"),
        ("--counts csv:{}/disk/n", "counts"),
        ("--history parquet:{}/disk/h", "history"),
    ],
)
def test_a_full_disk_is_2_and_leaves_nothing(run, tmp_path, line, words):
    with full_disk(tmp_path / "disk"):
        result, new = run(line, {}, line)
        _problems(result, [words])
        assert new == set()


def test_a_report_that_may_not_grow_is_2_and_leaves_nothing(run):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        result, new = run("a limit", {}, "--counts parquet:{}/n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    _problems(result, ["--output"])
    assert new == set()
