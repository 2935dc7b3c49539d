"""Return the command that repeats a run."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from cloaking.command.settings import Settings
from cloaking.options import Options, Space

_DEFAULTS = {one.name: one.default for owner in (Space, Options, Settings) for one in fields(owner)}


def repeat_with(parameters: Mapping[str, Any], run_date: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the quoted words of the command that repeats a run, and the lines that must be in a --config file.

    Args:
        parameters: the published options of the run, by their names with underscores.
        run_date: the date of the run.
    """
    parameters = dict(parameters) | {"run_date": run_date}
    if parameters.get("by_position"):
        parameters.pop("id", None)  # the rows are numbered, and --id would be refused
    arguments, toml = ["local-cloaking"], []
    for key, value in parameters.items():
        if value is None or value is False or value == _DEFAULTS.get(key):
            continue
        if key == "jdbc":
            toml += [f"jdbc.{json.dumps(name)} = {_toml(block)}" for name, block in value.items()]
            continue
        if key == "gates" or (_is_list(value) and any("," in str(one) for one in value)):
            toml.append(f"{key} = {_toml(value)}")
            continue
        option = f"--{key.replace('_', '-')}"
        if value is True:
            arguments.append(option)
            continue
        text = ",".join(map(str, value)) if _is_list(value) else _plain(value)
        arguments += [f"{option}={text}"] if text.startswith("-") else [option, text]
    if toml:
        arguments += ["--config", "FILE.toml"]
    return tuple(map(shlex.quote, arguments)), tuple(toml)


def _toml(value: Any) -> str:
    """Return a value as TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if _is_list(value):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _plain(value: Any) -> str:
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
