"""Command line and TOML in, settings out; everything that is wrong is said at once."""

import subprocess
import sys

import pytest

from cloaking.command.settings import parse
from cloaking.errors import SettingsError

BARE = ["--originals", "a", "--avatars", "b", "--output", "out"]


def problems(argv):
    with pytest.raises(SettingsError) as caught:
        parse(argv)
    return caught.value.problems


@pytest.fixture
def toml(tmp_path):
    def written(text):
        path = tmp_path / "report.toml"
        path.write_text(text)
        return ["--config", str(path)]

    return written


def test_three_options_are_enough_and_the_rest_has_its_documented_default():
    settings = parse(BARE)
    assert (settings.originals, settings.avatars, settings.output) == ("a", "b", "out")
    assert settings.options.id == ("id",)
    assert settings.options.tie_tolerance == 1e-12
    assert not (settings.by_position or settings.overwrite or settings.dry_run)
    unset = [
        "where",
        "where_avatars",
        "made_from",
        "link",
        "components",
        "ncp",
        "counts",
        "name",
        "run_date",
        "group_by",
    ]
    for name in [*unset, "min_local_cloaking", "min_hidden_rate", "tasks"]:
        assert getattr(settings.options if hasattr(settings.options, name) else settings, name) is None


@pytest.mark.parametrize(
    ("option", "text", "field", "value"),
    [
        ("--id", "hospital,patient", "id", ("hospital", "patient")),
        ("--components", "Dim. 1,Dim. 2", "components", ("Dim. 1", "Dim. 2")),
        ("--made-from", "original_id", "made_from", ("original_id",)),
        ("--ncp", "5", "ncp", 5),
        ("--tasks", "8", "tasks", 8),
        ("--tie-tolerance", "0", "tie_tolerance", 0.0),
        ("--tie-tolerance", "1e-6", "tie_tolerance", 1e-6),
        ("--min-local-cloaking", "6", "min_local_cloaking", 6.0),
        ("--min-hidden-rate", "100", "min_hidden_rate", 100.0),
        ("--run-date", "2026-02-28", "run_date", "2026-02-28"),
        ("--where", "age > 3", "where", "age > 3"),
        ("--conf", "spark.a=b=c", "conf", ("spark.a=b=c",)),
    ],
)
def test_an_option_is_read(option, text, field, value):
    found = parse([*BARE, option, text])
    assert getattr(found.options if hasattr(found.options, field) else found, field) == value


def test_spark_settings_can_be_repeated():
    assert parse([*BARE, "--conf", "spark.a=1", "--conf", "spark.b=2"]).conf == ("spark.a=1", "spark.b=2")


