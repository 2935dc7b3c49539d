"""Write a run as report.json and report.html; aggregates only, never a record.

report.html needs jinja2 and matplotlib, the extra `report`; they are loaded only when a page is requested.
"""

import json
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from cloaking.errors import SettingsError
from cloaking.results import PastRun, Run, Summary

SCHEMA_VERSION = 1


def to_json(run: Run) -> str:
    """Return the report of one run as JSON, schema version 1."""
    return json.dumps(as_dict(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_html(run: Run, history: Sequence[PastRun] = ()) -> str:
    """Return the report of one run as one self-contained HTML page.

    Args:
        run: the run that the page is about.
        history: its past runs, in any order; with at least one, the page draws the median over time.

    Raises:
        SettingsError: jinja2 or matplotlib is not installed.
    """
    return str(drawing().page(run, history))


def to_fragment(summary: Summary) -> str:
    """Return the figures and the histogram as a small piece of HTML, for a notebook.

    Raises:
        SettingsError: jinja2 or matplotlib is not installed.
    """
    return str(drawing().fragment(summary))


def drawing(name: str = "report") -> ModuleType:
    """Return the module that draws pages, which is imported only here; `name` is the page's name in the message.

    Raises:
        SettingsError: jinja2 or matplotlib is not installed.
    """
    try:
        from cloaking.report import page
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("jinja2", "markupsafe", "matplotlib"):
            raise
        raise SettingsError(
            f"{name}.html needs {error.name}, which is not installed: pip install 'cloaking[report]' "
            f"({name}.json works without)"
        ) from None
    return page


def as_dict(run: Run) -> dict[str, Any]:
    """Return the report's content as plain values, in the order of the JSON file."""
    summary = run.summary
    interval = summary.interval
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "name": run.name,
        "run_at": run.run_at,
        "run_date": run.run_date,
        **_figures(summary),
        "avatars": summary.avatars,
        "ncp": summary.ncp,
        "components": list(summary.components),
        "groups": [{"group": label, **_figures(group)} for label, group in summary.groups.items()],
        "verdict": run.verdict,
        "gates": [
            {"metric": g.metric, "operator": g.operator, "threshold": g.threshold, "value": g.value, "met": g.met}
            | ({} if g.group is None else {"group": g.group})
            for g in run.gates
        ],
        "warnings": [{"code": notice.code, "message": notice.message} for notice in summary.warnings],
        "inputs": [{"ref": ref, "rows": rows} for ref, rows in run.inputs],
        "link": {"kind": run.link_kind, "columns": list(run.link_columns)},
        "interval": interval and {"level": interval.level, "low": interval.low, "high": interval.high},
        "explained_variance": None if run.explained_variance is None else list(run.explained_variance),
        "parameters": dict(run.parameters),
        "versions": dict(run.versions),
        "strategy": run.strategy,
        "seconds": dict(run.seconds),
    }


def _figures(summary: Summary) -> dict[str, Any]:
    return {
        "local_cloaking": summary.local_cloaking,
        "hidden_rate": summary.hidden_rate,
        "hidden_rate_ties_hide": summary.hidden_rate_ties_hide,
        "hidden_rate_ties_expose": summary.hidden_rate_ties_expose,
        "originals": summary.originals,
        "originals_with_ties": summary.originals_with_ties,
        "cloaking": {
            "mean": summary.mean,
            "min": summary.min,
            "max": summary.max,
            "quantiles": {str(share): value for share, value in summary.quantiles.items()},
            "classes": [{"from": c.low, "to": c.high, "originals": c.originals} for c in summary.classes],
            "at_least": [{"k": k, "originals": originals} for k, originals in summary.at_least],
        },
    }
