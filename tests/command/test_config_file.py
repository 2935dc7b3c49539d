"""A file of several reports: one is chosen, over what all share; rules, databases and variables of the environment."""

from pathlib import Path

import pytest

from cloaking.command.settings import parse
from cloaking.errors import SettingsError
from cloaking.results import Rule

TWO = """
ncp = 5
output = "/reports"
[conf]
"spark.a" = 1
[reports.patients]
originals = "gold.patients"
avatars = "gold.patients_avatars"
[reports.staff]
originals = "gold.staff"
avatars = "gold.staff_avatars"
ncp = 3
name = "the staff"
[reports.staff.conf]
"spark.b" = 2
"""
BARE = ["--originals", "a", "--avatars", "b", "--output", "c"]


@pytest.fixture
def toml(tmp_path):
    """The arguments that read a file with this text."""

    def written(text, *arguments):
        path = tmp_path / "reports.toml"
        path.write_text(text, encoding="utf-8")
        return ["--config", str(path), *arguments]

    return written


def problems(argv):
    with pytest.raises(SettingsError) as caught:
        parse(argv)
    return list(caught.value.problems)


def test_a_report_takes_what_all_share_and_overrules_it(toml):
    patients, staff = (parse(toml(TWO, "--report", name)) for name in ("patients", "staff"))
    assert (patients.originals, patients.options.ncp, patients.output, patients.name) == (
        "gold.patients",
        5,
        "/reports",
        "patients",
    )
    assert (staff.originals, staff.options.ncp, staff.name) == ("gold.staff", 3, "the staff")
    assert (patients.conf, staff.conf) == (("spark.a=1",), ("spark.a=1", "spark.b=2"))


def test_the_command_line_wins_over_the_report(toml):
    settings = parse(toml(TWO, "--report", "staff", "--ncp", "2", "--conf", "spark.a=3"))
    assert settings.options.ncp == 2
    assert dict(one.split("=") for one in settings.conf) == {"spark.a": "3", "spark.b": "2"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["patients, staff", "--report"]),
        (["--report", "pateints"], ["reports.pateints", "did you mean patients?"]),
        (["--report", "x"], ["reports.x", "patients, staff"]),
    ],
)
def test_a_report_must_be_chosen_among_those_of_the_file(toml, arguments, words):
    [problem] = problems(toml(TWO, *arguments))
    assert all(word in problem for word in words)


def test_a_report_without_a_file_is_refused():
    assert "--config" in problems([*BARE, "--report", "patients"])[0]


def test_the_keys_of_the_other_reports_are_not_looked_at(toml):
    assert parse(toml(TWO + "nonsense = 1\n", "--report", "patients")).options.ncp == 5
    assert "nonsense" in problems(toml(TWO.replace("[reports.staff.conf]", "nonsense = 1"), "--report", "staff"))[0]


def test_only_the_variables_that_the_file_names_are_put_in(toml, monkeypatch):
    monkeypatch.setenv("FOLDER", "/reports of ${HOME}")
    monkeypatch.setenv("NCP", "2")
    settings = parse([*toml('name = "${FOLDER}/a $NCP"\nid = ["${NCP}"]\n'), *BARE])
    assert (settings.name, settings.options.id, settings.options.ncp) == ("/reports of ${HOME}/a $NCP", ("2",), None)


def test_a_variable_of_what_the_command_line_gives_need_not_be_set(toml, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    assert parse([*toml('output = "${NOT_THERE}"\n'), *BARE]).output == "c"


def test_a_variable_of_what_the_report_overrules_need_not_be_set(toml, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    text = 'output = "${NOT_THERE}/x"\n[reports.a]\noriginals = "o"\navatars = "a"\noutput = "/r"\n'
    assert parse([*toml(text), "--report", "a"]).output == "/r"


def test_a_key_that_fell_under_the_settings_of_spark_is_refused(toml):
    [problem] = problems([*toml('[conf]\n"spark.a" = 1\nmin_local_cloaking = 1000\n'), *BARE])
    assert "a setting of Spark's has dots in its name" in problem
    assert "above the first [table]" in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[report.a]\noriginals = "o"\n', "did you mean [reports.a] by [report.a]?"),
        ("[reports.a.jdbc.x]\n", "unknown key 'jdbc'; keys are the long options"),
    ],
)
def test_a_table_in_the_wrong_place_is_told(toml, text, said):
    assert any(said in problem for problem in problems([*toml(text), *BARE, "--report", "a"]))


