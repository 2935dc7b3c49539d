"""report.html: what it says, that it says it right under ties and rounding, and that no name can break it."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import report_examples as examples
from report_examples import HOSTILE, grouped, run_of, summary_of, untied

from cloaking import report
from cloaking.results import CloakingClass, Gate, Notice, PastRun

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
from cloaking.report import words  # noqa: E402

RUNS = {
    "passing": (examples.passing(), examples.twelve_runs()),
    "failing": (examples.failing(), ()),
    "doubtful": (examples.doubtful(), ()),
    "hostile": (examples.hostile(), examples.twelve_runs()),
    "one original": (examples.one_original(), ()),
    "thirty groups": (examples.thirty_groups(), ()),
    "wine": (run_of(examples.wine(), name="wine"), ()),
}


class Page(HTMLParser):
    """Tags, ids, references and the text of a page, spaces evened out."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.references, self._text, self._quiet = [], [], [], [], False
        self.feed(html)
        self.text = " ".join("".join(self._text).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "br":
            self._text.append(" ")
        self._quiet = tag == "style" or (self._quiet and tag != "body")
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("aria-labelledby", "aria-describedby"):
                self.references.append(value)
            if key == "href" and value.startswith("#"):
                self.references.append(value[1:])

    def handle_endtag(self, tag):
        if tag == "style":
            self._quiet = False
        if tag in ("td", "th", "dd", "dt", "p", "text", "h1", "h2"):
            self._text.append(" ")

    def handle_data(self, data):
        if not self._quiet:
            self._text.append(data)


def text_of(run, history=()):
    return Page(report.to_html(run, history)).text


@pytest.mark.parametrize("name", RUNS)
def test_every_page_stands_alone_and_is_small(name):
    html = report.to_html(*RUNS[name])
    assert len(html.encode()) < 150_000
    assert "script" not in Page(html).tags
    assert not re.search(r"https?:|@import|@font-face|\bsrc=|url\((?!#)|\son\w+=", html.replace(HOSTILE, ""))
    assert {"base", "iframe", "object", "img", "form"}.isdisjoint(Page(html).tags)


@pytest.mark.parametrize("name", RUNS)
def test_ids_are_unique_and_whatever_is_referred_to_exists(name):
    parsed = Page(report.to_html(*RUNS[name]))
    assert len(parsed.ids) == len(set(parsed.ids))
    assert parsed.references
    assert set(parsed.references) <= set(parsed.ids)


@pytest.mark.parametrize("name", RUNS)
def test_no_page_promises_too_much(name):
    html = report.to_html(*RUNS[name])
    assert not re.search(r"\banonymous|\bsafe", html, re.IGNORECASE)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_has_landmarks_and_a_name_and_words_for_each_chart(name):
    html = report.to_html(*RUNS[name])
    tags = Page(html).tags
    assert {"header", "main", "footer", "h1", "h2", "caption"} <= set(tags)
    assert html.count("<svg ") == tags.count("desc") == html.count('role="img"') >= 2
    assert '<html lang="en"' in html


def test_the_page_shows_the_figures_of_report_json():
    run = examples.passing()
    figures, text = json.loads(report.to_json(run)), text_of(run)
    assert f"Local Cloaking {figures['local_cloaking']:g} 95.2 % interval: 13 to 15" in text
    assert f"Hidden rate {figures['hidden_rate']:.1f} % ties do not change it" in text
    assert f"5th percentile {figures['cloaking']['quantiles']['0.05']:g}" in text
    for one in figures["cloaking"]["classes"]:
        assert f"{100 * one['originals'] / figures['originals']:.1f} %" in text
    for one in figures["inputs"]:
        assert f"{one['ref']} · {one['rows']:,} rows" in text
    assert f"ncp {figures['ncp']}: {', '.join(figures['components'])}" in text
    assert all(f"{name} {version}" in text for name, version in figures["versions"].items())
    assert f"strategy {figures['strategy']}" in text
    assert figures["run_id"] in text
    assert "16.8 seconds" in text
    assert "Privacy report of 1 December 2026" in text


def test_a_verdict_stands_with_its_rule_and_the_value():
    text = text_of(examples.failing())
    assert "Verdict FAIL 1 of 2 rules not met" in text
    assert "Local Cloaking at least 6 4 not met" in text
    assert "Hidden rate at least 90 % 94.0 % met" in text
    assert "Verdict PASS every rule is met" in text_of(examples.passing())


def test_no_gate_is_said_in_words_and_usual_targets_are_named_not_applied():
    text = text_of(run_of(untied([0, 0, 1])))
    assert "Verdict No gate no threshold was set" in text
    assert "No gate: no rule was given to this run, so its figures are reported and not judged." in text
    assert "more than 5 and a hidden rate of more than 90 % (source: the Avatar platform's reports)" in text
    assert "not met" not in text


def test_rounding_never_contradicts_a_verdict():
    gates = (Gate("hidden_rate", 90, 89.96), Gate("local_cloaking", 5, 4.999), Gate("hidden_rate", 90, 90.04))
    text = text_of(replace(examples.failing(), gates=gates))
    assert "Hidden rate at least 90 % 89.96 % not met" in text
    assert "Local Cloaking at least 5 4.999 not met" in text
    assert "Hidden rate at least 90 % 90.0 % met" in text


def test_the_large_figures_never_contradict_a_verdict_either():
    summary = replace(examples.failing().summary, hidden_rate=89.96, quantiles={0.05: 0.96, 0.5: 4.0, 0.95: 30.0})
    gates = (Gate("hidden_rate", 90, 89.96), Gate("quantile_0.05", 1, 0.96))
    text = text_of(run_of(summary), [])
    assert "Hidden rate 90.0 % ties" in text
    assert "would be right for 10.0 % of them" in text
    text = text_of(replace(run_of(summary), gates=gates))
    assert "Verdict FAIL 2 of 2 rules not met" in text
    assert "Hidden rate 89.96 %" in text
    assert "5th percentile 0.96 at least" in text
    assert "would be right for 10.04 % of them" in text
    assert "Verdict FAIL the rule is not met" in text_of(replace(run_of(summary), gates=gates[:1]))


@pytest.mark.parametrize(("value", "said"), [(99.9997, "99.9997"), (100.0, "100.0"), (0.0004, "0.0004"), (0.0, "0.0")])
def test_a_measured_rate_is_none_or_all_only_where_it_is(value, said):
    assert words.measured(Gate("hidden_rate", 50, value)) == f"{said}\N{NO-BREAK SPACE}%"


def test_many_rules_are_cut_with_those_not_met_first():
    gates = tuple(Gate(f"quantile 0.{n:02}", 5, 4.0 if n == 9 else 6.0) for n in range(1, 10))
    text = text_of(replace(examples.failing(), gates=gates))
    assert "Result quantile 0.09 at least 5 4 not met quantile 0.01" in text
    assert "3 further rules, met, in report.json." in text
    seven = text_of(replace(examples.failing(), gates=tuple(replace(gate, value=4.0) for gate in gates[:7])))
    assert "1 further rule, 1 not met, in report.json." in seven


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0.0"), (0.04, "< 0.1"), (1.14, "1.1"), (99.94, "99.9"), (99.96, "> 99.9"), (100, "100.0")]
)
def test_only_none_and_all_are_written_as_such(value, said):
    assert words.rate(value).replace(words.NBSP, " ") == f"{said} %"


