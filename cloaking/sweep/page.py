"""Write a k sweep as k_sweep.json, and as k_sweep.html with the curves over k; aggregates only, never a record.

The page needs jinja2 and matplotlib, the extra `report`; they are loaded only when the page is requested.
"""

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cloaking.report import drawing, words
from cloaking.results import Gate
from cloaking.sweep.results import AtK, SweepRun

if TYPE_CHECKING:
    from cloaking.report.charts import Chart

SCHEMA_VERSION = 1
METRICS = {"local_cloaking": "Local Cloaking", "hidden_rate": "hidden rate"}
ROWS_SHOWN = 12
COMPONENTS_NAMED = 8
_MARKED = 20  # with more k than these, the line has no markers
_SHEET = 1020  # CSS pixels that fit on A4 between the margins, minus 2 % as a reserve for other fonts
_CHARTS = 148  # CSS pixels of these that the two charts, side by side, take
_PRINT = (7.5, 12)  # CSS pixels, the smallest and the largest text size on paper
_RATE_AXES = {90: 5, 75: 5, 60: 4, 50: 5, 0: 4}  # percent where the axis may start: number of steps from there to 100


def to_json(run: SweepRun) -> str:
    """Return the sweep as JSON, schema version 1."""
    return json.dumps(as_dict(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def as_dict(run: SweepRun) -> dict[str, Any]:
    """Return the sweep's content as plain values, in the order of the JSON file."""
    sweep = run.sweep
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run.run_id,
        "name": run.name,
        "run_at": run.run_at,
        "verdict": sweep.verdict,
        "answer": sweep.answer,
        "targets": [
            {"metric": metric, "operator": ">=", "threshold": threshold, "answer": sweep.smallest({metric: threshold})}
            for metric, threshold in sweep.thresholds.items()
        ],
        "originals": run.originals,
        "ncp": run.ncp,
        "components": list(run.components),
        "k": [at.k for at in sweep.results],
        "repeats": run.repeats,
        "seed": run.seed,
        "results": [_result(at) for at in sweep.results],
        "method": run.method,
        "inputs": [{"ref": ref, "rows": rows} for ref, rows in run.inputs],
        "parameters": dict(run.parameters),
        "versions": dict(run.versions),
        "seconds": dict(run.seconds),
    }


def to_html(run: SweepRun) -> str:
    """Return the sweep as one self-contained HTML page.

    Raises:
        SettingsError: jinja2 or matplotlib is not installed.
    """
    page = drawing("k_sweep")
    drawn = [_curve(run, metric) for metric in METRICS]
    results, command = _shown(run), _command(run.parameters)
    return str(
        page.render(
            "page.html.j2",
            "cloaking.sweep",
            print_size=_print_size(run, len(results), " ".join(command)),
            run=run,
            sweep=run.sweep,
            date=run.run_at.partition("T")[0],
            charts=[(chart, page.Markup(chart.svg)) for chart in drawn],
            named=next((at for at in run.sweep.results if at.k == run.sweep.answer), run.sweep.results[-1]),
            results=results,
            targets=[_rule(metric, threshold) for metric, threshold in run.sweep.thresholds.items()],
            sentence=sentence(run),
            middle=partial(_middle, run),
            band=partial(_band, run),
            components_named=COMPONENTS_NAMED,
            command=command,
        )
    )


def sentence(run: SweepRun) -> str:
    """Return the answer in words that claim nothing about k that were not tried."""
    sweep, ks = run.sweep, [at.k for at in run.sweep.results]
    tried = f"k = {ks[0]:,}" if len(ks) == 1 else f"{len(ks)} values of k from {ks[0]:,} to {ks[-1]:,}"
    if not sweep.thresholds:
        return f"No target was given, so that the figures of {tried} are reported and not judged."
    rules = [_rule(metric, threshold) for metric, threshold in sweep.thresholds.items()]
    wanted = " and ".join(f"a {rule}" for rule in rules)
    every = "in the only repeat" if run.repeats == 1 else f"in every one of {run.repeats} repeats"
    if sweep.answer is None:
        best = max(at.reaches(sweep.thresholds) for at in sweep.results)
        nearest = f" At best, {best:,} of {run.repeats:,} do." if best else ""
        return f"None of the k tried ({tried}) reaches {wanted} {every}.{nearest} Try larger ones."
    said = f"k = {sweep.answer:,} is the smallest k tried that reaches {wanted} {every}."
    place = ks.index(sweep.answer)
    if place:
        before = sweep.results[place - 1]
        reach = f"{before.reaches(sweep.thresholds):,} of {run.repeats:,}"
        said += f" At k = {before.k:,}, the next smaller that was tried, {reach} do."
    else:
        said += " It is the smallest that was tried: a smaller one may do as well."
    if sweep.relapses:
        said += f" Not so the larger {', '.join(f'{k:,}' for k in sweep.relapses)}: look at the curve."
    return said


def _result(at: AtK) -> dict[str, Any]:
    spreads = {metric: dict(zip(("median", "min", "max"), at.spread(metric), strict=True)) for metric in METRICS}
    repeats = zip(at.seeds, at.local_cloaking, at.hidden_rate, strict=True)
    values = [
        {"repeat": seed[-1], "seed": list(seed), "local_cloaking": median, "hidden_rate": rate}
        for seed, median, rate in repeats
    ]
    return {"k": at.k, **spreads, "values": values}


def _curve(run: SweepRun, metric: str) -> "Chart":
    """Draw a metric over k: the band from the lowest to the highest repeat, the line through their medians."""
    import matplotlib

    from cloaking.report import canvas
    from cloaking.report.charts import Chart
    from cloaking.report.svg import BAR, LOW, RC, inline

    ks = [at.k for at in run.sweep.results]
    medians, lows, highs = zip(*(at.spread(metric) for at in run.sweep.results), strict=True)
    target = run.sweep.thresholds.get(metric)
    if metric == "hidden_rate":
        lowest = min([*lows, 100 if target is None else target])
        floor, steps = next((floor, steps) for floor, steps in _RATE_AXES.items() if floor <= lowest)
        ticks = [floor + step * (100 - floor) / steps for step in range(steps + 1)]
        labels = [f"{tick:g}{words.NBSP}%" for tick in ticks]
    else:
        ticks = canvas.ticks(max([*highs, target or 0, 1]))
        labels = [words.exact(tick) for tick in ticks]
    mark = "" if target is None else words.rule(Gate(metric, target, target)).replace("at least", "≥")
    half = canvas.width(f"{ks[-1]:,}") / 2
    left, right = 12 + max(map(canvas.width, labels)), max(half, 12 + canvas.width(mark))
    ends = (ks[0] / 2, ks[0] * 2) if len(ks) == 1 else (ks[0], ks[-1])
    with matplotlib.rc_context(RC):
        figure, axes = canvas.axes(left=left, right=right, top=8, bottom=40)
        axes.set(xscale="log", xlim=ends, ylim=(ticks[0], ticks[-1]))
        canvas.y_grid(axes, ticks, labels)
        axes.fill_between(ks, lows, highs, color=BAR, alpha=0.25, linewidth=0, clip_on=False)
        axes.plot(ks, medians, color=BAR, linewidth=canvas.LINE, clip_on=False)
        if len(ks) == 1:  # one k makes no band
            axes.vlines(ks, lows, highs, color=BAR, linewidth=1, clip_on=False)
        if len(ks) <= _MARKED:
            axes.plot(ks, medians, "o", color=BAR, markersize=5, markeredgewidth=0, clip_on=False)
        if target is not None:
            canvas.threshold_line(axes, LOW, y=target)
            canvas.text(axes, ends[1], target, mark, right=8, va="center")
        shown = _ticks(ks, canvas.WIDTH - left - right, canvas.width)
        axes.set_xticks(shown, [f"{k:,}" for k in shown])
        axes.minorticks_off()
        canvas.x_title(axes, "k (log scale)")
    title = f"{METRICS[metric][0].upper()}{METRICS[metric][1:]} over k"
    note = f"line: median, band: range of {run.repeats:,} repeats" if run.repeats > 1 else "one repeat, so no range"
    values = [f"{at.k:,}: {_middle(run, at, metric)} ({_band(run, at, metric) or 'once'})" for at in run.sweep.results]
    svg = inline(figure, metric.replace("_", "-"), title, f"{title}, {note}. {'; '.join(values)}. {mark}".strip())
    return Chart(metric.replace("_", "-"), title, note + (f"; axis from {labels[0]}" if ticks[0] else ""), svg)


def _ticks(ks: Sequence[int], points: float, width: Callable[[str], float]) -> list[int]:
    """Return the k whose labels fit side by side under a log axis of this many points, always including the largest."""
    scale = points / max(math.log(ks[-1] / ks[0]), 1e-9)
    shown = [ks[-1]]
    for k in reversed(ks[:-1]):
        if math.log(shown[-1] / k) * scale >= (width(f"{k:,}") + width(f"{shown[-1]:,}")) / 2 + 6:
            shown.append(k)
    return shown


def _shown(run: SweepRun) -> list[AtK]:
    """Return the results that the table shows: all, or some from the first to the last, including the answer's."""
    results = run.sweep.results
    step = (len(results) - 1) / max(min(len(results), ROWS_SHOWN) - 1, 1)
    places = {round(step * row) for row in range(min(len(results), ROWS_SHOWN))}
    return [at for place, at in enumerate(results) if place in places or at.k == run.sweep.answer]


def _rule(metric: str, threshold: float) -> str:
    return f"{METRICS[metric]} of {words.rule(Gate(metric, threshold, threshold))}"


def _middle(run: SweepRun, at: AtK, metric: str) -> str:
    return _figure(run, metric, at.spread(metric)[0])


def _band(run: SweepRun, at: AtK, metric: str) -> str:
    """Return the range of the repeats, or nothing if there is only one."""
    _, low, high = at.spread(metric)
    return f"{_figure(run, metric, low)} to {_figure(run, metric, high)}" if run.repeats > 1 else ""


def _figure(run: SweepRun, metric: str, value: float) -> str:
    """Return a value with enough decimals that rounding does not move it across its target."""
    threshold = run.sweep.thresholds.get(metric)
    if threshold is not None:
        return words.measured(Gate(metric, threshold, value))
    return words.rate(value) if metric == "hidden_rate" else words.number(value)


def _command(parameters: Mapping[str, Any]) -> list[str]:
    """Return the words of the command that repeats the sweep, quoted."""
    arguments = ["spark-submit", "jobs/k_sweep.py"]
    for key, value in parameters.items():
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        option = f"--{key.replace('_', '-')}"
        arguments += [f"{option}={text}"] if text.startswith("-") else [option, text]
    return [shlex.quote(argument) for argument in arguments]


def _print_size(run: SweepRun, rows: int, command: str) -> float:
    """Return the size of the text, in CSS pixels, at which the page just fills one sheet of A4.

    Charts are as wide as their column at any text size; all else grows with it. Heights were measured in a browser.
    """
    components = ", ".join(run.components[:COMPONENTS_NAMED])
    facts = [run.inputs[0][0] + str(run.parameters.get("where", "")), components, run.method, command]
    lines, name_lines = sum(-(-len(text) // 108) for text in facts), -(-len(run.name) // 45)
    height = 34 + 2.9 * max(rows, 9.5) + 1.15 * lines + 1.9 * name_lines  # up to 9 rows, the text beside is taller
    height += 4 if run.parameters.get("where") else 0  # the warning
    return round(min(max((_SHEET - _CHARTS) / height, _PRINT[0]), _PRINT[1]), 2)
