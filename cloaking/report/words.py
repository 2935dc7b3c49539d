"""Write figures as text for the page: numbers, rates, dates, rules and sentences that stay right under ties."""

import datetime
import math
from collections.abc import Sequence

from cloaking.results import RATES, CloakingClass, Gate, Notice, Summary, quantile_share

NBSP = "\N{NO-BREAK SPACE}"

_METRICS = {
    "local_cloaking": "Local Cloaking",
    "hidden_rate": "Hidden rate",
    "hidden_rate_ties_hide": "Hidden rate where ties hide",
    "hidden_rate_ties_expose": "Hidden rate where ties expose",
}
_OPERATORS = {">=": "at least"}
_WARNINGS = {
    "link_suspect": "The link between originals and avatars looks wrong: do not rely on any of these figures.",
    "figure_fell": "A figure fell since the last run.",
    "avatars_out_of_range": "Originals and avatars do not seem to share one projected space.",
    "same_table": "Originals and avatars are the same table: nothing is measured here.",
    "unlinked_avatars": "Some avatars were made from no original of this table.",
    "many_ties": "Ties matter here: read the hidden rate with both of its bounds.",
    "low_distinct": "Few rows differ from each other, so that ties decide the figures.",
    "avatars_equal_originals": "Many avatars are equal to their originals.",
    "repeated_avatars": "Many avatars repeat others.",
    "not_comparable": "The last run cannot be compared with this one.",
    "not_observed": "Some warnings may be missing.",
    "far_from_origin": "The coordinates are not centred, so that distances are compared too coarsely.",
}
_MOST_SERIOUS = tuple(_WARNINGS)
_INTERVAL_LEVEL = 0.9  # an interval with less confidence than this is not worth showing


def number(value: float) -> str:
    """Return a figure with at most one decimal."""
    return f"{value:,.1f}".removesuffix(".0")


def exact(value: float) -> str:
    """Return a threshold in full, as it was written."""
    return f"{value:,.15g}"


def rate(value: float) -> str:
    """Return a percentage with one decimal; 0.0 and 100.0 are written only for exactly none and all."""
    if 0 < value < 0.05:
        return f"<{NBSP}0.1{NBSP}%"
    if 99.95 <= value < 100:
        return f">{NBSP}99.9{NBSP}%"
    return f"{value:.1f}{NBSP}%"


def share(part: int, whole: int) -> str:
    """Return a part of a whole as a percentage."""
    return rate(100 * part / whole)


def date(iso: str) -> str:
    """Return an ISO date as `1 December 2026`, and anything else unchanged."""
    try:
        day = datetime.date.fromisoformat(iso)
    except ValueError:
        return iso
    months = "January February March April May June July August September October November December"
    return f"{day.day} {months.split()[day.month - 1]} {day.year}"


def shorten(text: str, length: int) -> str:
    """Return a text of at most this many characters, without its middle if it is longer."""
    if len(text) <= length:
        return text
    head = (length - 1) * 2 // 3
    return f"{text[:head]}…{text[head - length + 1 :]}"


def metric(gate: Gate) -> str:
    """Return the page's name for a rule's metric, with the group that the rule is about."""
    share = quantile_share(gate.metric)
    called = _METRICS.get(gate.metric, gate.metric) if share is None else f"{exact(100 * share)}{NBSP}% quantile"
    return called if gate.group is None else f"{called}, group {gate.group}"


def rule(gate: Gate) -> str:
    """Return a rule as `at least 5`, with the threshold in full."""
    return f"{_OPERATORS.get(gate.operator, gate.operator)} {exact(gate.threshold)}{_unit(gate)}"


def measured(gate: Gate) -> str:
    """Return a rule's value with enough decimals that rounding crosses neither the threshold nor 0 or 100 %."""
    ends = (gate.threshold, math.nextafter(0, 1), 100) if _unit(gate) else (gate.threshold,)
    for digits in range(1, 17):
        text = f"{gate.value:.{digits}f}"
        if all((float(text) >= end) == (gate.value >= end) for end in ends):
            break
    decimals = text.partition(".")[2]
    kept = max(len(decimals.rstrip("0")), 1 if _unit(gate) else 0)
    return f"{gate.value:,.{kept}f}{_unit(gate)}"


