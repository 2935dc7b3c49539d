"""Draw the page's charts from a summary and past runs, each as a separate SVG, with matplotlib."""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import matplotlib

from cloaking.report import canvas, words
from cloaking.report.canvas import HEIGHT, LINE, WIDTH
from cloaking.report.svg import BAR, LOW, RC, inline
from cloaking.results import OTHER_GROUPS, SMALLEST_GROUP, Gate, PastRun, Summary

GROUPS_DRAWN = 12
RUNS_DRAWN = 120
_PARTLY = 0.5  # opacity of a class that the threshold divides
_MARKED_RUNS = 40  # with more runs than these, only failed ones are marked
_RUNS_DESCRIBED = 24  # how many of the last runs a screen reader reads
_LOG_FROM = 30  # a history that rises above this many times its median is drawn on a log axis
_GROUP_NAME = 150  # points
_CONTEXT = 8  # characters that names share, kept before the part in which they differ
_ROW = (16, 34)  # points, the least and the greatest height of a group
_LEAST_K_AXIS = 10  # the curve's axis reaches at least to this k


@dataclass(frozen=True)
class Chart:
    """One chart: its heading, the note below, the SVG element and the legend (class of the colour, text)."""

    name: str
    title: str
    note: str
    svg: str
    height: float = HEIGHT  # points, beside a width of WIDTH
    legend: tuple[tuple[str, str], ...] = ()


def histogram(summary: Summary, threshold: float | None = None) -> Chart:
    """Draw the share of originals per class of cloaking; classes below the threshold have another colour."""
    classes = summary.classes
    labels = [words.class_label(one) for one in classes]
    shares = [words.share(one.originals, summary.originals) if one.originals else "0" for one in classes]
    top = max(one.originals for one in classes)
    sides = [_side(one.low, one.high, threshold) for one in classes]
    with matplotlib.rc_context(RC):
        figure, axes = canvas.axes(left=4, right=4, top=18, bottom=40)
        for place, (one, side, text) in enumerate(zip(classes, sides, shares, strict=True)):
            colour, opacity = {"above": (BAR, 1.0), "below": (LOW, 1.0), "partly": (LOW, _PARTLY)}[side]
            if one.originals:
                axes.bar(place, one.originals, 0.86, color=colour, alpha=opacity, linewidth=0, clip_on=False)
            canvas.text(axes, place, one.originals, text.replace(f"<{words.NBSP}", "<"), up=4, ha="center")
        axes.set(xlim=(-0.5, len(classes) - 0.5), ylim=(0, top))
        canvas.base_line(axes)
        axes.set_xticks(range(len(classes)), labels)
        canvas.x_title(axes, "other avatars at least as close as the own one")
    values = "; ".join(f"{label}: {text}" for label, text in zip(labels, shares, strict=True))
    title = "How well each original is hidden"
    bound = words.exact(threshold or 0)
    legend = {"below": f"below {bound}", "partly": f"partly below {bound}", "above": f"{bound} or more"}
    return Chart(
        "histogram",
        title,
        "share of originals",
        inline(figure, "histogram", title, f"Share of the originals by how many other avatars hide each. {values}."),
        legend=tuple((side, text) for side, text in legend.items() if side in sides) if threshold else (),
    )


def hidden_curve(summary: Summary, threshold: float | None = None) -> Chart:
    """Draw the share of originals hidden by at least k other avatars, over k on a log axis."""
    known = _survivors(summary)
    needed = max(math.ceil(threshold), 1) if threshold else None
    nobody = dict.fromkeys([summary.max + 1, *range(summary.max + 2, _LEAST_K_AXIS + 1)], 0)
    points = {k: 100 * n / summary.originals for k, n in sorted((known | nobody).items()) if k >= 1}
    last = max([*points, needed or 1])
    with matplotlib.rc_context(RC):
        right = max(14, canvas.width(f"{last:,}") / 2)
        ticks = canvas.apart(canvas.log_ticks(last), WIDTH - 44 - right, last)
        figure, axes = canvas.axes(left=44, right=right, top=20, bottom=40)
        axes.set(xscale="log", xlim=(1, last), ylim=(0, 100))
        canvas.y_grid(axes, [0, 25, 50, 75, 100], [f"{y}{words.NBSP}%" for y in (0, 25, 50, 75, 100)])
        axes.plot([*points], [*points.values()], color=BAR, linewidth=LINE, clip_on=False)
        axes.plot([*points], [*points.values()], "o", color=BAR, markersize=4, markeredgewidth=0, clip_on=False)
        axes.set_xticks(ticks, [words.exact(tick) for tick in ticks])
        axes.minorticks_off()
        canvas.x_title(axes, "k (log scale)")
        marked = ""
        if needed is not None:
            marked = _at_least(known, needed, summary, threshold or 0)
            canvas.threshold_line(axes, LOW, x=needed)
            left = math.log(needed) < math.log(last) / 2
            canvas.text(axes, needed, 100, marked, up=5, ha="left" if left else "right")
    read = [k for k in (1, 2, 5, 10, 20, 50, 100, 1_000, 10_000) if k in points]
    values = "; ".join(f"at least {k:,}: {words.rate(points[k])}" for k in read)
    title = "How many are hidden by at least k avatars"
    description = f"Share of the originals that at least k other avatars hide. {values}. {marked}".strip()
    return Chart(
        "curve",
        title,
        "each dot is the exact share of originals; read up from k",
        inline(figure, "curve", title, description),
    )