def test_a_local_address_is_a_folder():
    tables = ["--originals", "a", "--avatars", "b"]
    for given, folder in (
        ("file:/tmp/r", "/tmp/r"), ("s3://bucket/r", "s3://bucket/r"), ("report of 3:00", "report of 3:00")
    ):  # fmt: skip
        assert parse([*tables, "--output", given]).output == folder


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--ncp", "0"], "--ncp"),
        (["--ncp", "2.5"], "--ncp"),
        (["--tasks", "-1"], "--tasks"),
        (["--conf", "history=parquet:/h"], "has dots in its name"),
        (["--output", "dbfs:/reports"], "dbfs://"),
        (["--output", "hdfs:/reports"], "hdfs://"),
        (["--history", "h", "--compare-last", "1"], "below 1"),
        (["--history", "h", "--name", "n" * 251], "at most 250 bytes"),
        (["--history", "h", "--name", ":" * 84], "at most 250 bytes"),
        (["--tie-tolerance", "2e-6"], "--tie-tolerance"),
        (["--tie-tolerance", "nan"], "--tie-tolerance"),
        (["--min-local-cloaking", "-1"], "--min-local-cloaking"),
        (["--min-local-cloaking", "inf"], "--min-local-cloaking"),
        (["--min-hidden-rate", "101"], "--min-hidden-rate"),
        (["--run-date", "28/02/2026"], "--run-date"),
        (["--run-date", "2026-02-30"], "--run-date"),
        (["--id", "a,,b"], "--id"),
        (["--id", "a,a"], "--id"),
        (["--components", "a,b,a"], "--components"),
        (["--where", " "], "--where"),
        (["--conf", "nothing"], "--conf"),
        (["--nonsense"], "--nonsense"),
        (["--comp", "a"], "--comp"),  # no abbreviations: they change their meaning with each new option
        (["--overwrite"], "--counts"),
        (["--made-from", "a", "--link", "b"], "--made-from, --link"),
        (["--link", "b", "--by-position"], "--link, --by-position"),
        (["--made-from", "a,b"], "--made-from"),
        (["--link", "t", "--id", "a,b"], "--link"),
        (["--by-position", "--id", "a"], "--id"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(argv, word):
    assert any(word in problem for problem in problems([*BARE, *argv]))


def test_all_that_is_missing_is_said_at_once():
    assert len(problems([])) == 3
    assert {"--originals", "--avatars", "--output"} == {problem.split()[0].rstrip(":") for problem in problems([])}


def test_a_dry_run_needs_no_report_folder():
    assert parse(["--originals", "a", "--avatars", "b", "--dry-run"]).output is None


def test_every_kind_of_value_can_stand_in_a_file(toml):
    settings = parse(
        toml(
            """
            originals = "gold.patients"
            avatars = 'csv:/data/Dim. 1.csv'
            id = ["hospital", "patient"]
            components = "a,b"
            ncp = 2
            min_hidden_rate = 90
            tie_tolerance = 1e-9
            dry_run = true
            run_date = 2026-02-28
            [conf]
            "spark.driver.memory" = "2g"
            "spark.task.cpus" = 1
            """
        )
    )
    assert (settings.originals, settings.avatars) == ("gold.patients", "csv:/data/Dim. 1.csv")
    assert settings.options.id == ("hospital", "patient")
    assert settings.options.components == ("a", "b")
    assert (settings.options.ncp, settings.min_hidden_rate, settings.options.tie_tolerance) == (2, 90.0, 1e-9)
    assert settings.dry_run is True
    assert settings.run_date == "2026-02-28"
    assert settings.conf == ("spark.driver.memory=2g", "spark.task.cpus=1")


def test_a_spark_setting_may_be_written_with_bare_dots(toml):
    settings = parse([*BARE, *toml('[conf]\nspark.driver.memory = "2g"\nspark.ui.enabled = false\n')])
    assert sorted(text.lower() for text in settings.conf) == ["spark.driver.memory=2g", "spark.ui.enabled=false"]


def test_the_command_line_wins_over_the_file(toml):
    settings = parse([*BARE, *toml('originals = "other"\nncp = 2\nname = "n"\n'), "--ncp", "3"])
    assert (settings.originals, settings.options.ncp, settings.name) == ("a", 3, "n")


def test_an_unknown_key_is_refused_with_the_nearest(toml):
    [problem] = problems([*BARE, *toml("min_hiden_rate = 90\n")])
    assert "min_hiden_rate" in problem
    assert "min_hidden_rate" in problem.replace("min_hiden_rate", "")


def test_an_option_with_hyphens_is_no_key_and_its_key_is_named(toml):
    [problem] = problems([*BARE, *toml("min-hidden-rate = 90\n")])
    assert "min_hidden_rate" in problem


@pytest.mark.parametrize(
    "line",
    [
        'ncp = "5"', "ncp = 2.5", "ncp = true", "history = 5", "dry_run = 1", 'dry_run = "yes"', "id = []",
        'id = ["a", 1]', "id = 3", 'conf = "a=b"', "where = ['a']", "run_date = 2026", 'tie_tolerance = "1e-9"',
        "name = 2026-02-28", "min_hidden_rate = 200", "min_local_cloaking = nan",
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_refused_by_its_key(toml, line):
    [problem] = problems([*BARE, *toml(line + "\n")])
    assert line.split()[0] in problem.split(": ", 1)[1]


def test_all_that_is_wrong_in_a_file_is_said_at_once(toml):
    assert len(problems([*BARE, *toml("ncp = 0\nnonsense = 1\nid = []\n")])) == 3


@pytest.mark.parametrize("text", ["ncp = ", "[conf", "ncp = 1\nncp = 2\n"])
def test_a_file_that_is_no_toml_is_refused(toml, text):
    [problem] = problems([*BARE, *toml(text)])
    assert "TOML" in problem


def test_a_file_that_is_not_there_is_refused(tmp_path):
    [problem] = problems([*BARE, "--config", str(tmp_path / "none.toml")])
    assert "none.toml" in problem


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "latin.toml"
    path.write_bytes('name = "é"'.encode("latin-1"))
    [problem] = problems([*BARE, "--config", str(path)])
    assert "latin.toml" in problem


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_need_nothing_and_load_no_spark(option):
    code = (
        "import sys\n"
        "from cloaking.command.local_cloaking import main\n"
        f"try: main([{option!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'pyspark', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout


def test_the_help_says_what_the_exit_codes_mean(capsys):
    with pytest.raises(SystemExit) as end:
        parse(["--help"])
    assert not end.value.code
    said = capsys.readouterr().out
    assert "exit codes" in said
    for option in ("--originals", "--made-from", "--by-position", "--min-local-cloaking", "--counts", "--config"):
        assert option in said
