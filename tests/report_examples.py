"""Build example runs to draw pages of, with figures computed in plain Python by the definitions of the metric."""

import csv
import math
from dataclasses import replace
from pathlib import Path

from cloaking.command.repeat import repeat_with
from cloaking.results import CLASSES, QUANTILES, CloakingClass, Gate, Interval, Notice, PastRun, Run, Summary

DATA = Path(__file__).resolve().parent / "data"
KS = [1, 2, 3, 4, 5, 7, *(part * 10**power for power in range(1, 7) for part in (1, 1.5, 2, 3, 5, 7))]
AMONG = ("Dim. 1", "Dim. 2", "Dim. 3", "Dim. 4", "Dim. 5")
LINK_SUSPECT = Notice("link_suspect", "480 of 1,000 originals are no nearer to their own avatar than to most others")
MANY_TIES = Notice("many_ties", "612 of 1,000 originals have avatars exactly as near as their own; see both bounds")


def summary_of(closer, tied, avatars=None, components=AMONG, **more):
    """Return the summary of closer and tied counts, one of each per original."""
    counts = sorted(a + b for a, b in zip(closer, tied, strict=True))
    n = len(counts)
    caught = sum(1 / (1 + ties) for near, ties in zip(closer, tied, strict=True) if near == 0)
    quantiles = {share: quantile(counts, share) for share in QUANTILES}
    figures = {
        "local_cloaking": quantiles[0.5],
        "hidden_rate": 100 * (1 - caught / n),
        "hidden_rate_ties_hide": 100 * sum(c >= 1 for c in counts) / n,
        "hidden_rate_ties_expose": 100 * sum(near >= 1 for near in closer) / n,
        "originals": n,
        "avatars": avatars or n,
        "components": components,
        "mean": sum(counts) / n,
        "min": counts[0],
        "max": counts[-1],
        "quantiles": quantiles,
        "classes": tuple(
            CloakingClass(low, high, sum(low <= c <= (math.inf if high is None else high) for c in counts))
            for low, high in CLASSES
        ),
        "originals_with_ties": sum(ties > 0 for ties in tied),
        "at_least": tuple((int(k), sum(c >= k for c in counts)) for k in KS if k <= max(counts[-1], 1)),
        "interval": Interval(0.9517, quantile(counts, 0.47), quantile(counts, 0.53)) if n > 5 else None,
    }
    return Summary(**(figures | more))


def quantile(ordered, share):
    """Return a quantile by linear interpolation."""
    place = share * (len(ordered) - 1)
    low, part = int(place), place - int(place)
    return ordered[low] + (part * (ordered[low + 1] - ordered[low]) if part else 0.0)


def spread(median, n=1000, width=1.1, exposed=0.01):
    """Return n closer counts, log-normal around a median, some of them 0."""
    ranks = [(place + 0.5) / n for place in range(n)]
    counts = [math.floor(median * math.exp(width * math.log(rank / (1 - rank)) / 1.7) + 0.5) for rank in ranks]
    return [0 if rank < exposed else count for rank, count in zip(ranks, counts, strict=True)]


def untied(closer, **more):
    """Return the summary of closer counts without ties."""
    return summary_of(closer, [0] * len(closer), **more)


def run_of(summary, name="patients", gates=(), **more):
    """Return a run with this summary."""
    facts = {
        "run_id": "6f1c2a9e4b7d4c0d9a53e0f1b2c3d4e5",
        "name": name,
        "run_at": "2026-12-01T02:00:11+00:00",
        "run_date": "2026-12-01",
        "summary": summary,
        "gates": tuple(Gate(metric, threshold, getattr(summary, metric)) for metric, threshold in gates),
        "inputs": (("crm.silver.patients", summary.originals), ("crm.gold.patients_avatars", summary.avatars)),
        "link_kind": "key",
        "link_columns": ("patient_id",),
        "parameters": {
            "originals": "crm.silver.patients",
            "avatars": "crm.gold.patients_avatars",
            "where": "consent = 'given'",
            "id": ("patient_id",),
            "by_position": False,
            "ncp": summary.ncp,
            "output": "/reports/patients",
            "name": name,
            "tie_tolerance": 1e-12,
            "tasks": 8,
        }
        | {f"min_{metric}": threshold for metric, threshold in gates},
        "versions": {"cloaking": "0.1.0", "python": "3.11.7", "spark": "4.1.0", "numpy": "2.4.6", "pyarrow": "26.0.1"},
        "strategy": "broadcast",
        "seconds": {"session": 5.1, "checks": 2.0, "count": 9.25, "write": 0.4, "total": 16.75},
    }
    parameters = facts["parameters"] | more.pop("parameters", {})
    command, command_file = repeat_with(parameters, more.get("run_date", facts["run_date"]))
    known = {"parameters": parameters, "command": command, "command_file": command_file}
    return Run(**(facts | known | more))