def history(runs: Sequence[PastRun], threshold: float | None = None, of_other_ncp: int = 0) -> Chart:
    """Draw the median of each run with its band from the 5th to the 95th percentile, in order of their dates.

    The note mentions the `of_other_ncp` runs that were left out because they cannot be compared with these.
    """
    shown = runs[-RUNS_DRAWN:]
    days, dates = _days([run.run_date for run in shown])
    medians = [run.local_cloaking for run in shown]
    top = max([run.p95 for run in shown] + medians + [threshold or 0, 1])
    log = top > _LOG_FROM * max(sorted(medians)[len(medians) // 2], 1)
    with matplotlib.rc_context(RC):
        ticks = [0, *canvas.log_ticks(top)] if log else canvas.ticks(top)
        labels = [words.exact(tick) for tick in ticks]
        half = canvas.width(max(dates, key=len)) / 2
        left = max(half, 10 + canvas.width(labels[-1]))
        mark = f"threshold {words.exact(threshold)}" if threshold else ""
        right = max(half, 12 + canvas.width(mark))
        figure, axes = canvas.axes(left=left, right=right, top=8, bottom=28)
        if log:
            axes.set_yscale("symlog", linthresh=1)
        axes.set(xlim=(days[0], max(days[-1], days[0] + 1)), ylim=(0, max(top, ticks[-1])))
        canvas.y_grid(axes, ticks, labels)
        low, high = [run.p05 for run in shown], [run.p95 for run in shown]
        axes.fill_between(days, low, high, color=BAR, alpha=0.2, linewidth=0, clip_on=False)
        axes.plot(days, medians, color=BAR, linewidth=LINE, clip_on=False)
        if threshold:
            canvas.threshold_line(axes, LOW, y=threshold)
            canvas.text(axes, days[-1], threshold, mark, right=8, va="center")
        for day, run in zip(days, shown, strict=True):
            failed = run.verdict == "fail"
            if failed or len(shown) <= _MARKED_RUNS:
                shape, colour, size = ("D", LOW, 6) if failed else ("o", BAR, 5)
                axes.plot(day, run.local_cloaking, shape, color=colour, markersize=size, clip_on=False)
        axes.set_xticks(*_dates(days, dates, WIDTH - left - right))
    title = "Run by run"
    values = "; ".join(
        f"{run.run_date}: {words.number(run.local_cloaking)}{', gate not met' if run.verdict == 'fail' else ''}"
        for run in shown[-_RUNS_DESCRIBED:]
    )
    left_out = f"; the last {len(shown):,} of {len(runs):,} runs" if len(runs) > len(shown) else ""
    left_out += f"; {of_other_ncp:,} of another ncp left out" if of_other_ncp else ""
    note = f"median and band from 5th to 95th percentile{' (log scale)' if log else ''}{left_out}"
    legend = (("failed", "gate not met"),) if any(run.verdict == "fail" for run in shown) else ()
    return Chart("history", title, note, inline(figure, "history", title, f"Local Cloaking. {values}."), legend=legend)


def groups(summary: Summary, column: str, threshold: float | None = None, gates: Sequence[Gate] = ()) -> Chart:
    """Draw the Local Cloaking of each group, the lowest first, for at most GROUPS_DRAWN groups.

    A group has another colour if a rule on it is not met or, without such a rule, if it is below the common threshold.
    """
    ranked = lowest_first(summary)
    shown = ranked[:GROUPS_DRAWN]
    top = max([group.local_cloaking for _, group in shown] + [threshold or 0, 1])
    names = {f"group-{place}": name for place, name in enumerate(_distinct_names([label for label, _ in shown]))}
    figures = [_group_figures(label, one, gates) for label, one in shown]
    rules = {label: [gate.met for gate in gates if gate.group == label] for label, _ in shown}
    missed = {label: not all(met) for label, met in rules.items() if met}
    below_threshold = {label: threshold is not None and one.local_cloaking < threshold for label, one in shown}
    low = below_threshold | missed
    left, right = (max(map(canvas.width, texts)) for texts in (names.values(), figures))
    below = 26 if threshold else 8
    with matplotlib.rc_context(RC):
        height = below + len(shown) * min(max((HEIGHT - below) / len(shown), _ROW[0]), _ROW[1])
        figure, axes = canvas.axes(left=14 + left, right=10 + right, top=4, bottom=below, height=height)
        axes.set(xlim=(0, top), ylim=(len(shown) - 0.5, -0.5))
        for place, (label, group) in enumerate(shown):
            width = group.local_cloaking
            axes.barh(place, width, 0.7, color=LOW if low[label] else BAR, linewidth=0, clip_on=False)
            canvas.text(axes, 0, place, f"group-{place}", right=-6, ha="right", va="center")
            canvas.text(axes, max(width, threshold or 0), place, figures[place], right=6, va="center")
        if threshold:
            canvas.threshold_line(axes, LOW, x=threshold)
            mark = f"threshold {words.exact(threshold)}"
            canvas.text(axes, threshold, axes.get_ylim()[0], mark, up=-6, ha="center", va="top")
        canvas.base_line(axes, vertical=True)
    values = "; ".join(f"{words.shorten(label, 60)}: {said}" for (label, _), said in zip(shown, figures, strict=True))
    title = "By group"
    every = len(shown) == len(ranked)
    note = f"Local Cloaking (hidden rate of so many originals) per {words.shorten(column, 40)}, the lowest first"
    if OTHER_GROUPS in summary.groups:
        note += f"; groups under {SMALLEST_GROUP} are merged"
    if not every:
        note += f"; the {len(shown)} lowest of {len(ranked):,} groups, all are in report.json"
    legend = (("below", "rule not met"),) if any(missed.values()) else ()
    svg = inline(figure, "groups", title, f"{note}. {values}.", names)
    return Chart("groups", title, note, svg, height, legend)


def lowest_first(summary: Summary) -> list[tuple[str, Summary]]:
    """Return the groups sorted by Local Cloaking, then hidden rate, then label."""
    return sorted(summary.groups.items(), key=lambda item: (item[1].local_cloaking, item[1].hidden_rate, item[0]))


def _group_figures(label: str, group: Summary, gates: Sequence[Gate]) -> str:
    """Return a group's Local Cloaking, its hidden rate and its size."""
    median, rate = (words.figure(name, group.value(name), gates, label) for name in ("local_cloaking", "hidden_rate"))
    return f"{median}  ({rate} of {group.originals:,})"


def _distinct_names(labels: Sequence[str]) -> list[str]:
    """Return labels that fit their space; those that look alike lose the parts they share, or else are numbered."""
    names = [canvas.fit(label, _GROUP_NAME) for label in labels]
    for name in {name for name in names if names.count(name) > 1}:
        places = [place for place, other in enumerate(names) if other == name]
        alike = [labels[place] for place in places]
        head = _shared(alike)
        tail = _shared([label[head:][::-1] for label in alike])
        word = alike[0].rfind(" ", 0, max(head - _CONTEXT + 1, 0)) + 1
        head = word if 0 < head - word <= 2 * _CONTEXT else head  # start at the beginning of a word, if one is near
        for place, label in zip(places, alike, strict=True):
            names[place] = canvas.fit(f"…{label[head : len(label) - tail]}…", _GROUP_NAME)
    if len(set(names)) < len(names):
        names = [canvas.fit(f"{number}. {label}", _GROUP_NAME) for number, label in enumerate(labels, start=1)]
    return names


def _shared(labels: Sequence[str]) -> int:
    """Return the length of the beginning that the labels share."""
    return sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, zip(*labels, strict=False)))


