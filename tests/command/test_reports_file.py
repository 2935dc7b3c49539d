"""Reports from a file, run: rules on quantiles and groups, the history, and what fell since the last run."""

import json
import shlex

import numpy as np
import oracle
import pytest

from cloaking.command.repeat import repeat_with
from cloaking.command.settings import parse

N = 400


@pytest.fixture(scope="module")
def points():
    """Originals in two groups, 250 and 150, those of the second far less hidden; and their avatars."""
    rng = np.random.default_rng(8)
    originals = rng.uniform(-30, 30, size=(N, 2))
    step = np.where(np.arange(N) < 250, 9, 1)[:, None]
    return originals, originals + step * rng.uniform(-1, 1, size=(N, 2))


@pytest.fixture
def toml(points, parquet, tmp_path):
    """Write a file with one report on these tables; returns the arguments that run it."""
    originals, avatars = points
    group = np.where(np.arange(N) < 250, "a, b", "c")
    refs = [
        parquet(name, {"id": np.arange(N), "x": side[:, 0], "y": side[:, 1], **more})
        for name, side, more in (("originals", originals, {"arm": group}), ("avatars", avatars, {}))
    ]

    def written(*lines):
        text = [f"originals = '{refs[0]}'", f"avatars = '{refs[1]}'", "[reports.trial]", "group_by = 'arm'", *lines]
        (tmp_path / "reports.toml").write_text("\n".join(text) + "\n", encoding="utf-8")
        return ["--config", str(tmp_path / "reports.toml"), "--report", "trial"]

    return written


def test_rules_on_quantiles_and_groups_decide(command, toml, points):
    closer, tied, cloaking = oracle.cloaking(points[1], points[0])
    tenth = oracle.quantile(cloaking, 0.1)
    second = oracle.figures(closer[250:], tied[250:])
    done = command(
        *toml(
            "gates = [",
            f"  {{ metric = 'quantile_0.1', at_least = {tenth} }},",
            f"  {{ metric = 'local_cloaking', group = 'c', at_least = {second.local_cloaking} }},",
            f"  {{ metric = 'hidden_rate_ties_expose', group = 'c', at_least = {second.hidden_rate_ties_expose} }},",
            "]",
        )
    )
    assert (done.code, done.report["verdict"], done.report["name"]) == (0, "pass", "trial")
    assert done.report["cloaking"]["quantiles"]["0.1"] == pytest.approx(tenth, rel=1e-15)
    assert [(gate["metric"], gate.get("group"), gate["met"]) for gate in done.report["gates"]] == [
        ("quantile_0.1", None, True),
        ("local_cloaking", "c", True),
        ("hidden_rate_ties_expose", "c", True),
    ]


def test_a_group_under_its_threshold_fails_the_run(command, toml, tmp_path):
    done = command(*toml("gates = [{ metric = 'local_cloaking', group = 'c', at_least = 1000 }]"))
    assert (done.code, done.report["verdict"]) == (3, "fail")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Local Cloaking, group c" in page
    assert "at least 1,000" in page


def test_a_rule_on_a_group_that_is_not_there_is_refused_before_anything_is_counted(command, toml):
    done = command(*toml("gates = [{ metric = 'local_cloaking', group = 'd', at_least = 1 }]"))
    assert (done.code, done.report) == (2, None)
    assert "'d'" in done.problems[-1]
    assert "a, b, c" in done.problems[-1]


def test_the_page_repeats_a_run_with_rules_from_a_file(command, toml, tmp_path):
    rule = "{ metric = 'local_cloaking', group = 'c', at_least = 1.5 }"
    done = command(*toml(f"gates = [{rule}]", "where = 'id < 400'"))
    words, lines = repeat_with(done.report["parameters"], done.report["run_date"])
    (tmp_path / "again.toml").write_text("\n".join(lines))
    argv = [*shlex.split(" ".join(words))[1:], "--config", str(tmp_path / "again.toml")]
    options = toml(f"gates = [{rule}]", "where = 'id < 400'", "output = 'x'")
    again, first = parse(argv), parse(options)
    assert (again.rules, again.where, again.originals, again.options.group_by) == (
        first.rules,
        first.where,
        first.originals,
        first.options.group_by,
    )


def test_a_figure_that_fell_since_the_last_run_is_told(command, toml, spark, tmp_path):
    history = f"parquet:{tmp_path / 'history'}"
    run = toml(f"history = '{history}'", "compare_last = 0.1")
    assert command(*run, "--run-date", "2026-09-01").report["warnings"] == []
    assert command(*run, "--run-date", "2026-10-01").report["warnings"] == []
    # only those of the second group are kept, whose avatars are near
    fell = command(*run, "--run-date", "2026-11-01", "--where", "id >= 250", "--where-avatars", "id >= 250")
    messages = {warning["code"]: warning["message"] for warning in fell.report["warnings"]}
    assert "figure_fell" in messages
    assert "on 2026-10-01" in messages["figure_fell"]
    other = command(*run, "--run-date", "2026-12-01", "--ncp", "1")
    assert "not_comparable" in {warning["code"] for warning in other.report["warnings"]}
    rows = spark.read.parquet(str(tmp_path / "history")).orderBy("run_date").collect()
    assert [row.run_date.month for row in rows] == [9, 10, 11, 12]
    assert {row.name for row in rows} == {"trial"}
    assert json.loads(rows[0].quantiles)["0.5"] == rows[0].local_cloaking


def test_a_run_of_the_same_date_replaces_its_row(command, toml, spark, tmp_path):
    run = toml(f"history = 'parquet:{tmp_path / 'history'}'", "run_date = 2026-11-01")
    first, second = command(*run), command(*run, "--ncp", "1")
    [row] = spark.read.parquet(str(tmp_path / "history")).collect()
    assert row.run_id == second.report["run_id"] != first.report["run_id"]
    assert row.ncp == 1


def test_a_history_that_cannot_be_kept_is_refused_before_anything_is_counted(command, toml, tmp_path):
    for ref in (f"csv:{tmp_path}/history", "jdbc:history"):
        done = command(*toml(f"history = '{ref}'"))
        assert (done.code, done.report) == (2, None)
        assert "history" in done.problems[-1]