def test_a_variable_that_is_not_set_is_named(toml, monkeypatch):
    monkeypatch.delenv("NOT_THERE", raising=False)
    assert "NOT_THERE" in problems([*toml('name = "${NOT_THERE}"\n'), *BARE])[0]


def test_rules_may_be_about_any_quantile_and_any_group(toml):
    text = """
    group_by = "sex"
    gates = [
        { metric = "quantile_0.1", at_least = 1 },
        { metric = "quantile_.25", at_least = 2.5 },
        { metric = "local_cloaking", group = "women", at_least = 4.5 },
        { metric = "hidden_rate_ties_expose", at_least = 80 },
    ]
    """
    settings = parse([*toml(text, "--min-local-cloaking", "5"), *BARE])
    assert settings.rules == (
        Rule("local_cloaking", 5.0),
        Rule("quantile_0.1", 1.0),
        Rule("quantile_0.25", 2.5),
        Rule("local_cloaking", 4.5, "women"),
        Rule("hidden_rate_ties_expose", 80.0),
    )
    assert settings.measured.quantiles == (0.1, 0.25)
    assert settings.measured.at_least == (5, 5)  # what a median of 5, or of 4.5, asks of an original
    assert parse([*BARE, "--min-local-cloaking", "0"]).measured.at_least == ()


@pytest.mark.parametrize(
    ("gates", "word"),
    [
        ("3", "list of tables"),
        ("['hidden_rate']", "no. 1"),
        ("[{ metric = 'median', at_least = 1 }]", "metric must be one of local_cloaking"),
        ("[{ metric = 'quantile_1.5', at_least = 1 }]", "metric"),
        ("[{ metric = 'quantile_0', at_least = 1 }]", "metric"),
        ("[{ metric = 'hidden_rate', at_least = 101 }]", "percentage"),
        ("[{ metric = 'hidden_rate', at_least = '90' }]", "percentage"),
        ("[{ metric = 'local_cloaking', at_least = nan }]", "at least 0"),
        ("[{ metric = 'local_cloaking', at_least = -1 }]", "at least 0"),
        ("[{ metric = 'local_cloaking', at_least = true }]", "at least 0"),
        ("[{ metric = 'local_cloaking' }]", "at least 0"),
        ("[{ metric = 'local_cloaking', at_most = 3 }]", "metric, at_least"),
        ("[{ metric = 'local_cloaking', at_least = 3, group = 1 }]", "group"),
        ("[{ metric = 'local_cloaking', at_least = 3, group = 'a' }]", "--group-by"),
        (
            "[{ metric = 'hidden_rate', at_least = 3 }, { metric = 'hidden_rate', at_least = 4 }]",
            "several rules on hidden_rate",
        ),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(toml, gates, word):
    [problem] = problems([*toml(f"gates = {gates}\n"), *BARE])
    assert word in problem


def test_an_option_and_a_rule_on_the_same_figure_contradict(toml):
    [problem] = problems([*toml("min_hidden_rate = 90\ngates = [{ metric = 'hidden_rate', at_least = 80 }]\n"), *BARE])
    assert "hidden_rate" in problem


DATABASE = """
[jdbc.patients]
url = "jdbc:postgresql://host:5432/clinic"
table = "public.patients"
user = "reporter"
password_env = "CLINIC_PASSWORD"
"""
FROM_DATABASE = ["--originals", "jdbc:patients", "--avatars", "b", "--output", "c"]


def test_a_database_is_named_by_a_block_and_its_password_by_a_variable(toml, monkeypatch):
    monkeypatch.setenv("CLINIC_PASSWORD", "planted-secret")
    settings = parse([*toml(DATABASE), *FROM_DATABASE])
    assert settings.jdbc["patients"].password_env == "CLINIC_PASSWORD"
    assert "planted-secret" not in repr(settings)


def test_blocks_that_no_table_names_are_left_alone(toml):
    assert parse([*toml(DATABASE + "[jdbc.other]\nnonsense = 1\n"), *FROM_DATABASE]).jdbc.keys() == {"patients"}


def test_a_database_without_its_block_is_refused(toml):
    assert "--config" in problems(FROM_DATABASE)[0]
    assert "did you mean patients?" in problems([*toml(DATABASE), "--link", "jdbc:pateints", *FROM_DATABASE])[0]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('pasword_env = "A"', "did you mean password_env?"),
        ('password_file = "/run/secret"', "not both"),
        ("partitions = 4", "belong together"),
        ("fetch_size = 0", "fetch_size"),
        ('driver = ""', "driver"),
    ],
)
def test_what_is_wrong_with_a_block_is_told(toml, line, word):
    [problem] = problems([*toml(DATABASE + line + "\n"), *FROM_DATABASE])
    assert word in problem
    assert "jdbc.patients" in problem


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://user:hunter2@host/db",
        "jdbc:postgresql://host/db?user=a&password=hunter2",
        "jdbc:sqlserver://host;databaseName=a;password=hunter2",
        "jdbc:oracle:thin:scott/hunter2@//db:1521/orcl",
        "jdbc:oracle:thin:scott/hunter2@db:1521:sid",
        "jdbc:mysql://(host=h,user=root,password=hunter2)/db",
        "jdbc:mysql://address=(host=h)(user=root)(password=hunter2)/db",
        "jdbc:db2://h:50000/db:password=hunter2;user=a;",
        "jdbc:db2://h:50000/db:user=a;PWD=hunter2;",
        "jdbc:teradata://host/USER=a,PASSWORD=hunter2",
        "jdbc:postgresql://u:hunter2/x@h/db",
        "jdbc:snowflake://h/?private_key_pwd=hunter2",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(toml, url):
    [problem] = problems([*toml(DATABASE.replace("jdbc:postgresql://host:5432/clinic", url)), *FROM_DATABASE])
    assert "password_env" in problem
    assert "hunter2" not in problem


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:hive2://host:10000/db;principal=hive/_HOST@REALM",
        "jdbc:oracle:thin:/@alias",
        "jdbc:oracle:thin:@//db:1521/orcl",
        "jdbc:postgresql://srv:5432/db?user=admin@srv",
        "jdbc:sqlserver://host:1433;databaseName=a;user=a@s;encrypt=true",
        "jdbc:mysql://host:3306/db?passwordCharacterEncoding=utf8",
        "jdbc:redshift:iam://host:5439/db?AwsCredentialsProviderClass=x.Y",
    ],
)
def test_an_address_without_a_password_passes_for_a_database(toml, url):
    settings = parse([*toml(DATABASE.replace("jdbc:postgresql://host:5432/clinic", url)), *FROM_DATABASE])
    assert {block.url for block in settings.jdbc.values()} == {url}


