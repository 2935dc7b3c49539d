"""Render report.html from a run and its past runs, and a notebook's figures from a summary; Jinja escapes all text."""

from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import jinja2
from markupsafe import Markup

from cloaking.report import charts, words
from cloaking.report.svg import printable
from cloaking.results import PastRun, Run, Summary

COMPONENTS_NAMED = 8
RULES_SHOWN = 6
_SHEET = 1020  # CSS pixels that fit on A4 between the margins, minus 2 % as a reserve for other fonts
_PRINT = (7.5, 12)  # CSS pixels, the smallest and the largest text size on paper
_VALUE = 160  # characters of a setting; longer ones are cut, since the command below shows them in full
_ROLES = ("originals", "avatars", "link table")
_SHOWN_ELSEWHERE = {
    "originals",
    "avatars",
    "link",
    "components",
    "name",
    "output",
    "run_date",
    "config",
    "gates",
    "jdbc",
}


def page(run: Run, history: Sequence[PastRun] = ()) -> str:
    """Return report.html of one run; `history` holds its past runs, in any order."""
    summary = run.summary
    threshold = next(
        (gate.threshold for gate in run.gates if gate.metric == "local_cloaking" and gate.group is None), None
    )
    drawn = [charts.histogram(summary, threshold), charts.hidden_curve(summary, threshold)]
    runs = _until(run, history)
    comparable = [past for past in runs if past.ncp in (None, summary.ncp)]
    if len(comparable) > 1:
        drawn.append(charts.history(comparable, threshold, len(runs) - len(comparable)))
    if len(summary.groups) > 1:
        column = str(run.parameters.get("group_by") or "group")
        drawn.append(charts.groups(summary, column, threshold, run.gates))
    rules = sorted(run.gates, key=lambda gate: gate.met)
    settings = _settings(run.parameters)
    notices = words.by_weight(summary.warnings)
    return render(
        "page.html.j2",
        print_size=_print_size(run, drawn, settings, " ".join(run.command) + " ".join(run.command_file)),
        run=run,
        summary=summary,
        charts=[(chart, Markup(chart.svg)) for chart in drawn],
        warnings=notices,
        suspect=_suspect(summary),
        rules=rules[:RULES_SHOWN],
        rules_left=rules[RULES_SHOWN:],
        inputs=[(role, ref, rows) for role, (ref, rows) in zip(_roles(len(run.inputs)), run.inputs, strict=True)],
        settings=settings,
        lone_group=next(iter(summary.groups)) if len(summary.groups) == 1 else None,
        components_named=COMPONENTS_NAMED,
    )


def fragment(summary: Summary) -> str:
    """Return the figures, the histogram and the groups as a piece of HTML for a notebook."""
    chart = charts.histogram(summary)
    return render(
        "fragment.html.j2",
        summary=summary,
        chart=chart,
        svg=Markup(chart.svg),
        warnings=words.by_weight(summary.warnings),
        suspect=_suspect(summary),
        groups=charts.lowest_first(summary)[: charts.GROUPS_DRAWN],
    )


def render(template: str, package: str = __package__, **values: Any) -> str:
    """Return a package's template rendered with these values, escaped; it may include templates of this package."""
    folders = [resources.files(name) for name in dict.fromkeys((package, __package__))]
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FunctionLoader(lambda name: _text(folders, name)),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = lambda n: f"{n:,}"
    return environment.get_template(template).render(words=words, **values)


def _text(folders: Sequence[Traversable], name: str) -> str:
    file = next(file for file in (folder.joinpath(name) for folder in folders) if file.is_file())
    return file.read_text(encoding="utf-8")


def _suspect(summary: Summary) -> bool:
    return any(notice.code == "link_suspect" for notice in summary.warnings)


def _until(run: Run, history: Sequence[PastRun]) -> list[PastRun]:
    """Return the runs of earlier dates and this one, sorted by date; this one replaces a run of the same date."""
    summary = run.summary
    this = PastRun(run.run_date, summary.local_cloaking, summary.quantiles[0.05], summary.quantiles[0.95], run.verdict)
    return [*sorted((past for past in history if past.run_date < run.run_date), key=lambda past: past.run_date), this]


def _print_size(run: Run, drawn: Sequence[charts.Chart], settings: Sequence[tuple[str, str]], command: str) -> float:
    """Return the size of the text, in CSS pixels, at which the page just fills one sheet of A4.

    Charts are as wide as their column at any text size; all else grows with it. Heights were measured in a browser.
    """
    names = [ref for ref, _ in run.inputs]
    names += [", ".join(run.summary.components[:COMPONENTS_NAMED]), ", ".join(run.link_columns), run.strategy]
    facts = [*names, " · ".join(f"{key} {value}" for key, value in settings), str(dict(run.versions)), command]
    height = 51 + 1.15 * sum(_lines(text, 108) for text in facts) + 1.9 * _lines(run.name, 45)
    height += 1.2 * min(len(run.gates), RULES_SHOWN + 1)
    height += sum(1.1 + 1.15 * _lines(words.warning(one) + one.message, 112) for one in run.summary.warnings)
    rows = max(chart.height for chart in drawn[:2]) + (max(chart.height for chart in drawn[2:]) if drawn[3:] else 0)
    if len(drawn) == 3:  # the third is beside the text on the metric, which is taller
        height += 8
    return round(min(max((_SHEET - 0.8 * rows) / height, _PRINT[0]), _PRINT[1]), 2)


def _lines(text: str, length: int) -> int:
    return sum(-(-max(len(line), 1) // length) for line in text.split("\n"))


def _roles(inputs: int) -> list[str]:
    return [*_ROLES, *["input"] * inputs][:inputs]


def _settings(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings that the page does not show elsewhere, each value short enough for a line or two."""
    return [
        (key, words.shorten(", ".join(map(str, value)) if _is_list(value) else _plain(value), _VALUE))
        for key, value in parameters.items()
        if key not in _SHOWN_ELSEWHERE and value is not None and value is not False and value not in ((), [])
    ]


def _plain(value: Any) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
