"""report.html in a real browser: no complaint, the figures of report.json, no overflow, one printed sheet."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
import report_examples as examples

from cloaking import report
from cloaking.results import Notice

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

WIDTHS = (420, 1200)
# Loads the page in frames of these widths and reports what a reader of each would find.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const widths = %s, found = {};
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border: 0; height: 900px; width: ${width}px`;
  frame.srcdoc = %s;
  frame.onload = () => {
    const page = frame.contentDocument, root = page.documentElement;
    const outside = [...page.querySelectorAll("body *")].filter(node => {
      const box = node.getBoundingClientRect();
      return box.width && (box.right > width + 0.5 || box.left < -0.5);
    });
    const cut = [...page.querySelectorAll("svg text")].filter(node => {
      const box = node.getBoundingClientRect(), chart = node.closest("svg").getBoundingClientRect();
      return box.right > chart.right + 1 || box.left < chart.left - 1 || box.bottom > chart.bottom + 1
        || box.top < chart.top - 1;
    });
    const label = [...page.querySelectorAll("svg text")].map(node => parseFloat(getComputedStyle(node).fontSize)
      * node.closest("svg").getBoundingClientRect().width / node.closest("svg").viewBox.baseVal.width);
    found[width] = {
      scroll: root.scrollWidth, inner: frame.contentWindow.innerWidth, text: page.body.innerText,
      outside: outside.map(node => node.tagName + " " + node.className), cut: cut.map(node => node.textContent),
      label: Math.min(...label), scripts: page.scripts.length,
    };
    if (Object.keys(found).length === widths.length) document.title = JSON.stringify(found);
  };
  document.body.append(frame);
}
</script>"""

RUNS = {
    "passing": (examples.passing(), examples.twelve_runs()),
    "failing": (examples.failing(), examples.twelve_runs()),
    "doubtful": (examples.doubtful(), ()),
    "hostile": (examples.hostile(), examples.twelve_runs()),
    "one original": (examples.one_original(), ()),
    "thirty groups": (examples.thirty_groups(), ()),
}


def chromium(folder, file, *options):
    """Run a headless Chromium over a file; return what it printed and what its console said."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-extensions",
        "--no-first-run",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
        "--virtual-time-budget=10000",
        *options,
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def saved(folder, text):
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    return file


def probe(folder, page):
    """Return what readers at each of WIDTHS find on a page."""
    file = folder / "probe.html"
    file.write_text(PROBE % (list(WIDTHS), json.dumps(page).replace("</", "<\\/")), encoding="utf-8")
    dom, _ = chromium(folder, file, "--dump-dom")
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert title, dom[-2000:]
    return json.loads(html.unescape(title[1]))


def sheets(folder, page):
    """Return the number of pages that a page prints on."""
    pdf = folder / "report.pdf"
    chromium(folder, saved(folder, page), f"--print-to-pdf={pdf}", "--no-pdf-header-footer")
    return len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))


@pytest.mark.parametrize("name", RUNS)
def test_the_page_opens_without_a_word_on_the_console(name, tmp_path):
    dom, console = chromium(tmp_path, saved(tmp_path, report.to_html(*RUNS[name])), "--dump-dom")
    assert "</html>" in dom
    assert console == []


def test_the_console_would_be_heard(tmp_path):
    page = report.to_html(*RUNS["passing"]).replace("</body>", '<img src="https://example.org/x.png"></body>')
    _, console = chromium(tmp_path, saved(tmp_path, page), "--dump-dom")
    assert any("Content Security Policy" in line for line in console)


@pytest.mark.parametrize("name", RUNS)
def test_nothing_overflows_and_every_label_can_be_read(name, tmp_path):
    found = probe(tmp_path, report.to_html(*RUNS[name]))
    for width in WIDTHS:
        one = found[str(width)]
        assert one["inner"] == width
        assert one["scroll"] <= width
        assert one["outside"] == []
        assert one["cut"] == []
        assert one["label"] >= 9.5  # CSS pixels
        assert one["scripts"] == 0


def test_a_reader_finds_the_figures_of_report_json(tmp_path):
    run, history = RUNS["failing"]
    figures = json.loads(report.to_json(run))
    text = " ".join(probe(tmp_path, report.to_html(run, history))["1200"]["text"].split())
    assert f"Local Cloaking {figures['local_cloaking']:g} 95.2 % interval" in text
    assert f"Hidden rate {figures['hidden_rate']:.1f} %" in text
    assert f"5th percentile {figures['cloaking']['quantiles']['0.05']:g}" in text
    assert figures["verdict"].upper() in text
    for gate in figures["gates"]:
        assert f"at least {gate['threshold']:g}" in text
    for one in figures["inputs"]:
        assert f"{one['ref']} · {one['rows']:,} rows" in text


@pytest.mark.parametrize("name", RUNS)
def test_it_prints_on_one_sheet(name, tmp_path):
    assert sheets(tmp_path, report.to_html(*RUNS[name])) == 1


def test_it_prints_on_one_sheet_with_much_to_say(tmp_path):
    run, history = RUNS["passing"]
    message = "originals 'crm.silver.patients': " + "a long story " * 9
    warnings = tuple(Notice(f"warning_{n}", message) for n in range(4))
    parameters = dict(run.parameters) | {"where": "region in ('north', 'south') and " * 12 + "consent"}
    run = replace(run, summary=replace(run.summary, warnings=warnings), parameters=parameters, gates=run.gates * 4)
    assert sheets(tmp_path, report.to_html(run, history)) == 1
