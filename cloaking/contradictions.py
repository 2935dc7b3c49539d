"""Settings of a run, as given -> what they lack and where they exclude each other, a line each."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cloaking.addresses import published
from cloaking.figures import Rule

LONGEST_NAME = 250  # bytes of a folder's name, without `name=`
FOLDER_SIGN = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")  # takes three bytes there


def contradictions(values: Mapping[str, Any]) -> list[str]:
    """Return what the settings lack and where they exclude each other; `values` holds those that were given."""
    problems = [f"--{name} is missing" for name in ("originals", "avatars") if name not in values]
    if "output" not in values and not values.get("dry_run"):
        problems.append("--output is missing: the folder of the report (or give --dry-run)")
    return [
        *problems,
        *_link_problems(values),
        *_space_problems(values),
        *_result_problems(values),
        *_gate_problems(values),
    ]


def _link_problems(values: Mapping[str, Any]) -> list[str]:
    """Return where the key and the ways to say the link exclude each other."""
    problems = []
    ways = [name for name in ("made_from", "link", "by_position") if values.get(name)]
    if len(ways) > 1:
        problems.append(f"only one of {', '.join('--' + way.replace('_', '-') for way in ways)} can say the link")
    key, made_from = values.get("id", ("id",)), values.get("made_from")
    if made_from is not None and len(made_from) != len(key):
        problems.append(f"--made-from names {len(made_from)} column(s), --id {len(key)}: they must match one by one")
    if "link" in values and len(key) != 1:
        problems.append("--link works with a key of one column; put a single key into both tables")
    if "by_position" in values and "id" in values and values["by_position"]:
        problems.append("--by-position numbers the rows itself; leave --id out")
    for option in ("id", "made_from", "components"):
        repeated = {name for name in values.get(option) or () if values[option].count(name) > 1}
        if repeated:
            problems.append(f"--{option.replace('_', '-')} names {', '.join(sorted(repeated))} more than once")
    keys = {name.casefold() for name in key}
    chosen = [name for name in values.get("components") or () if name.casefold() in keys]
    if chosen:
        problems.append(f"--components names '{', '.join(chosen)}', which is the key; leave it out")
    return problems


def _space_problems(values: Mapping[str, Any]) -> list[str]:
    """Return what is asked of a projection without one, and what one lacks."""
    if "project" not in values:
        fitting = ("continuous", "categorical", "drop", "missing_continuous", "missing_categorical", "unseen")
        return [f"--{name.replace('_', '-')} is about --project" for name in fitting if name in values]
    problems = ["--project needs --ncp, the number of components to keep"] if "ncp" not in values else []
    return problems + (["--components are of projected tables; leave it out"] if "components" in values else [])


def _result_problems(values: Mapping[str, Any]) -> list[str]:
    """Return what is said of results that are not asked for, and a name that a history cannot keep."""
    problems = []
    if values.get("overwrite") and "counts" not in values:
        problems.append("--overwrite is about --counts, which is not given")
    if "compare_last" in values and "history" not in values:
        problems.append("--compare-last needs --history, which holds the last run")
    originals = values.get("originals", "")
    if "history" in values and not values.get("name") and published(originals) != originals:
        problems.append("--history needs --name: --originals is an address that is not published whole")
    folder = FOLDER_SIGN.sub("%00", values.get("name") or published(originals))
    if "history" in values and len(folder.encode()) > LONGEST_NAME:
        problems.append(f"--name is too long for a history, which has a folder of it: at most {LONGEST_NAME} bytes")
    return problems


def _gate_problems(values: Mapping[str, Any]) -> list[str]:
    """Return where rules are about the same figure twice, or about groups that nobody asked for."""
    rules: Sequence[Rule] = values.get("gates", ())
    asked: list[tuple[str, str | None]] = [
        (metric, None) for metric in ("local_cloaking", "hidden_rate") if f"min_{metric}" in values
    ]
    asked += [(rule.metric, rule.group) for rule in rules]
    problems = [
        f"gates: there are several rules on {metric}{f' of the group {group}' if group else ''}; keep one"
        for metric, group in dict.fromkeys(asked)
        if asked.count((metric, group)) > 1
    ]
    if any(rule.group is not None for rule in rules) and "group_by" not in values:
        problems.append("gates: a rule on a group needs --group-by")
    return problems