@pytest.mark.parametrize("option", ["--originals", "--avatars", "--link", "--output", "--counts", "--history"])
@pytest.mark.parametrize(
    "address",
    [
        "parquet:s3://KEY:hunter2@bucket/a",
        "parquet:abfss://box@account/a?sig=hunter2",
        "parquet:s3://bucket/a?secret_key=hunter2&region=eu",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(option, address):
    found = problems([*BARE, option, address])
    assert option in found[0]
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize("address", ["parquet:s3://bucket/a", "parquet:abfss://box@account/a", "csv:/data/a=1,b=2/x"])
def test_an_address_without_a_key_passes(address):
    assert parse([*BARE, "--originals", address]).originals == address


def test_comparing_with_the_last_run_needs_a_history():
    assert "--history" in problems([*BARE, "--compare-last", "0.2"])[0]
    assert parse([*BARE, "--compare-last", "0.2", "--history", "h"]).compare_last == 0.2
    assert "--compare-last" in problems([*BARE, "--compare-last", "20", "--history", "h"])[0]


def test_each_report_of_the_example_is_valid(monkeypatch):
    monkeypatch.setenv("REPORT_FOLDER", "/reports")
    example = str(Path(__file__).resolve().parents[2] / "conf" / "reports.toml")
    patients, staff = (parse(["--config", example, "--report", name]) for name in ("patients", "staff"))
    assert (patients.output, staff.output) == ("/reports/patients", "/reports/staff")
    assert len(patients.rules) == 5
    assert staff.jdbc.keys() == {"staff", "staff_avatars"}
