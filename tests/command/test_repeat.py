"""The command that a page gives repeats the run."""

import shlex

import pytest

from cloaking.command.repeat import repeat_with
from cloaking.command.settings import parse


def repeated(parameters, run_date="2026-12-01"):
    """Return the words of the command that repeats a run, and the lines of its file."""
    command, toml = repeat_with(parameters, run_date)
    assert " ".join(shlex.quote(word) for word in shlex.split(" ".join(command))) == " ".join(command)
    return shlex.split(" ".join(command))[1:], toml


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"where": "name = 'O''Brien'\n and x > 1", "min_hidden_rate": 90.5, "min_local_cloaking": 6.0},
        {"made_from": ("a b", "c"), "id": ("x", "y"), "components": ("Dim. 1", "Dim. 2"), "ncp": 2},
        {"by_position": True, "name": "-rf $HOME `id`", "tie_tolerance": 0.0},
        {"counts": "parquet:/x", "overwrite": True, "group_by": "region"},
    ],
)
def test_the_command_repeats_the_run(more):
    given = {"originals": "a.b", "avatars": "csv:/c d/e.csv", "output": "/r", **more}
    arguments, toml = repeated(given)
    assert not toml
    found = parse(arguments)
    for name, value in (given | {"run_date": "2026-12-01"}).items():
        holder = found.options if hasattr(found.options, name) else found
        assert getattr(holder, name) == value


def test_what_a_command_line_cannot_say_is_given_as_a_file(tmp_path):
    names = ('a,"b"', "ü")
    arguments, toml = repeated({"originals": "a", "avatars": "b", "output": "/r", "components": names})
    file = tmp_path / "more.toml"
    file.write_text("\n".join(toml), encoding="utf-8")
    assert arguments[-2:] == ["--config", "FILE.toml"]
    assert parse([*arguments[:-1], str(file)]).options.components == names
