"""The k sweep's command and page: what is written, what is refused, and that page and k_sweep.json say the same."""

import contextlib
import json
import re
import shlex
import sys
from dataclasses import asdict, replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from cloaking.command import k_sweep as module
from cloaking.command.k_sweep_settings import Settings, parse
from cloaking.errors import OutputError, SettingsError
from cloaking.sweep.page import as_dict, to_html, to_json
from cloaking.sweep.results import AtK, Sweep, SweepRun
from cloaking.sweep.simulate import METHOD, sweep

WINE = f"parquet:{ROOT / 'tests' / 'data' / 'wine_originals.parquet'}"
HOSTILE = '<script>alert("1")</script> & {{ 7 * 7 }} $\\frac{1}{0}$ \u202e'


@pytest.fixture
def k_sweep(spark, tmp_path, capsys):
    """Run the command in the suite's session; return exit code, problems, and k_sweep.json where it was written."""

    def run(*argv, output=tmp_path / "k"):
        capsys.readouterr()
        code = module.main([*map(str, argv), "--output", str(output)])
        said = [line.removeprefix("k_sweep: ") for line in capsys.readouterr().err.splitlines()]
        path = output / "k_sweep.json"
        return code, said, json.loads(path.read_text()) if path.is_file() else None

    return run


def at(k, cloaking, rates):
    return AtK(k, tuple((0, k, repeat + 1) for repeat in range(len(cloaking))), tuple(cloaking), tuple(rates))


RESULTS = (
    at(5, [1, 2, 1], [71.25, 72.5, 70.1]),
    at(10, [3, 3.5, 3], [85.4, 85.9, 86.0]),
    at(20, [6, 5, 5.5], [89.96, 91.2, 90.7]),
    at(40, [11, 10.5, 12], [95.0, 95.9, 96.2]),
)


def run_of(results=RESULTS, thresholds=None, **more):
    run = SweepRun(
        run_id="0123456789abcdef",
        name="patients",
        run_at="2026-12-01T03:00:00+00:00",
        sweep=Sweep(tuple(results), thresholds or {}),
        inputs=(("gold.patients", 1_234),),
        components=("dim_1", "dim_2"),
        repeats=len(results[0].seeds),
        seed=0,
        method=METHOD,
        parameters={"originals": "gold.patients", "output": "/k", "id": ("id",), "k": (5, 10, 20, 40), "repeats": 3},
        versions={"cloaking": "0.1.0", "numpy": "2.4.6", "scipy": "1.17.1"},
        seconds={"total": 12.34},
    )
    return replace(run, **more)


def long():
    return run_of([at(k, [k / 4, k / 2], [50, 60]) for k in range(1, 61)], {"local_cloaking": 13})


RUNS = {
    "reached": run_of(thresholds={"local_cloaking": 5.0}),
    "both": run_of(thresholds={"local_cloaking": 5.0, "hidden_rate": 90.0}),
    "not reached": run_of(thresholds={"local_cloaking": 11.0}),
    "no target": run_of(),
    "one repeat of one k": run_of([at(20, [5], [90.5])], {"local_cloaking": 5.0}),
    "sixty k": long(),
    "hostile": run_of(
        name=HOSTILE,
        inputs=((HOSTILE, 60),),
        components=(HOSTILE,) * 12,
        parameters={"originals": HOSTILE, "where": HOSTILE * 4, "name": HOSTILE},
    ),
}


def text_of(html):
    body = re.sub(r"<style>.*?</style>|<desc.*?</desc>|<[^>]+>", " ", html, flags=re.DOTALL)
    return " ".join(body.replace("\u00a0", " ").replace("&#39;", "'").split())


def test_page_and_json_are_written_and_hold_what_the_sweep_gives(k_sweep, tmp_path):
    code, _, found = k_sweep("--originals", WINE, "--k", "20,5", "--repeats", 2, "--seed", 7, "--target", 1)
    assert code == 0
    table = pd.read_parquet(WINE.removeprefix("parquet:"))
    expected = sweep(table[[f"dim_{i}" for i in range(1, 6)]].to_numpy(), [5, 20], repeats=2, seed=7)
    assert (found["schema_version"], found["k"], found["repeats"], found["seed"]) == (1, [5, 20], 2, 7)
    assert (found["originals"], found["ncp"]) == (178, 5)
    assert found["components"] == [f"dim_{i}" for i in range(1, 6)]
    for one, known in zip(found["results"], expected, strict=True):
        assert [value["local_cloaking"] for value in one["values"]] == list(known.local_cloaking)
        assert [value["hidden_rate"] for value in one["values"]] == list(known.hidden_rate)
        assert [value["seed"] for value in one["values"]] == [[7, known.k, 1], [7, known.k, 2]]
        assert one["hidden_rate"]["min"] == min(known.hidden_rate)
        assert one["hidden_rate"]["max"] == max(known.hidden_rate)
        assert one["local_cloaking"]["median"] == sum(known.local_cloaking) / 2
    assert (found["verdict"], found["targets"][0]["threshold"]) == ("reached", 1)
    assert "Guillaudeux" in found["method"]
    assert {"cloaking", "python", "spark", "numpy", "scipy"} <= set(found["versions"])
    assert {"session", "read", "sweep", "total"} == set(found["seconds"])
    page = text_of((tmp_path / "k" / "k_sweep.html").read_text())
    assert f"k = {found['answer']} is the smallest k tried" in page
    assert found["run_id"] in page