def _side(low: int, high: int | None, threshold: float | None) -> str:
    """Return whether a class is above, below or partly below the threshold."""
    if threshold is None or low >= threshold:
        return "above"
    return "below" if high is not None and high < threshold else "partly"


def _survivors(summary: Summary) -> dict[int, int]:
    """Return how many originals at least k avatars hide, for each k for which that is known exactly."""
    known, left = {}, summary.originals
    for one in summary.classes:
        if one.low <= summary.max:
            known[one.low] = left
        left -= one.originals
    return known | dict(summary.at_least)


def _at_least(known: Mapping[int, int], needed: int, summary: Summary, threshold: float) -> str:
    """Return in words how many reach the threshold, or only the threshold if that is not known exactly."""
    if needed in known or needed > summary.max:
        return f"{words.share(known.get(needed, 0), summary.originals)} have at least {needed:,}"
    return f"threshold {words.exact(threshold)}"


def _days(dates: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return each date's position on the x axis and its label: by the calendar, or numbered if one is not a date.

    The label is the month if no month has two runs.
    """
    try:
        days = [datetime.date.fromisoformat(date) for date in dates]
    except ValueError:
        return list(range(len(dates))), [str(place) for place in range(1, len(dates) + 1)]
    months = [day.isoformat()[:7] for day in days]
    labels = months if len(set(months)) == len(months) else [day.isoformat() for day in days]
    return [day.toordinal() for day in days], labels


def _dates(days: Sequence[int], dates: Sequence[str], width: float) -> tuple[list[int], list[str]]:
    """Return the dates that fit under an axis of this many points, always including the last one."""
    gap = 1.2 * canvas.width(dates[-1]) * max(days[-1] - days[0], 1) / width
    chosen: list[int] = []
    for place in reversed(range(len(days))):
        if not chosen or days[chosen[-1]] - days[place] >= gap:
            chosen.append(place)
    return [days[place] for place in chosen], [dates[place] for place in chosen]
