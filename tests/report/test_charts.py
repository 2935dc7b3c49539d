"""The charts: each value drawn where it belongs, colours of the page, names that stay text."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
import report_examples as examples
from report_examples import HOSTILE, grouped, spread, untied

from cloaking.results import Gate, PastRun

pytest.importorskip("matplotlib")
from cloaking.report import canvas, charts
from cloaking.report.svg import BAR, LOW

RUNS = examples.twelve_runs()


def nodes(chart, tag):
    return [node for node in ElementTree.fromstring(chart.svg).iter() if node.tag == tag]


def texts(chart):
    return [node.text for node in nodes(chart, "text")]


def filled(chart, colour):
    return [node.get("style") for node in nodes(chart, "path") if f"fill: var(--{colour}" in node.get("style", "")]


def markers(chart):
    return [node for node in nodes(chart, "use") if "opacity" not in node.get("style")]  # the band is opaque in part


def points(chart):
    """Return the x and y of the markers, in points."""
    return [(float(node.get("x")), float(node.get("y"))) for node in markers(chart)]


def every_chart():
    summary = examples.passing().summary
    return [
        charts.histogram(summary, 6),
        charts.hidden_curve(summary, 6),
        charts.history(RUNS, 6),
        charts.groups(summary, "region", 6),
    ]


@pytest.mark.parametrize("chart", every_chart(), ids=lambda chart: chart.name)
def test_a_chart_is_one_element_of_html_in_the_colours_of_the_page(chart):
    assert chart.svg.startswith("<svg ")
    assert "xmlns" not in chart.svg
    assert not re.search(r"<\?|<!|<style|metadata|font-family|clip-path|\b20\d\d-\d\d-\d\dT", chart.svg)
    assert set(re.findall(r"#[0-9a-f]{6}", chart.svg)) <= {BAR, LOW}
    assert re.search(r"#(?!2f6fb1|c2410c)[0-9a-f]{6}", chart.svg) is None
    assert "currentColor" in chart.svg
    assert texts(chart)


@pytest.mark.parametrize("chart", every_chart(), ids=lambda chart: chart.name)
def test_every_text_is_named_for_a_screen_reader(chart):
    svg = ElementTree.fromstring(chart.svg)
    title, desc = svg[0], svg[1]
    assert (title.tag, desc.tag) == ("title", "desc")
    assert (svg.get("aria-labelledby"), svg.get("aria-describedby")) == (title.get("id"), desc.get("id"))
    assert title.text == chart.title
    assert re.search(r"\d", desc.text)


def test_no_two_charts_share_an_id():
    ids = [node.get("id") for chart in every_chart() for node in ElementTree.fromstring(chart.svg).iter()]
    ids = [one for one in ids if one]
    assert len(ids) == len(set(ids))


def test_classes_below_the_threshold_are_coloured_and_a_divided_one_half():
    summary = untied([0, 1, 2, 3, 5, 10, 20, 50, 100])
    chart = charts.histogram(summary, 6)
    assert len(filled(chart, "low")) == 5
    assert [("opacity: 0.5" in style) for style in filled(chart, "low")] == [False] * 4 + [True]
    assert len(filled(chart, "bar")) == 4
    assert chart.legend == (("below", "below 6"), ("partly", "partly below 6"), ("above", "6 or more"))
    assert len(filled(charts.histogram(summary, 5), "low")) == 4
    assert not filled(charts.histogram(summary), "low")
    assert not charts.histogram(summary).legend


def test_the_histogram_writes_the_share_of_each_class():
    chart = charts.histogram(untied([0, 4, 4, 200]))
    shares = [text.replace("\N{NO-BREAK SPACE}", " ") for text in texts(chart)]
    assert [text for text in shares if text == "0" or "%" in text].count("25.0 %") == 2
    assert shares.count("50.0 %") == 1
    assert "3–4: 50.0" in nodes(chart, "desc")[0].text


def test_the_curve_stands_at_the_exact_shares():
    chart = charts.hidden_curve(untied([1, 2, 5, 10]))
    # k and share: 1 100 %, 2 75 %, 3 50 %, 4 50 %, 5 50 %, 7 25 %, 10 25 %, 11 0 %; the axes are 180 - 20 - 40 points
    heights = {round(140 - 1.2 * share, 3) for share in (100, 75, 50, 25, 0)}
    assert {round(y, 3) for _, y in points(chart)} == heights
    assert len(points(chart)) == 8
    assert points(chart)[0][0] == 44


def test_the_curve_is_drawn_from_the_classes_where_nothing_finer_is_known():
    summary = untied(spread(14))
    coarse = charts.hidden_curve(replace(summary, at_least=()), 6)
    assert len(points(coarse)) == 9  # 1, 2, 3, 5, 10, 20, 50, 100 and one more than the highest
    assert "threshold 6" in texts(coarse)


@pytest.mark.parametrize(
    ("threshold", "said"),
    [(5, "50.0 % have at least 5"), (4.5, "50.0 % have at least 5"), (11, "0.0 % have at least 11")],
)
def test_the_curve_says_how_many_reach_the_threshold(threshold, said):
    found = [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in texts(charts.hidden_curve(untied([1, 2, 5, 10]), threshold))
    ]
    assert said in found


def test_history_marks_runs_that_failed_and_follows_the_calendar():
    runs = [PastRun("2026-01-01", 10, 2, 30, "pass"), PastRun("2026-01-11", 4, 1, 20, "fail")]
    chart = charts.history([*runs, PastRun("2026-01-31", 10, 2, 30, "no gate")], 5)
    (first, second, third) = points(chart)
    assert (second[0] - first[0]) / (third[0] - first[0]) == pytest.approx(1 / 3, abs=1e-3)
    assert first[1] == third[1] < second[1]
    assert ["--low" in node.get("style") for node in markers(chart)] == [False, True, False]
    assert chart.legend == (("failed", "gate not met"),)
    assert "threshold 5" in texts(chart)
    assert "2026-01-31" in texts(chart)


def test_months_label_a_history_of_months():
    dates = [text for text in texts(charts.history(RUNS)) if text.startswith("20")]
    assert "2026-11" in dates
    assert len(dates) >= 4
    assert all(len(date) == len("2026-11") for date in dates)


def test_a_long_history_is_cut_and_one_with_a_broken_run_is_on_a_log_axis():
    runs = [PastRun(f"{2000 + n}-01-01", 11, 2, 40, "pass") for n in range(200)]
    assert "the last 120 of 200 runs" in charts.history(runs).note
    assert len(charts.history(runs).svg) < 20_000
    broken = [*runs[:5], PastRun("2006-01-01", 1069, 100, 2000, "pass")]
    assert "log scale" in charts.history(broken).note
    assert "log scale" not in charts.history(runs[:5]).note


def test_dates_that_are_none_are_numbered():
    runs = [PastRun("$x$", 3, 1, 9, "pass"), PastRun("\x00", 4, 1, 9, "pass")]
    assert {"1", "2"} <= set(texts(charts.history(runs)))


def test_groups_are_drawn_lowest_first_with_those_below_the_threshold_coloured():
    chart = charts.groups(grouped(["b", "a", "c"]), "region", 5)  # medians 3, 5.7 and 8.4, in this order
    assert [text for text in texts(chart) if text in "abc"] == ["b", "a", "c"]
    assert len(filled(chart, "low")) == 1
    assert len(filled(chart, "bar")) == 2
    assert not filled(charts.groups(grouped(["b", "a"]), "region"), "low")


def test_a_group_with_a_rule_of_its_own_is_coloured_by_that():
    summary = grouped(["b", "a", "c"])  # medians 3, 5.7 and 8.4
    gates = [Gate("local_cloaking", 2, 3.0, group="b"), Gate("hidden_rate", 99.5, 99.0, group="c")]
    chart = charts.groups(summary, "region", 5, gates)
    assert len(filled(chart, "low")) == 1
    assert "a" not in [text for text in texts(chart) if text in "abc"][2:]  # c, whose rate is below, is the last
    assert chart.legend == (("below", "rule not met"),)
    assert not charts.groups(summary, "region", 5).legend


def test_a_group_is_drawn_with_its_rate_and_its_size():
    chart = charts.groups(grouped(["b", "(other)"]), "region")
    assert any(re.fullmatch(r"[\d.]+  \(\d\d\.\d.% of 200\)", text) for text in texts(chart))
    assert "groups under 100 are merged" in chart.note
    assert "merged" not in charts.groups(grouped(["b", "c"]), "region").note


def test_names_that_would_look_alike_are_told_apart():
    centres = [f"Centre hospitalier universitaire de la region {letter}, France" for letter in "ABC"]
    found = texts(charts.groups(grouped([*centres, "north"]), "centre"))
    assert {"…region A…", "…region B…", "…region C…", "north"} <= set(found)
    nested = [f"{'x' * 60}{middle}{'y' * 60}" for middle in ("", "one", "two")]
    found = texts(charts.groups(grouped(nested), "centre"))
    assert {"……", "…one…", "…two…"} <= set(found)
    beyond = [f"{end}{'x' * 90}{middle}{'y' * 90}{end}" for end in "ab" for middle in ("M", "N")]
    found = [text for text in texts(charts.groups(grouped(beyond), "centre")) if "x" in text or "…" in text]
    assert len(set(found)) == 4


def test_twelve_groups_are_drawn_and_the_rest_is_named():
    chart = charts.groups(examples.thirty_groups().summary, "region")
    assert sum("region " in text for text in texts(chart)) == 12
    assert "the 12 lowest of 30 groups, all are in report.json" in chart.note


@pytest.mark.parametrize("name", ["$\\frac{1}{0}$", "<b>&\"'", "--><!--", "日本語", "group-1", "</svg>"])
def test_a_group_may_have_any_name(name):
    chart = charts.groups(grouped([name, "other"]), name)
    assert name in texts(chart)
    assert "<b>" not in chart.svg
    assert chart.svg.count("</svg>") == 1


def test_a_long_name_is_cut_to_its_room():
    assert canvas.fit("W" * 90, 140).count("W") < canvas.fit("i" * 90, 140).count("i") < 90
    assert canvas.fit("", 140) == "(empty)"
    assert HOSTILE not in texts(charts.groups(grouped([HOSTILE * 9]), "g"))


@pytest.mark.parametrize("top", [1, 2, 7, 10, 13, 39, 55, 90, 100, 1069, 2e7])
def test_ticks_are_few_round_and_reach_the_top(top):
    found = canvas.ticks(top)
    assert found[0] == 0
    assert found[-1] >= top
    assert 2 <= len(found) <= 6
    assert all(tick == int(tick) for tick in found)


@pytest.mark.parametrize("last", [9, 1_000, 10**7, 7 * 10**8])
def test_labels_of_a_log_axis_have_room_between_them(last):
    points = 340
    shown = canvas.apart(canvas.log_ticks(last), points, last)
    places = [math.log(value) / math.log(last) * points for value in shown]
    half = [canvas.width(f"{value:,.0f}") / 2 for value in shown]
    ends = [(place - one, place + one) for place, one in zip(places, half, strict=True)]
    assert all(left[1] < right[0] for left, right in pairwise(ends))
    assert len(shown) >= 3


def test_figures_of_any_size_can_be_drawn():
    huge = untied([n * 97 for n in range(20_000)], avatars=2_000_000)
    assert "1,000,000" in texts(charts.hidden_curve(huge, 1000))
    for counts in ([0], [0, 0], [1], [10**7] * 3):
        for threshold in (None, 0, 0.5, 1, 5, 1e6):
            charts.histogram(untied(counts), threshold)
            charts.hidden_curve(untied(counts), threshold)
            charts.groups(replace(untied(counts), groups={"g": untied(counts)}), "g", threshold)
            charts.history([PastRun(f"2026-0{n}-01", counts[0], 0, counts[0], "pass") for n in (1, 2)], threshold)