def test_the_attacker_is_right_by_half_where_two_are_equally_near():
    # One original shares the first place with another avatar, one has it alone: right for (1/2 + 1) of 2.
    text = text_of(run_of(summary_of(closer=[0, 0], tied=[1, 0])))
    assert "picking at random among equals, would be right for 75.0 % of them." in text
    assert "Hidden rate 25.0 % 0.0 % if ties expose, 50.0 % if ties hide" in text


@pytest.mark.parametrize(
    ("expose", "rate", "hide", "gates", "said"),
    [
        (92.9, 92.9, 92.9, [], "92.9 % ties do not change it"),
        (92.91, 92.93, 92.94, [], "92.9 % ties change it by less than 0.1"),
        (92.88, 92.93, 92.94, [Gate("hidden_rate_ties_expose", 92.9, 92.88)], "92.88 % if ties expose, 92.9 % if"),
        (80.0, 92.93, 95.0, [], "92.9 % 80.0 % if ties expose, 95.0 % if ties hide"),
    ],
)
def test_what_ties_do_is_said_as_it_is(expose, rate, hide, gates, said):
    bounds = {"hidden_rate": rate, "hidden_rate_ties_expose": expose, "hidden_rate_ties_hide": hide}
    assert said in text_of(replace(run_of(replace(untied([3, 4]), **bounds)), gates=tuple(gates)))


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([0, 0, 3], "For at least half of the originals, no other avatar is as close as the one made from them."),
        ([0, 1], "For at least half of the originals, 1 or more other avatars are at least as close"),
        ([2, 3, 4, 9], "For at least half of the originals, 4 or more other avatars"),
        ([2], "For the only original, 2 or more other avatars are at least as close as the one made from it."),
    ],
)
def test_the_sentence_on_the_median_is_true_of_at_least_half(counts, said):
    summary = untied(counts)
    assert said in text_of(run_of(summary))
    named = re.search(r"(\d+) or more", said)
    if named:
        assert 2 * sum(count >= int(named[1]) for count in counts) >= len(counts)


