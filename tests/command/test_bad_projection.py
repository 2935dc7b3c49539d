"""Bad tables for --project: missing values, unseen modalities, columns that no method projects."""

import pytest
from bad_input import (
    INF,
    NAN,
    Refused,
    X,
    Y,
    assert_refused,
    avatars,
    both,
    dates,
    originals,
    parameters,
    renamed,
    vectors,
)

RAW = {"o.parquet": originals(y=["b", "c", "b", "c"]), "a.parquet": avatars(y=["b", "c", "b", "c", "b", "b"])}

BAD_RAW_TABLES = {
    "raw numbers missing": Refused(
        files=RAW | {"o.parquet": RAW["o.parquet"] | {"x": [*X[:3], None]}},
        arguments="--project famd --ncp 1",
        problems=["o.parquet' | 'x' | missing | 1 of 4 | --missing-continuous"],
    ),
    "raw categories missing": Refused(
        files=RAW | {"o.parquet": RAW["o.parquet"] | {"y": ["b", "c", None, "b"]}},
        arguments="--project famd --ncp 1",
        problems=["o.parquet' | 'y' | missing | 1 of 4 | --missing-categorical"],
    ),
    "raw numbers infinite": Refused(
        files=RAW | {"o.parquet": RAW["o.parquet"] | {"x": [*X[:3], INF]}},
        arguments="--project famd --ncp 1",
        problems=["o.parquet' | 'x' | infinite | 1 of 4"],
    ),
    "raw avatars missing": Refused(
        files=RAW | {"a.parquet": RAW["a.parquet"] | {"x": [NAN, *Y[1:]]}},
        arguments="--project famd --ncp 1",
        problems=["a.parquet' | 'x' | missing | 1 of 6"],
    ),
    "unseen modalities": Refused(
        files=RAW | {"a.parquet": RAW["a.parquet"] | {"y": ["Zz-7391", *"bcbcb"]}},
        arguments="--project famd --ncp 1",
        problems=["a.parquet' | 'y' | 1 modalities in 1 of 6 | --unseen ignore"],
    ),
    "modalities of another type": Refused(
        files=RAW
        | {"o.parquet": originals(y=["7391", "73912", "7391", "73912"]), "a.parquet": avatars(y=[7391.0, 73912.0] * 3)},
        arguments="--project famd --ncp 1 --categorical y",
        problems=["a.parquet' | 'y' | 2 modalities in 6 of 6 | string | double | cast"],
    ),
    "only constant columns": Refused(
        files=RAW | {"o.parquet": originals(x=[739150.0] * 4)},
        arguments="--project pca --ncp 1",
        problems=["o.parquet' | one value | nothing to project"],
    ),
    "more components than the rank": Refused(
        files=RAW, arguments="--project famd --ncp 3", problems=["o.parquet' | --ncp 3 | rank | 2"]
    ),
    "PCA of text": Refused(
        files=RAW, arguments="--project pca --ncp 1", problems=["o.parquet' | numbers only | y | --drop"]
    ),
    "MCA of numbers": Refused(
        files=RAW, arguments="--project mca --ncp 1", problems=["o.parquet' | categories only | x | --drop"]
    ),
    "raw dates": Refused(
        files=RAW | both(dates, "x"), arguments="--project auto --ncp 1", problems=["o.parquet' | 'x' | date"]
    ),
    "raw vectors": Refused(
        files=RAW | both(vectors, "x"), arguments="--project auto --ncp 1", problems=["o.parquet' | 'x' | struct"]
    ),
    "raw avatars without a column": Refused(
        files=RAW | {"a.parquet": avatars()},
        arguments="--project famd --ncp 1",
        problems=["a.parquet' | 'y' | missing"],
    ),
    "raw roles of no column": Refused(
        files=RAW,
        arguments="--project famd --ncp 1 --continuous z --drop w",
        problems=["o.parquet' | 'z' | --continuous", "o.parquet' | 'w' | --drop"],
    ),
    "raw roles twice": Refused(
        files=RAW,
        arguments="--project famd --ncp 1 --continuous x --categorical x",
        problems=["'x' | more than one | once"],
    ),
    "raw rows none": Refused(
        files=RAW, arguments="--project famd --ncp 1 --where 'id < 0'", problems=["o.parquet' | no rows | --where"]
    ),
    "a key named like a coordinate": Refused(
        files={"o.parquet": renamed(originals(), id="dim_1"), "a.parquet": renamed(avatars(), id="dim_1")},
        arguments="--project pca --ncp 1 --id dim_1",
        problems=["'dim_1' | rename"],
    ),
    "--project without --ncp": Refused(files=RAW, arguments="--project famd", problems=["--project | --ncp"]),
    "--project with --components": Refused(
        files=RAW, arguments="--project famd --ncp 1 --components x", problems=["--components | leave it out"]
    ),
    "--unseen without --project": Refused(files=RAW, arguments="--unseen ignore", problems=["--unseen | --project"]),
}


@pytest.mark.parametrize("case", parameters(BAD_RAW_TABLES))
def test_bad_raw_tables_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
