"""Bad links between originals and avatars: link tables, and rows linked by their position."""

import pytest
from bad_input import (
    BY_POSITION,
    KEYS,
    Refused,
    X,
    Y,
    assert_refused,
    avatars,
    link_table,
    originals,
    parameters,
    renamed,
)

BAD_LINK_TABLES = {
    "an original linked twice": Refused(
        files={"l.parquet": link_table(original_id=[KEYS[0], *KEYS[:3]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 1 value(s) | 'original_id' | keep one"],
    ),
    "an avatar linked twice": Refused(
        files={"l.parquet": link_table(avatar_id=[KEYS[0], *KEYS[:3]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 1 value(s) | 'avatar_id' | keep one"],
    ),
    "a link of nulls": Refused(
        files={"l.parquet": link_table(original_id=[None, *KEYS[:3]], avatar_id=[None, None, *KEYS[:2]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 1 rows | 'original_id'", "l.parquet' | 2 rows | 'avatar_id'"],
    ),
    "a link without its columns": Refused(
        files={"l.parquet": {"original": KEYS, "avatar": KEYS}},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 'original_id' | missing", "l.parquet' | 'avatar_id' | missing"],
    ),
    "a link of another case": Refused(
        files={"l.parquet": renamed(link_table(), original_id="ORIGINAL_ID")},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 'original_id' | 'ORIGINAL_ID'"],
    ),
    "a link of text": Refused(
        files={"l.parquet": link_table(avatar_id=[str(k) for k in KEYS[:4]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["a.parquet' | l.parquet' | 'avatar_id' | bigint | string"],
    ),
    "a link of doubles": Refused(
        files={"l.parquet": link_table(avatar_id=[float(k) for k in KEYS[:4]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["l.parquet' | 'avatar_id' | double | makes no key"],
    ),
    "a link that leaves originals out": Refused(
        files={"l.parquet": {"original_id": KEYS[:1], "avatar_id": KEYS[:1]}},
        arguments="--link parquet:{}/l.parquet",
        problems=["3 of 4 originals have no avatar"],
    ),
    "a link to avatars that are not there": Refused(
        files={"l.parquet": link_table(avatar_id=[1, 2, 3, KEYS[3]])},
        arguments="--link parquet:{}/l.parquet",
        problems=["3 of 4 originals have no avatar"],
    ),
    "an empty link": Refused(
        files={"l.csv": "original_id,avatar_id\n"},
        arguments="--link csv:{}/l.csv",
        problems=["4 of 4 originals have no avatar"],
    ),
    "repeated avatars of a link": Refused(
        files={"a.parquet": avatars(id=[*KEYS[:5], KEYS[0]]), "l.parquet": link_table()},
        arguments="--link parquet:{}/l.parquet",
        problems=["a.parquet' | 1 value(s) | 'id'"],
    ),
    "a link that is not there": Refused(
        arguments="--link parquet:{}/l.parquet", problems=["link | l.parquet' | cannot be read"]
    ),
    "a link for a key of two": Refused(
        arguments="--link parquet:{}/l.parquet --id id,x", problems=["--link | one column"]
    ),
}

BAD_POSITIONS = {
    "positions of different lengths": Refused(
        files=BY_POSITION | {"a.parquet": {"x": Y[:3]}},
        arguments="--by-position",
        problems=["a.parquet' | 1 of 4 originals have no avatar"],
    ),
    "positions in several files": Refused(
        files=BY_POSITION | {"f/1.parquet": {"x": X[:2]}, "f/2.parquet": {"x": X[2:]}},
        arguments="--by-position --originals parquet:{}/f",
        problems=["f' | --by-position | one file, found 2 | --id"],
    ),
    "positions in ORC": Refused(
        files=BY_POSITION | {"o.orc": originals(id=None)},
        arguments="--by-position",
        problems=["o.orc' | --by-position | orc | --id"],
    ),
    "positions hidden by a column": Refused(
        files=BY_POSITION | {"o.parquet": {"_metadata": ["7391"] * 4, "x": X}},
        arguments="--by-position",
        problems=["o.parquet' | '_metadata' | rename"],
    ),
    "positions in a catalog": Refused(
        files=BY_POSITION,
        arguments="--by-position --originals victim",
        problems=["originals 'victim' | --by-position | --id"],
    ),
    "positions beside a key": Refused(arguments="--by-position --id id", problems=["--by-position | --id"]),
    "positions beside a link": Refused(
        arguments="--by-position --link parquet:{}/l", problems=["only one of --link, --by-position"]
    ),
    "positions without a component": Refused(arguments="--by-position --components id", problems=["'id'"]),
}


@pytest.mark.parametrize("case", parameters(BAD_LINK_TABLES))
def test_bad_link_tables_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)


@pytest.mark.parametrize("case", parameters(BAD_POSITIONS))
def test_bad_positions_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
