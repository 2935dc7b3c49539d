"""Input that only looks bad: unusual types, names, encodings and paths that must give the right figures."""

import decimal
import shlex

import pyarrow as pa
import pytest
from bad_input import (
    BY_POSITION,
    FIGURES,
    KEYS,
    Accepted,
    X,
    Y,
    as_type,
    avatars,
    binaries,
    both,
    csv_text,
    dates,
    day,
    link_table,
    local_timestamps,
    longs_beyond_2_53,
    moment,
    originals,
    parameters,
    planted_texts,
    renamed,
    timestamps,
)

GOOD_KEYS = {
    "bytes": as_type(pa.int8(), lambda value: value - 73900),
    "shorts": as_type(pa.int16(), lambda value: value - 73900),
    "integers": as_type(pa.int32()),
    "unsigned longs": as_type(pa.uint64(), lambda value: value + 2**63),
    "longs beyond 2^53": longs_beyond_2_53,
    "negative longs": as_type(pa.int64(), lambda value: value - 73913),
    "decimals": as_type(pa.decimal128(12, 2), lambda value: decimal.Decimal(value) / 4),
    "wide decimals": as_type(pa.decimal128(38, 0), lambda value: decimal.Decimal(10**37 + value)),
    "dates": dates,
    "timestamps": timestamps,
    "timestamps without a zone": local_timestamps,
    "binaries": binaries,
    "text": planted_texts,
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
    "avatar_1",
    "x'",
]