def test_a_target_that_no_k_reaches_is_3_and_everything_is_written(k_sweep, tmp_path, caplog):
    caplog.set_level("INFO", "cloaking")
    code, _, found = k_sweep("--originals", WINE, "--k", 5, "--repeats", 2, "--target-hidden-rate", 100)
    assert (code, found["verdict"], found["answer"]) == (3, "not reached", None)
    assert (tmp_path / "k" / "k_sweep.html").is_file()
    assert "answer=none k=5 repeats=2 originals=178 ncp=5 verdict=not_reached seconds=" in caplog.messages[-1]


def test_the_key_is_no_component_and_the_order_of_the_rows_no_matter(k_sweep, parquet, csv):
    rng = np.random.default_rng(0)
    columns = {"patient": np.arange(60), "dim_2": rng.normal(size=60), "dim_1": rng.normal(size=60)}
    shuffled = pd.DataFrame(columns).sample(frac=1, random_state=1)
    refs = [parquet("a", columns), parquet("b", shuffled), csv("c", shuffled.to_csv(index=False))]
    found = [k_sweep("--originals", ref, "--id", "patient", "--k", 4, "--repeats", 2)[2] for ref in refs]
    assert [one["components"] for one in found] == [["dim_1", "dim_2"]] * 3
    assert found[0]["results"] == found[1]["results"] == found[2]["results"]
    assert k_sweep("--originals", refs[0], "--id", "patient", "--ncp", 1, "--k", 4)[2]["components"] == ["dim_1"]
    assert k_sweep("--originals", refs[0], "--components", "dim_2", "--k", 4)[2]["components"] == ["dim_2"]


def test_an_address_with_a_password_is_refused_and_not_repeated(k_sweep):
    code, said, _ = k_sweep("--originals", "parquet:s3://user:swordfish@host/patients")
    assert (code, len(said), "swordfish" in said[0]) == (2, 1, False)


def test_what_is_wrong_with_the_originals_is_said_and_nothing_is_written(k_sweep, parquet, tmp_path, monkeypatch):
    ref = parquet("o", {"id": range(9), "x": [777333.5] * 9, "y": [np.inf, *range(8)], "w": ["a"] * 9})
    label = f"originals '{ref}': "
    for argv, said in [
        (("--components", "x", "--k", "8,9,10"),
         [f"{label}--k 9,10: an avatar is made of k other originals, and there are 8; leave it out"]),
        ((), [f"{label}component 'y' is infinite in 1 of 9 rows; fill or drop these rows before the projection"]),
        (("--id", "patient"),
         [f"{label}key column 'patient' is missing; name the key with --id, or the components with --components"]),
        (("--components", "x,w,z"), [f"{label}component 'z' is missing; name others with --components",
                                     f"{label}component 'w' is string, not a number; cast it"]),
        (("--components", "x", "--ncp", 2), ["--ncp 2 is out of range: there are 1 component(s)"]),
        (("--components", "x", "--where", "id > 9"), [f"{label}has no rows; look at the table and at --where"]),
    ]:  # fmt: skip
        assert k_sweep("--originals", ref, *argv) == (2, said, None)
    far = parquet("far", {"id": range(9), "x": [1e200, *range(8)]})
    code, [said], _ = k_sweep("--originals", far, "--k", 3)
    assert (code, "1 of 9 rows hold coordinates beyond 1e+150" in said) == (2, True)
    monkeypatch.setattr("cloaking.sweep.simulate.MOST_ORIGINALS", 8)
    code, [said], _ = k_sweep("--originals", ref, "--components", "x", "--k", 3)
    assert (code, "9 rows, and the sweep takes up to 8; run the sweep on a sample" in said) == (2, True)
    assert not (tmp_path / "k").exists()


def test_the_json_comes_last_and_without_it_there_is_no_page(k_sweep, tmp_path, monkeypatch):
    from cloaking.tables import text_files

    written, together = [], text_files.together

    @contextlib.contextmanager
    def full(folder):
        def kept(name, text):
            written.append(name)
            if name.endswith(".json"):
                raise OutputError("--output: no space left")
            return put(name, text)

        with together(folder) as put:
            yield kept

    monkeypatch.setattr(text_files, "together", full)
    code, said, found = k_sweep("--originals", WINE, "--k", 5, "--repeats", 1)
    assert (code, said[-1], found) == (2, "--output: no space left", None)
    assert written == ["k_sweep.html", "k_sweep.json"]
    assert list((tmp_path / "k").iterdir()) == []