def test_a_suspect_link_comes_first_and_takes_the_green_away():
    run = examples.doubtful()
    text = text_of(run)
    link = text.index("The link between originals and avatars looks wrong: do not rely on any of these figures.")
    assert link < text.index("Ties matter here") < text.index("Verdict")
    assert "If the link were right: For at least half" in text
    passing = replace(run, gates=(Gate("local_cloaking", 5, run.summary.local_cloaking),))
    assert 'class="panel doubt"' in report.to_html(passing)
    assert "Verdict PASS the rule is met; see the warning" in text_of(passing)


def test_a_warning_that_is_not_known_keeps_its_own_words():
    summary = untied([3, 4], warnings=(Notice("moon_full", "it was full"),))
    assert "Moon full. It was full (moon_full)" in text_of(run_of(summary))


def test_the_interval_has_its_caveat_and_one_original_has_none():
    caveat = "treats the originals as independent draws and does not cover another draw of avatars"
    assert caveat in text_of(examples.passing())
    text = text_of(examples.one_original())
    assert caveat not in text
    assert "Local Cloaking 0 too few for an interval" in text
    assert "crm.silver.patients · 1 row " in text


def test_the_page_says_what_is_not_measured_and_what_moves_the_figure():
    text = text_of(examples.passing())
    for words_of_it in (
        "over the first ncp = 5 components",
        "compare only runs of equal ncp",
        "A larger k (the neighbours that each avatar is made from) raises it",
        "It does not measure other attacks, what can be inferred about somebody's attributes",
        "what an attacker knows besides these tables",
    ):
        assert words_of_it in text


def contrast(first, second):
    """Return the contrast of two colours by WCAG 2.2, from 1 to 21."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_both_palettes_can_be_read():
    css = report.to_html(examples.passing())
    palettes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)]
    assert len(palettes) == 2
    for colours in palettes:
        for ground in ("paper", "panel", "warn-panel"):
            assert all(contrast(colours[ink], colours[ground]) >= 4.5 for ink in ("ink", "muted", "warn"))
        assert all(contrast(colours[ink], colours["panel"]) >= 4.5 for ink in ("pass", "fail"))
        assert all(contrast(colours[mark], colours["paper"]) >= 3 for mark in ("bar", "low"))


def test_history_is_drawn_only_where_there_is_one_and_this_run_replaces_its_date():
    run = examples.passing()
    assert "Run by run" not in text_of(run)
    same = PastRun(run.run_date, 999, 1, 2000, "pass")
    assert "Run by run" not in text_of(run, [same])
    text = text_of(run, [*examples.twelve_runs(), same])
    assert "Run by run" in text
    assert "2026-07-01: 4, gate not met" in text
    assert "2026-12-01: 14." in text
    assert "999" not in text


def test_the_course_ends_at_this_run_and_leaves_runs_of_another_ncp_out():
    run = examples.passing()  # ncp 5, of 2026-12-01
    earlier = [PastRun(f"2026-0{n}-01", 10.0 + n, 1, 30, "pass", ncp=5) for n in (1, 2)]
    others = [PastRun("2026-03-01", 170.0, 1, 300, "pass", ncp=1), PastRun("2027-01-01", 999.0, 1, 2000, "pass", ncp=5)]
    text = text_of(run, [*earlier, *others])
    assert "2026-01-01: 11; 2026-02-01: 12; 2026-12-01: 14." in text
    assert "; 1 of another ncp left out" in text
    assert "Run by run" not in text_of(run, others)


def test_the_same_run_gives_the_same_bytes_whatever_the_order_of_its_history_or_matplotlib_is_set_to():
    run, history = RUNS["passing"]
    before = report.to_html(run, history)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path", "axes.grid": True}):
        assert report.to_html(run, history[::-1]) == before
        assert matplotlib.rcParams["font.size"] == 30


def test_a_lone_group_is_named_and_not_drawn():
    run = run_of(grouped(["(other)"]), parameters={"group_by": "cultivar"})
    text = text_of(run)
    assert "By group" not in text
    assert "Groups one only, (other): its figures are those above" in text


def test_hostile_names_stay_text():
    html = report.to_html(*RUNS["hostile"])
    parsed = Page(html)
    assert "alert(1)</script>" not in html
    assert {"script", "i", "b"} & set(parsed.tags) <= {"i", "b"}  # those of the template: legend, warning, ncp
    assert set(parsed.tags) <= set(Page(report.to_html(*RUNS["passing"])).tags) | {"b", "div", "pre"}
    assert parsed.text.count(HOSTILE) >= 10
    assert "{{ 7 * 7 }}" in parsed.text
    assert "$\\frac{1}{0}$" in parsed.text
    assert "\u202e" not in html


@pytest.mark.parametrize("bad", ["\x00", "\x1b[31m", "\ud800", "\u2066"])
def test_characters_that_steer_instead_of_showing_are_replaced(bad):
    run = replace(examples.passing(), name=f"a{bad}b", inputs=((f"x{bad}", 1), ("y", 1)))
    html = report.to_html(run)
    html.encode()
    assert bad[0] not in html
    assert "a\N{REPLACEMENT CHARACTER}" in html


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment or None
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SETUP = f"import sys; sys.path[:0] = {[path for path in sys.path if path]!r}\n"


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_an_extra_the_page_says_what_to_install_and_json_works(missing):
    code = f"""
