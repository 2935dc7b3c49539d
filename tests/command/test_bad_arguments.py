"""Bad arguments on the command line and in the file of settings."""

import pytest
from bad_input import Refused, assert_refused, parameters

GATE = "gates = [{{ metric = '{}', at_least = {} }}]"

BAD_SETTINGS = {
    **{
        f"a file with {line[:40]}": Refused(
            files={"c.toml": line}, arguments="--config {}/c.toml", problems=[f"c.toml | {words}"]
        )
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
    "a file of bytes": Refused(
        files={"c.toml": b"name = '\xe9'"}, arguments="--config {}/c.toml", problems=["c.toml | TOML"]
    ),
    "a folder for a file": Refused(
        files={"c/x": b""}, arguments="--config {}/c", problems=["--config | cannot be read"]
    ),
    "no such file": Refused(arguments="--config {}/c.toml", problems=["c.toml | cannot be read"]),
    "two rules on one figure": Refused(
        files={"c.toml": GATE.format("hidden_rate", 80)},
        arguments="--config {}/c.toml --min-hidden-rate 90",
        problems=["gates | several rules on hidden_rate"],
    ),
    "a rule on a group without --group-by": Refused(
        files={"c.toml": GATE.format("hidden_rate", "1, group = 'a'")},
        arguments="--config {}/c.toml",
        problems=["gates | --group-by"],
    ),
}

BAD_ARGUMENTS = {
    **{
        f"the arguments {line}": Refused(arguments=line, problems=[words])
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
}


@pytest.mark.parametrize("case", parameters(BAD_SETTINGS))
def test_bad_settings_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)


@pytest.mark.parametrize("case", parameters(BAD_ARGUMENTS))
def test_bad_arguments_are_refused_and_nothing_is_written(run_case, case):
    assert_refused(run_case, case)