def twelve_runs():
    """Return a year of runs, one of which failed; the last is one month before the example run."""
    medians = (14, 13, 15, 14, 12, 11, 9, 4, 12, 13, 13, 14)
    dates = [f"2025-{month:02}-01" for month in (12,)] + [f"2026-{month:02}-01" for month in range(1, 12)]
    return [
        PastRun(date, median, max(median / 6, 1), median * 6.2, "fail" if median < 5 else "pass")
        for date, median in zip(dates, medians, strict=True)
    ]


def grouped(labels, median=11):
    """Return a summary with one group per label, each with another median."""
    groups = {label: untied(spread(3 + place * 2.7, n=200)) for place, label in enumerate(labels)}
    return untied(spread(median), groups=groups)


def passing():
    """Return a run with groups that meets its rules."""
    summary = grouped(["west", "south", "east", "north", "(other)"], median=14)
    return run_of(summary, gates=[("local_cloaking", 5), ("hidden_rate", 90)], parameters={"group_by": "region"})


def failing():
    """Return a run that misses one of its two rules."""
    return run_of(untied(spread(4, exposed=0.06)), gates=[("local_cloaking", 6), ("hidden_rate", 90)])


def doubtful():
    """Return a run without a gate, with ties, and with avatars linked to the wrong originals."""
    closer = [place % 700 if place % 3 else 0 for place in range(1000)]
    tied = [3 if place % 5 else 0 for place in range(1000)]
    return run_of(summary_of(closer, tied, warnings=(MANY_TIES, LINK_SUSPECT)))


HOSTILE = "</title><script>alert(1)</script>\"'&<b>"


def hostile():
    """Return a run whose names are long and try to break the page."""
    labels = [
        HOSTILE,
        "$\\frac{1}{0}$",
        "{{ 7 * 7 }}",
        "日本語のグループ名がとても長い場合の表示",
        "\u202eevil",
        "--><!--",
        "a" * 90,
        "",
    ]
    summary = grouped(labels)
    summary = replace(
        summary, components=(HOSTILE, *AMONG), warnings=(Notice("x_<i>", f"originals '{HOSTILE}': 3 rows"),)
    )
    gates = (Gate(f"quantile {HOSTILE}", 3, 2.0), Gate("local_cloaking", 5, summary.local_cloaking))
    parameters = {
        "originals": f"csv:/data/{HOSTILE}/" + "x" * 120,
        "where": "note = 'it''s'\n  and x > 1",
        "components": (HOSTILE, "a,b"),
        "group_by": HOSTILE,
        "name": "-" + HOSTILE,
        "id": (HOSTILE,),
    }
    inputs = ((parameters["originals"], 3), (HOSTILE, 4))
    versions = {"cloaking": HOSTILE}
    return replace(
        run_of(
            summary, name=HOSTILE + "y" * 60, inputs=inputs, versions=versions, parameters=parameters, strategy=HOSTILE
        ),
        gates=gates,
        link_columns=(HOSTILE,),
    )


def one_original():
    """Return a run over a single original."""
    return run_of(untied([0], avatars=1, components=("x",)))


def thirty_groups():
    """Return a run with more groups than the page draws."""
    return run_of(grouped([f"region {n:02}" for n in range(30)]), parameters={"group_by": "region"})


def wine():
    """Return the sample's summary, from the file of counts next to its tables."""
    with (DATA / "wine_counts.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return summary_of([int(row["closer"]) for row in rows], [int(row["tied"]) for row in rows])
