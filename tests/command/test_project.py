"""The projecting command within the suite's session: what it writes, what it refuses, and what then stands."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloaking.command.project import main
from cloaking.command.project_settings import parse
from cloaking.errors import SettingsError


@pytest.fixture
def project(spark, tmp_path, capsys):
    """Run the command; return exit code and problems."""

    def run(*argv):
        capsys.readouterr()
        code = main(list(map(str, argv)))
        said = capsys.readouterr().err.splitlines()
        return code, [line.removeprefix("project: ") for line in said if line.startswith("project: ")]

    return run


@pytest.fixture
def raw(parquet):
    rng = np.random.default_rng(0)
    columns = {
        "id": np.arange(60), "age": rng.integers(20, 80, 60), "weight": rng.normal(70, 9, 60), "arm": np.arange(60) % 3
    }  # fmt: skip
    return parquet("originals", columns), parquet("avatars", columns | {"age": columns["age"][::-1]})


def read(path):
    return pq.read_table(path).to_pandas().sort_values("id", ignore_index=True)


def test_two_tables_and_the_model_are_written(project, raw, tmp_path):
    code, problems = project(
        "--originals", raw[0], "--avatars", raw[1], "--ncp", 2, "--categorical", "arm", "--output", tmp_path / "model",
        "--projected-originals", f"parquet:{tmp_path}/o", "--projected-avatars", f"parquet:{tmp_path}/a",
    )  # fmt: skip
    assert (code, problems) == (0, [])
    model = json.loads((tmp_path / "model" / "model.json").read_text())
    assert (model["method"], model["ncp"], model["rows"]) == ("famd", 2, 60)
    originals, avatars = read(tmp_path / "o"), read(tmp_path / "a")
    assert list(originals.columns) == list(avatars.columns) == ["id", "dim_1", "dim_2"]
    assert len(originals) == len(avatars) == 60 and not originals.equals(avatars)

    code, problems = project(
        "--model",
        tmp_path / "model" / "model.json",
        "--avatars",
        raw[1],
        "--projected-avatars",
        f"parquet:{tmp_path}/b",
    )
    assert (code, problems) == (0, [])
    assert read(tmp_path / "b").equals(avatars)  # bit by bit


def test_csv_and_parquet_give_the_same(project, csv, parquet, tmp_path):
    lines = [f"{i},{i * i % 17},{'ab'[i % 2]},{i % 3}" for i in range(40)]
    text = csv("raw", "id,x,word,arm\n" + "\n".join(lines))
    typed = parquet("raw", pd.DataFrame([line.split(",") for line in lines], columns=["id", "x", "word", "arm"]).astype(
        {"id": int, "x": float, "arm": int}
    ))  # fmt: skip
    found = []
    for i, sides in enumerate([(text, text), (typed, text), (text, typed), (typed, typed)]):
        where = [f"parquet:{tmp_path}/{i}{side}" for side in "oa"]
        code, problems = project(
            "--originals", sides[0], "--avatars", sides[1], "--ncp", 2, "--categorical", "arm",
            "--output", tmp_path / str(i),
            "--projected-originals", where[0], "--projected-avatars", where[1],
        )  # fmt: skip
        assert (code, problems) == (0, [])
        pair = [read(ref.removeprefix("parquet:")) for ref in where]
        assert pair[0]["id"].dtype == pair[1]["id"].dtype
        found += [each.assign(id=each["id"].astype(int)).sort_values("id", ignore_index=True) for each in pair]
    assert all(each.equals(found[0]) for each in found)


def test_a_type_mismatch_writes_nothing(project, raw, parquet, tmp_path):
    table = pq.read_table(raw[1].removeprefix("parquet:"))
    other = parquet("other", table.set_column(3, "arm", table["arm"].cast(pa.float64())))
    code, problems = project(
        "--originals", raw[0], "--avatars", other, "--ncp", 2, "--categorical", "arm", "--output", tmp_path / "model",
        "--projected-originals", f"parquet:{tmp_path}/o", "--projected-avatars", f"parquet:{tmp_path}/a",
    )  # fmt: skip
    assert code == 2 and len(problems) == 1
    assert (
        "60 of 60 rows" in problems[0] and "the types differ (bigint among the originals, double here)" in problems[0]
    )
    assert not any((tmp_path / name).exists() for name in ("model", "o", "a"))


def test_a_table_that_exists_is_refused_and_stays(project, raw, tmp_path):
    (tmp_path / "o").mkdir()
    code, problems = project(
        "--originals", raw[0], "--ncp", 2, "--output", tmp_path, "--projected-originals", f"parquet:{tmp_path}/o"
    )
    assert code == 2 and "exists already; give --overwrite" in problems[0]
    assert list((tmp_path / "o").iterdir()) == [] and not (tmp_path / "model.json").exists()


def test_a_later_failure_removes_what_was_written(project, raw, tmp_path):
    (tmp_path / "file").write_text("in the way")
    code, problems = project(
        "--originals",
        raw[0],
        "--ncp",
        2,
        "--output",
        tmp_path / "file",
        "--projected-originals",
        f"parquet:{tmp_path}/o",
    )
    assert code == 2 and "cannot be written" in problems[0] and not (tmp_path / "o").exists()


def test_earlier_tables_and_the_model_stand_where_a_later_step_fails(project, raw, tmp_path, monkeypatch, caplog):
    from cloaking.tables import text_files

    argv = [
        "--originals", raw[0], "--avatars", raw[1], "--categorical", "arm", "--output", tmp_path / "model",
        "--overwrite", "--projected-originals", f"parquet:{tmp_path}/o", "--projected-avatars", f"parquet:{tmp_path}/a",
    ]  # fmt: skip
    assert project(*argv, "--ncp", 2) == (0, [])
    before = [read(tmp_path / name) for name in "oa"] + [(tmp_path / "model" / "model.json").read_text()]
    move = text_files.Files.move

    def refused(self, name, to):
        if to.endswith("model.json"):
            raise OSError(28, "full")
        move(self, name, to)

    with monkeypatch.context() as patched:
        patched.setattr(text_files.Files, "move", refused)
        code, [problem] = project(*argv, "--ncp", 1)
    assert (code, "model.json cannot be written (No space left on device)" in problem) == (2, True)
    # The earlier model cannot be moved back either: it is said where it is.
    [model] = (tmp_path / "model").glob(".model.json.*.earlier")
    assert f"the earlier one is at {model}" in caplog.text
    after = [read(tmp_path / name) for name in "oa"] + [model.read_text()]
    assert before[0].equals(after[0]) and before[1].equals(after[1]) and before[2] == after[2]
    assert caplog.text.count("removed again, since a later step failed; the earlier one is unchanged") == 2
    assert project(*argv, "--ncp", 1) == (0, [])
    assert list(read(tmp_path / "o").columns) == ["id", "dim_1"]


def test_rows_of_two_files_can_be_numbered(project, csv, tmp_path):
    a, b = (csv(name, "x,y\n" + "\n".join(f"{i},{i * k % 11}" for i in range(30))) for name, k in (("a", 3), ("b", 5)))
    code, problems = project(
        "--by-position", "--originals", a, "--avatars", b, "--ncp", 2, "--output", tmp_path,
        "--projected-originals", f"parquet:{tmp_path}/o", "--projected-avatars", f"parquet:{tmp_path}/a",
    )  # fmt: skip
    assert (code, problems) == (0, [])
    assert read(tmp_path / "a")["id"].tolist() == list(range(30))


def test_a_file_that_is_no_model_is_refused(project, raw, tmp_path):
    args = ("--avatars", raw[1], "--projected-avatars", f"parquet:{tmp_path}/a")
    assert project("--model", tmp_path / "none.json", *args) == (
        2, [f"--model {tmp_path}/none.json: cannot be read (No such file or directory)"]
    )  # fmt: skip
    (tmp_path / "some.json").write_text("{}")
    code, problems = project("--model", tmp_path / "some.json", *args)
    assert code == 2 and len(problems) == 1 and "is not a projection model" in problems[0]


@pytest.mark.parametrize(
    "argv, problems",
    [
        ("", ["--originals is missing, or --model", "--ncp is missing, or --model", "--output is missing, or --model"]),
        ("--model m --ncp 2 --drop a", ["--model fixes the projected space; leave out --ncp, --drop",
                                        "--model needs a table to project: --originals, --avatars or both"]),
        ("--model m --avatars t", ["--projected-avatars is missing: where to write the projected avatars"]),
        ("--originals t --ncp 2 --output d --projected-avatars u", ["--projected-avatars needs --avatars"]),
        ("--originals t --ncp 2 --output d --by-position --id a",
         ["--by-position numbers the rows itself; leave --id and --made-from out"]),
        ("--originals t --ncp 0",
         ["argument --ncp: a whole number from 1 to 2147483647 is needed, not '0'; see --help"]),
        ("--originals t --id a,b --made-from c --ncp 1 --output d",
         ["--made-from names 1 column(s), --id 2: they must match one by one"]),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_are_refused_at_once(argv, problems):
    with pytest.raises(SettingsError) as error:
        parse(argv.split())
    assert list(error.value.problems) == problems