import report_examples as examples
sys.modules[{missing!r}] = None
from cloaking import report
from cloaking.errors import SettingsError
assert report.to_json(examples.passing())
for draw in (lambda: report.to_html(examples.passing()), lambda: report.to_fragment(examples.wine())):
    try:
        draw()
    except SettingsError as error:
        print(*error.problems, sep="\\n")
"""
    line = f"report.html needs {missing}, which is not installed: pip install 'cloaking[report]'"
    line += " (report.json works without)"
    assert python(SETUP + code).splitlines() == [line, line]


def test_the_report_loads_its_drawing_only_when_asked_and_never_pyplot():
    code = """
import report_examples as examples
from cloaking import report
report.to_json(examples.passing())
assert not {"jinja2", "matplotlib", "numpy", "pyspark"} & set(sys.modules)
report.to_html(examples.passing())
assert not {"pyspark", "matplotlib.pyplot"} & set(sys.modules)
"""
    python(SETUP + code)


def test_a_page_is_drawn_where_no_home_can_be_written():
    code = "import report_examples as examples; from cloaking import report; print(report.to_html(examples.passing()))"
    assert python(SETUP + code, HOME="/proc/no-home", PATH="/nowhere").startswith("<!DOCTYPE html>")


def test_a_notebook_gets_the_figures_and_the_histogram():
    summary = untied([3, 4, 5], warnings=(Notice("many_ties", HOSTILE),))
    html = report.to_fragment(summary)
    parsed = Page(html)
    assert len(html.encode()) < 20_000
    assert {"html", "body", "style", "script"}.isdisjoint(parsed.tags)
    assert parsed.tags.count("svg") == 1
    assert HOSTILE in parsed.text
    assert "Local Cloaking Hidden rate 5th percentile Originals Avatars ncp 4 100.0 % 3.1 3 3 5" in parsed.text


def test_a_notebook_gets_the_bounds_the_interval_the_groups_and_the_doubt():
    html = report.to_fragment(examples.doubtful().summary)
    text = Page(html).text
    assert "if ties expose" in text
    assert "% interval: " in text
    assert "If the link were right: For at least half" in text
    many = examples.thirty_groups().summary
    text = Page(report.to_fragment(many)).text
    assert "Group Local Cloaking Hidden rate Originals region 00 3 " in text
    assert "200 region 11" in text
    assert "region 12" not in text
    assert "The 12 lowest of 30 groups" in text


def test_two_notebook_displays_share_no_id():
    ids = [Page(report.to_fragment(untied(counts))).ids for counts in ([1, 2], [1, 3])]
    assert not set(ids[0]) & set(ids[1])


def test_a_class_is_written_with_both_ends():
    labels = [words.class_label(CloakingClass(*ends, 1)) for ends in ((0, 0), (3, 4), (100, None))]
    assert labels == ["0", "3–4", "100+"]