UNUSUAL = {
    "the plain tables": Accepted(report={"components": ["x"]}),
    **{
        f"keys that are {kind}": Accepted(files=both(make), arguments="--components x")
        for kind, make in GOOD_KEYS.items()
    },
    **{f"components that are {kind}": Accepted(files=both(make, "x")) for kind, make in GOOD_NUMBERS.items()},
    **{
        f"a key and a component named {name}": Accepted(
            files={
                "o.parquet": {name: KEYS[:4], f"{name} x": X, "note": ["7391"] * 4},
                "a.parquet": {name: KEYS, f"{name} x": Y},
            },
            arguments=f"--id {shlex.quote(name)} --counts parquet:{{}}/n",
            report={"components": [f"{name} x"]},
        )
        for name in STRANGE_NAMES
    },
    "strange names in CSV": Accepted(
        files={
            "o.csv": 'id,"a.b ""c"" `d` é"\n' + csv_text(originals()).split("\n", 1)[1],
            "a.csv": 'id,"a.b ""c"" `d` é"\n' + csv_text(avatars()).split("\n", 1)[1],
        },
        report={"components": ['a.b "c" `d` é']},
    ),
    "a name with a comma, in a file": Accepted(
        files={
            "o.parquet": renamed(originals(), id="a,b"),
            "a.parquet": renamed(avatars(), id="a,b"),
            "c.toml": "id = ['a,b']",
        },
        arguments="--config {}/c.toml",
    ),
    "a name with blanks around, in a file": Accepted(
        files={
            "o.parquet": renamed(originals(), id=" id "),
            "a.parquet": renamed(avatars(), id=" id "),
            "c.toml": "id = [' id ']",
        },
        arguments="--config {}/c.toml",
    ),
    "integers against longs": Accepted(files={"o.parquet": originals(id=as_type(pa.int32())(KEYS[:4]))}),
    "decimals of another scale": Accepted(
        files={
            "o.parquet": originals(id=as_type(pa.decimal128(9, 0))(KEYS[:4])),
            "a.parquet": avatars(id=as_type(pa.decimal128(12, 2))(KEYS)),
        },
        arguments="--components x",
    ),
    "a key of two": Accepted(
        files={"o.parquet": originals(n=[1, 2, 1, 2]), "a.parquet": avatars(n=[1, 2, 1, 2, 1, 1])},
        arguments="--id id,n --components x",
    ),
    "a byte order mark": Accepted(
        files={
            "o.csv": b"\xef\xbb\xbf" + csv_text(originals()).encode(),
            "a.csv": b"\xef\xbb\xbf" + csv_text(avatars()).encode(),
        },
        report={"components": ["x"]},
    ),
    "line ends of Windows": Accepted(
        files={
            "o.csv": csv_text(originals()).replace("\n", "\r\n"),
            "a.csv": csv_text(avatars()).replace("\n", "\r\n"),
        },
        report={"components": ["x"]},
    ),
    "line ends of an old Mac": Accepted(
        files={"o.csv": csv_text(originals()).replace("\n", "\r"), "a.csv": csv_text(avatars()).replace("\n", "\r")},
        report={"components": ["x"]},
    ),
    "quoted numbers": Accepted(
        files={
            "o.csv": csv_text(originals(x=[f'"{v}"' for v in X], id=[f'"{k}"' for k in KEYS[:4]])),
            "a.csv": csv_text(avatars()),
        },
        report={"components": ["x"]},
    ),
    "exponents and signs": Accepted(
        files={
            "o.csv": csv_text(originals(x=["+739150", "7.3916e5", "739170.", "739180.000"])),
            "a.csv": csv_text(avatars()),
        }
    ),
    "empty lines in CSV": Accepted(
        files={"o.csv": csv_text(originals()).replace("\n", "\n\n"), "a.csv": csv_text(avatars()) + "\n\n"}
    ),
    "no line end at the end": Accepted(files={"o.csv": csv_text(originals())[:-1], "a.csv": csv_text(avatars())[:-1]}),
    "CSV against Parquet": Accepted(files={"o.csv": csv_text(originals())}),
    "dates in CSV": Accepted(
        files={"o.csv": csv_text(originals(id=[str(day(k)) for k in KEYS[:4]])), "a.parquet": avatars(id=dates(KEYS))}
    ),
    "timestamps in CSV": Accepted(
        files={
            "o.csv": csv_text(originals(id=[str(moment(k)) for k in KEYS[:4]])),
            "a.parquet": avatars(id=timestamps(KEYS)),
        }
    ),
    "longs beyond 2^53 in CSV": Accepted(
        files={
            "o.csv": csv_text(originals(id=[k - 73911 + 2**53 for k in KEYS[:4]])),
            "a.parquet": avatars(id=longs_beyond_2_53(KEYS)),
        }
    ),
    "a column named like the mark of a broken row": Accepted(
        files={"o.csv": csv_text(originals(_broken_row=["7391"] * 4)), "a.csv": csv_text(avatars())},
        arguments="--components x",
    ),
    "a path with blanks and signs": Accepted(
        files={"a b é % #/o 1.parquet": originals(), "a b é % #/a+&.parquet": avatars()},
        arguments="--originals 'parquet:{}/a b é % #/o 1.parquet' --avatars 'parquet:{}/a b é % #/a+&.parquet'",
    ),
    "a folder with marks of Spark's": Accepted(
        files={
            "f/1.parquet": {"id": KEYS[:2], "x": X[:2]},
            "f/2.parquet": {"id": KEYS[2:4], "x": X[2:]},
            "f/_SUCCESS": b"",
            "f/.x.crc": b"x",
        },
        arguments="--originals parquet:{}/f",
    ),
    "ORC": Accepted(files={"o.orc": originals(), "a.orc": avatars()}),
    "JSON": Accepted(files={"o.json": "".join(f'{{"id": {k}, "x": {v}}}\n' for k, v in zip(KEYS, X, strict=False))}),
    "a component where names differ by case elsewhere": Accepted(
        files={"o.parquet": originals(Note=["7391"] * 4), "a.parquet": avatars(note=["7391"] * 6)}
    ),
    "a column of the avatars named like an inner one, and a link": Accepted(
        files={"a.parquet": avatars(_key=Y, _avatar=Y), "l.parquet": link_table()},
        arguments="--link parquet:{}/l.parquet",
        report={"link": {"kind": "link table", "columns": ["original_id"]}},
    ),
    "groups by a list": Accepted(files={"o.parquet": originals(ward=[["a", "b"]] * 4)}, arguments="--group-by ward"),
    "a link of more than is there": Accepted(
        files={"l.parquet": {"original_id": [*KEYS[:4], 1], "avatar_id": [*KEYS[:4], 2]}},
        arguments="--link parquet:{}/l.parquet",
    ),
    "a file of settings with a byte order mark": Accepted(
        files={"c.toml": b"\xef\xbb\xbfname = 'n'"}, arguments="--config {}/c.toml", report={"name": "n"}
    ),
    "counts in backticks": Accepted(arguments="--counts '`a_b`'"),
    "thresholds that are met to the last digit": Accepted(
        arguments="--min-local-cloaking 0.5 --min-hidden-rate 37.5", report={"verdict": "pass"}
    ),
    "a name like SQL": Accepted(
        arguments='--name "x\'; DROP TABLE victim; --" --history parquet:{}/h',
        report={"name": "x'; DROP TABLE victim; --"},
    ),
    "a condition of several lines that holds": Accepted(
        files={"c.toml": "where = '''\nid > 1\nand x > 0'''\n"}, arguments="--config {}/c.toml"
    ),
    "positions": Accepted(
        files=BY_POSITION, arguments="--by-position", report={"avatars": 4, "local_cloaking": 0.0, "hidden_rate": 25.0}
    ),
    "one original, one avatar": Accepted(
        files={"o.parquet": {"id": [73911], "x": [7391.0]}, "a.parquet": {"id": [73911], "x": [7391.5]}},
        report={"originals": 1, "avatars": 1, "local_cloaking": 0.0, "hidden_rate": 0.0},
    ),
}


@pytest.mark.parametrize("case", parameters(UNUSUAL))
def test_input_that_only_looks_bad_gives_the_right_figures(run_case, case):
    outcome, written = run_case(case.files, case.arguments)
    assert outcome.code == 0, outcome.problems
    expected = FIGURES | case.report
    assert {name: outcome.report[name] for name in expected} == expected
    reports = {name for name in written if not name.startswith(("n/", "h/", "a_b"))}  # besides counts and history
    assert reports == {"report/report.json", "report/report.html"}
