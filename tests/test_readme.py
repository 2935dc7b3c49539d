"""Every command of the README is run, or, where it is for another site, read by the parser that would read it there."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from cloaking.command import k_sweep_settings, project_settings, settings
from cloaking.command.k_sweep import main as sweep
from cloaking.command.local_cloaking import main

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PARSERS = {
    "local_cloaking.py": settings.parse,
    "project.py": project_settings.parse,
    "k_sweep.py": k_sweep_settings.parse,
}
# What a test elsewhere or the tests' own start runs.
RUN_ELSEWHERE = {"scripts/demo", "scripts/test", "scripts/package", "python"}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands():
    """The commands of all blocks for a shell; one goes on after a backslash, and until its quotes are closed."""
    found, held = [], ""
    for line in "".join(blocks("bash")).replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*", "", line)
        held = f"{held}\n{line}" if held else line
        try:
            words = shlex.split(held)
        except ValueError:
            continue
        found += [words] if words else []
        held = ""
    assert not held
    return found


def after_job(words):
    """The job's file name and the arguments that follow it."""
    place = next(i for i, word in enumerate(words) if Path(word).name in PARSERS)
    return Path(words[place]).name, words[place + 1 :]


def test_the_readme_has_commands_of_every_kind():
    programs = {words[0] for words in commands()}
    assert {"scripts/demo", "scripts/test", "local-cloaking", "spark-submit", "python"} <= programs
    assert len(commands()) >= 10


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words)[:60])
def test_a_command_is_run_or_read(words, spark, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    while "=" in words[0]:  # a variable before the program
        words = words[1:]
    if words[0] == "local-cloaking" and "--config" not in words:
        words[words.index("--output") + 1] = str(tmp_path)
        assert main(words[1:]) == 0
    elif words[0] == "python" and words[1].endswith("k_sweep.py"):
        words[words.index("--output") + 1] = str(tmp_path)
        assert sweep(words[2:]) == 0
    elif words[0] == "local-cloaking":
        assert settings.parse(words[1:]).run_date == "2026-11-01"
    elif words[0] == "spark-submit":
        name, arguments = after_job(words)
        arguments = [word if word != "reports.toml" else "conf/reports.toml" for word in arguments]
        arguments = [word.replace("/etc/cloaking/", "conf/") for word in arguments]
        assert PARSERS[name](arguments)
        job = next(i for i, word in enumerate(words) if Path(word).name == name)
        options = words[1:job]
        assert all(re.fullmatch(r"--[a-z-]+", word) for word in options[::2]), options  # each option with its value
    elif words[0] == "aws":
        name, arguments = after_job(
            re.search(r"Args=\[(.*)\]", " ".join(words), re.DOTALL)[1].replace(" ", "").split(",")
        )
        assert PARSERS[name]([word if word != "reports.toml" else "conf/reports.toml" for word in arguments])
    else:
        assert words[0] in RUN_ELSEWHERE, words
        assert (ROOT / words[0]).exists() or words[0] == "python"


def test_the_python_of_the_readme_runs(spark):
    originals, avatars = (
        spark.createDataFrame(pd.DataFrame({"patient_id": [1, 2], **{f"dim_{k}": [0.0, 9.0 + k] for k in range(1, 6)}}))
        for _ in range(2)
    )
    for block in blocks("python"):
        names = {"originals": originals, "avatars": avatars}
        exec(block, names)
        assert names["result"].summary.local_cloaking == 0
        assert names["result"].counts.columns == ["patient_id", "closer", "tied", "cloaking"]


def test_every_file_that_the_readme_points_to_is_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_every_option_that_the_readme_names_is_one():
    known = set()
    for module in (settings, project_settings, k_sweep_settings):
        known |= {option for action in module.parser()._actions for option in action.option_strings}
    spark = {"--py-files", "--archives", "--environment", "--files"}
    named = {option.rstrip("-") for option in re.findall(r"`(--[a-z-]+)", TEXT)}
    assert named - known - spark == set()
