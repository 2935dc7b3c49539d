"""Run -> report.json: the documented keys, plain values, nothing that JSON has no word for."""

import json
from dataclasses import replace

import pytest

from cloaking import report
from cloaking.results import CLASSES, QUANTILES, CloakingClass, Gate, Interval, Notice, Run, Summary

FIGURES = Summary(
    local_cloaking=2.5,
    hidden_rate=56.25,
    hidden_rate_ties_hide=75.0,
    hidden_rate_ties_expose=25.0,
    originals=4,
    avatars=6,
    components=("Dim. 1", "Dim. 2"),
    mean=2.5,
    min=0,
    max=6,
    quantiles=dict.fromkeys(QUANTILES, 2.5),
    classes=tuple(CloakingClass(low, high, 0) for low, high in CLASSES),
    originals_with_ties=3,
    at_least=((1, 3), (6, 1)),
    interval=Interval(0.875, 0.0, 6.0),
    warnings=(Notice("many_ties", "3 of 4 é"),),
)
RUN = Run(
    run_id="r",
    name="patients",
    run_at="2026-02-28T12:00:00+00:00",
    run_date="2026-02-28",
    summary=FIGURES,
    gates=(),
    inputs=(("gold.o", 4), ("gold.a", 6)),
    link_kind="key",
    link_columns=("id",),
    parameters={"ncp": None},
    versions={"cloaking": "0"},
    strategy="broadcast",
    seconds={"total": 1.5},
)


def written(run):
    return json.loads(report.to_json(run))


def test_the_figures_of_the_run_stand_in_the_report_as_they_are():
    found = written(RUN)
    assert found["schema_version"] == 1
    expected = {
        "run_id": "r",
        "name": "patients",
        "run_at": "2026-02-28T12:00:00+00:00",
        "run_date": "2026-02-28",
        "local_cloaking": 2.5,
        "hidden_rate": 56.25,
        "hidden_rate_ties_hide": 75.0,
        "hidden_rate_ties_expose": 25.0,
        "originals": 4,
        "avatars": 6,
        "ncp": 2,
        "components": ["Dim. 1", "Dim. 2"],
        "originals_with_ties": 3,
        "groups": [],
        "verdict": "no gate",
        "gates": [],
        "warnings": [{"code": "many_ties", "message": "3 of 4 é"}],
        "inputs": [{"ref": "gold.o", "rows": 4}, {"ref": "gold.a", "rows": 6}],
        "link": {"kind": "key", "columns": ["id"]},
        "interval": {"level": 0.875, "low": 0.0, "high": 6.0},
        "explained_variance": None,
        "strategy": "broadcast",
        "versions": {"cloaking": "0"},
        "seconds": {"total": 1.5},
    }
    assert {key: found[key] for key in expected} == expected


def test_quantiles_and_classes_are_named_as_documented():
    found = written(RUN)["cloaking"]
    assert (found["mean"], found["min"], found["max"]) == (2.5, 0, 6)
    assert list(found["quantiles"]) == ["0.05", "0.25", "0.5", "0.75", "0.95"]
    ends = [(0, 0), (1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None)]
    assert [(part["from"], part["to"]) for part in found["classes"]] == ends
    assert found["at_least"] == [{"k": 1, "originals": 3}, {"k": 6, "originals": 1}]


@pytest.mark.parametrize(
    ("thresholds", "verdict"),
    [([], "no gate"), ([2.5], "pass"), ([2.6], "fail"), ([0, 2.6], "fail"), ([0, 2.5], "pass")],
)
def test_the_verdict_is_that_of_all_gates_each_met_from_its_threshold_on(thresholds, verdict):
    gates = tuple(Gate("local_cloaking", threshold, 2.5) for threshold in thresholds)
    found = written(replace(RUN, gates=gates))
    assert found["verdict"] == verdict
    assert [
        (gate["metric"], gate["operator"], gate["threshold"], gate["value"], gate["met"]) for gate in found["gates"]
    ] == [("local_cloaking", ">=", threshold, 2.5, threshold <= 2.5) for threshold in thresholds]


def test_groups_carry_their_label_and_figures():
    groups = {"north <b>": replace(FIGURES, interval=None, warnings=())}
    [group] = written(replace(RUN, summary=replace(FIGURES, groups=groups)))["groups"]
    assert (group["group"], group["originals"], group["local_cloaking"]) == ("north <b>", 4, 2.5)
    assert group["cloaking"]["max"] == 6


def test_a_report_holds_no_number_that_json_does_not_know():
    with pytest.raises(ValueError, match="JSON"):
        report.to_json(replace(RUN, summary=replace(FIGURES, hidden_rate=float("nan"))))


def test_letters_of_any_language_are_written_as_they_are():
    assert "é" in report.to_json(RUN)
    assert report.to_json(RUN).endswith("}\n")