def test_without_the_extra_report_there_is_json_and_a_warning_and_no_older_page(k_sweep, tmp_path, monkeypatch, caplog):
    (tmp_path / "k").mkdir()
    (tmp_path / "k" / "k_sweep.html").write_text("of an earlier run")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "cloaking.report.page", raising=False)
    monkeypatch.delattr("cloaking.report.page", raising=False)
    code, _, found = k_sweep("--originals", WINE, "--k", 5, "--repeats", 1, "--conf", "spark.some.password=swordfish")
    assert (code, found["verdict"]) == (0, "no target")
    assert not (tmp_path / "k" / "k_sweep.html").exists()
    assert any(
        "needs jinja2, which is not installed: pip install 'cloaking[report]'" in line for line in caplog.messages
    )
    assert "swordfish" not in json.dumps(found)


def test_without_scipy_it_says_what_to_install_before_spark_is_started(monkeypatch, capsys):
    monkeypatch.setattr("cloaking.command.run.session", None)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    monkeypatch.delitem(sys.modules, "cloaking.sweep.simulate")
    assert module.main(["--originals", "t", "--output", "/nowhere"]) == 2
    said = capsys.readouterr().err
    assert said == "k_sweep: the k sweep needs scipy, which is not installed: pip install 'cloaking[sweep]'\n"


def test_unless_told_otherwise_five_k_are_tried_five_times():
    assert parse(["--originals", "t", "--output", "d"]) == Settings("t", "d")
    assert (Settings("t", "d").k, Settings("t", "d").repeats, Settings("t", "d").seed) == ((5, 10, 20, 40, 80), 5, 0)
    assert parse(shlex.split("--originals t --output d --k '20, 5,10'")).k == (5, 10, 20)


@pytest.mark.parametrize(
    ("argv", "problems"),
    [
        ("", ["--originals is missing", "--output is missing: the folder of the page and of k_sweep.json"]),
        ("--originals t --output d --k 5,10,5 --id a,a", ["--id names a more than once", "--k names 5 more than once"]),
        ("--k 0", ["argument --k: whole numbers of at least 1 separated by commas are needed, not '0'; see --help"]),
        ("--k 5,", ["argument --k: whole numbers of at least 1 separated by commas are needed, not '5,'; see --help"]),
        ("--repeats 0", ["argument --repeats: a whole number from 1 to 2147483647 is needed, not '0'; see --help"]),
        ("--seed 1.5", ["argument --seed: a whole number from 0 to 4294967295 is needed, not '1.5'; see --help"]),
        ("--target nan", ["argument --target: a number of at least 0 is needed, not 'nan'; see --help"]),
        ("--target-hidden-rate 101",
         ["argument --target-hidden-rate: a percentage from 0 to 100 is needed, not '101'; see --help"]),
        ("--ncp 0", ["argument --ncp: a whole number from 1 to 2147483647 is needed, not '0'; see --help"]),
        ("--avatars t", ["unrecognized arguments: --avatars and 1 word more; see --help"]),
        ("--conf x", ["argument --conf: KEY=VALUE is needed; see --help"]),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_are_refused_at_once(argv, problems):
    with pytest.raises(SettingsError) as error:
        parse(argv.split())
    assert list(error.value.problems) == problems


pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


@pytest.mark.parametrize("name", RUNS)
def test_every_page_stands_alone_promises_nothing_and_can_be_read_out(name):
    html = to_html(RUNS[name])
    assert len(html.encode()) < 100_000
    assert not re.search(r"<script|https?:|@import|\bsrc=|url\((?!#)|\son\w+=", html)
    assert not re.search(r"\banonymous|\bsafe", html, re.IGNORECASE)
    ids = re.findall(r'\bid="([^"]+)"', html)
    referred = re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and set(referred) <= set(ids)
    assert html.count("<svg ") == html.count("<desc ") == html.count('role="img"') == 2
    assert html.count("<table") == html.count("<caption")
    json.loads(to_json(RUNS[name]))


@pytest.mark.parametrize("name", RUNS)
def test_every_page_says_what_it_is_not(name):
    text = text_of(to_html(RUNS[name]))
    for said in (
        "simulates the published method on these originals",
        "it is not any vendor's product",
        f"over ncp = {RUNS[name].ncp} component",
        "Both move with ncp",
        "The answer is for the k that were tried",
        "The simulated avatars stay in the projected space",
    ):
        assert said in text


def test_a_sweep_over_chosen_rows_says_that_a_sample_gives_too_high_figures():
    warning = "If they are a sample of a larger table, these figures are too high for it"
    run = RUNS["reached"]
    assert warning not in text_of(to_html(replace(run, parameters={"originals": "t"})))
    assert warning in text_of(to_html(replace(run, parameters={"originals": "t", "where": "id % 10 = 0"})))


def test_the_page_shows_the_values_of_the_json():
    text, content = text_of(to_html(RUNS["no target"])), as_dict(RUNS["no target"])
    assert content["results"][1]["local_cloaking"] == {"median": 3, "min": 3, "max": 3.5}
    assert content["results"][1]["hidden_rate"] == {"median": 85.9, "min": 85.4, "max": 86.0}
    assert content["results"][1]["values"][2] == {
        "repeat": 3, "seed": [0, 10, 3], "local_cloaking": 3, "hidden_rate": 86.0
    }  # fmt: skip
    assert "10 3 (3 to 3.5) 85.9 % (85.4 % to 86.0 %)" in text
    assert "5 1 (1 to 2) 71.2 % (70.1 % to 72.5 %)" in text
    assert "Local Cloaking at k = 40 11 10.5 to 12 over the repeats" in text
    assert "gold.patients · 1,234 rows" in text


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("reached", "k = 20 is the smallest k tried that reaches a Local Cloaking of at least 5 in every one of 3 "
                    "repeats. At k = 10, the next smaller that was tried, 0 of 3 do."),
        ("both", "k = 40 is the smallest k tried that reaches a Local Cloaking of at least 5 and a hidden rate of at "
                 "least 90 % in every one of 3 repeats. At k = 20, the next smaller that was tried, 2 of 3 do."),
        ("not reached", "None of the k tried (4 values of k from 5 to 40) reaches a Local Cloaking of at least 11 in "
                        "every one of 3 repeats. At best, 2 of 3 do. Try larger ones."),
        ("no target", "No target was given, so that the figures of 4 values of k from 5 to 40 are reported and not "
                      "judged."),
        ("one repeat of one k", "k = 20 is the smallest k tried that reaches a Local Cloaking of at least 5 in the "
                                "only repeat. It is the smallest that was tried: a smaller one may do as well."),
    ],
)  # fmt: skip
def test_the_answer_is_said_in_words(run, said):
    assert said in text_of(to_html(RUNS[run]))