def figure(metric: str, value: float, gates: Sequence[Gate] = (), group: str | None = None) -> str:
    """Return a rounded figure, or one as `measured` if a rule is on it, so that it never contradicts the verdict."""
    gate = next((gate for gate in gates if (gate.metric, gate.group) == (metric, group)), None)
    if gate is not None:
        return measured(gate)
    return rate(value) if metric in RATES else number(value)


def _unit(gate: Gate) -> str:
    return f"{NBSP}%" if gate.metric in RATES else ""


def class_label(one: CloakingClass) -> str:
    """Return a class as `3–4`."""
    if one.high is None:
        return f"{one.low}+"
    return str(one.low) if one.low == one.high else f"{one.low}–{one.high}"


def warning(notice: Notice) -> str:
    """Return the plain sentence that opens a warning."""
    return _WARNINGS.get(notice.code, f"{notice.code.replace('_', ' ').capitalize()}.")


def opened(message: str) -> str:
    """Return a message as a sentence of its own, with a capital."""
    return message[:1].upper() + message[1:]


def by_weight(notices: Sequence[Notice]) -> list[Notice]:
    """Return the warnings, those that make the figures meaningless first."""
    weight = {code: place for place, code in enumerate(_MOST_SERIOUS)}
    return sorted(notices, key=lambda notice: weight.get(notice.code, len(weight)))


def interval(summary: Summary) -> str:
    """Return the confidence interval of the median as text, or a remark that there is none."""
    one = summary.interval
    if one is None or not has_interval(summary):
        return "too few for an interval"
    level = f"{100 * one.level:.1f}".removesuffix(".0")
    return f"{level}{NBSP}% interval: {number(one.low)} to {number(one.high)}"


def has_interval(summary: Summary) -> bool:
    """Return whether there is a confidence interval worth showing."""
    return summary.interval is not None and summary.interval.level >= _INTERVAL_LEVEL


def ties(summary: Summary, gates: Sequence[Gate] = ()) -> tuple[str, ...]:
    """Return what ties do to the hidden rate: its two bounds if they look different from it or a rule is on one."""
    bounds = {"hidden_rate_ties_expose": "if ties expose", "hidden_rate_ties_hide": "if ties hide"}
    values = {bound: summary.value(bound) for bound in bounds}
    if len(set(values.values())) == 1:
        return ("ties do not change it",)
    alike = {rate(value) for value in (summary.hidden_rate, *values.values())}
    if len(alike) == 1 and not any(gate.metric in bounds and gate.group is None for gate in gates):
        return ("ties change it by less than 0.1",)
    return tuple(f"{figure(bound, values[bound], gates)} {said}" for bound, said in bounds.items())


def attacker(summary: Summary, gates: Sequence[Gate] = ()) -> str:
    """Return how often the attacker is right: 100 minus the hidden rate as it is written."""
    right = 100 - summary.hidden_rate
    if right < 0.05 or right > 99.95:
        return rate(right)
    written = figure("hidden_rate", summary.hidden_rate, gates).partition(NBSP)[0]
    return f"{100 - float(written):.{len(written.partition('.')[2])}f}{NBSP}%"


def median_sentence(summary: Summary) -> str:
    """Return a sentence on the median; at least half of the counts reach it, and counts are whole numbers."""
    others = math.ceil(summary.local_cloaking)
    if summary.originals == 1:
        subject, own = "For the only original", "it"
    else:
        subject, own = "For at least half of the originals", "them"
    if others == 0:
        return f"{subject}, no other avatar is as close as the one made from {own}."
    amount = f"{others:,} or more other avatars are"
    return f"{subject}, {amount} at least as close as the one made from {own}."


def attacker_sentence(summary: Summary, gates: Sequence[Gate] = ()) -> str:
    """Return a sentence on the hidden rate that is right under ties too."""
    picks = "to its nearest avatar, picking at random among equals, would be right"
    if summary.originals == 1:
        return f"An attacker who links it {picks} with a chance of {attacker(summary, gates)}."
    return f"An attacker who links each original {picks} for {attacker(summary, gates)} of them."