def test_rounding_never_contradicts_the_answer():
    text = text_of(to_html(RUNS["both"]))
    assert "20 5.5 (5 to 6) 90.7 % (89.96 % to 91.2 %) 2 of 3" in text
    assert "Answer k = 40 the smallest k tried that reaches both targets" in text


def test_a_larger_k_that_falls_below_the_target_is_named():
    run = run_of((*RESULTS, at(80, [4, 9, 9], [97, 98, 99])), {"local_cloaking": 5.0})
    assert "Not so the larger 80: look at the curve." in text_of(to_html(run))


def test_of_many_k_some_are_shown_with_the_answer():
    html = to_html(RUNS["sixty k"])
    assert RUNS["sixty k"].sweep.answer == 52
    shown = [int(k) for k in re.findall(r'<th scope="row">(\d+)</th>', html)]
    assert (shown[0], shown[-1], 52 in shown, len(shown) in (12, 13)) == (1, 60, True, True)
    assert f"{60 - len(shown)} more are in k_sweep.json" in html


def test_hostile_names_stay_text():
    html = to_html(RUNS["hostile"])
    assert "<script" not in html
    assert "{{ 7 * 7 }}" in html
    assert "\u202e" not in html


def test_the_command_on_the_page_repeats_the_sweep():
    settings = Settings(
        "a b.c", "/r", where="name = 'O''Brien'", components=("Dim. 1", "x"), target=5.5, seed=3, name="-v1.0"
    )
    given = asdict(settings).items()
    kept = {name: value for name, value in given if value is not None and name not in ("conf", "debug")}
    html = to_html(run_of(parameters=kept))
    code = re.search(r'<pre class="command"><code>(.*?)</code>', html, re.DOTALL)[1]
    words = shlex.split(unescape(re.sub(r"</?span>", "", code)))
    assert words[:2] == ["spark-submit", "jobs/k_sweep.py"]
    assert parse(words[2:]) == settings


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_in_a_browser_nothing_overflows_and_it_prints_on_one_sheet(name, tmp_path):
    browser = pytest.importorskip("test_report_browser")
    if browser.CHROMIUM is None:
        pytest.skip("chromium is not installed")
    html = to_html(RUNS[name])
    found = browser.probe(tmp_path, html)
    for width in browser.WIDTHS:
        one = found[str(width)]
        assert (one["scroll"] <= width, one["outside"], one["cut"]) == (True, [], [])
        assert one["label"] >= 9.5  # CSS pixels
    assert browser.sheets(tmp_path, html) == 1
