"""Who may import whom, read from the imports themselves, and what the library never calls."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "cloaking").rglob("*.py"))
STANDARD = sys.stdlib_module_names
SPARK = {"pyspark", "py4j", "pyarrow", "pandas", "numpy"}

# The rooms from the bottom up: what each may import besides the standard library, and which of the rooms below it.
BASE = {"version", "errors", "names", "addresses", "results", "options"}  # single files, of the standard library alone
ON_SPARK = {"columns", "spark_errors"}  # single files that rooms on Spark share
ROOMS = {
    **{name: (set(), BASE) for name in BASE},
    **dict.fromkeys(ON_SPARK, (SPARK, BASE)),
    "kernel": ({"numpy"}, {"options"}),
    "spark": (SPARK, BASE | ON_SPARK | {"kernel"}),
    "tables": (SPARK, BASE | ON_SPARK),
    "projection": (SPARK, BASE | ON_SPARK),
    "report": ({"jinja2", "matplotlib", "markupsafe"}, BASE),
    "sweep": ({"numpy", "scipy", "matplotlib"}, BASE | {"kernel", "report"}),
    "measure": (SPARK, BASE | ON_SPARK | {"spark", "report"}),
    "__init__": (set(), BASE | {"kernel", "measure"}),  # lazily, and for type checkers
    "command": (SPARK, None),  # all of them; nobody imports the command
}
# What a file of a room may import less than the others, since it is loaded before Spark or without it.
LIGHT = {
    "tables.reference",
    "sweep.results",
    "command.settings",
    "command.project_settings",
    "command.k_sweep_settings",
}
LIGHT |= {"command.parser", "command.config_file", "command.repeat"}


def layer(path):
    """The room that a file belongs to; a single file is one."""
    return path.relative_to(ROOT / "cloaking").with_suffix("").parts[0]


def imports(path):
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names if node.module == "cloaking")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_room_allows(path):
    room = layer(path)
    outside, inside = ROOMS[room]
    own = {layer(other) for other in MODULES}
    light = ".".join(path.relative_to(ROOT / "cloaking").with_suffix("").parts) in LIGHT
    for name in imports(path):
        package, *rest = name.split(".")
        if package != "cloaking":
            assert package in STANDARD or (package in outside and not light), f"{path} imports {name}"
            continue
        target = rest[0] if rest and rest[0] in own else "__init__"
        assert room == target or inside is None or target in inside, f"{path} imports {name}"
        assert target != "command" or room == "command", f"{path} imports a command"


def _modules(path, known):
    """The files of the package that a file imports; a room's own file stands for a name that it exports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom):
            full = [f"{node.module}.{name.name}" for name in node.names]
            yield from (one if one in known else node.module for one in full if one in known or node.module in known)


def test_no_two_files_import_each_other_and_no_room_is_too_large():
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in MODULES}
    below = {name: {one for one in _modules(path, known) if one != name} for name, path in known.items()}
    below["cloaking"] = set()  # its names are loaded when they are first used
    left = dict(below)
    while left:
        free = {name for name, under in left.items() if not under & set(left) - {name}}
        assert free, f"these import each other: {', '.join(sorted(left))}"
        left = {name: under for name, under in left.items() if name not in free}
    assert max(len(path.read_text().splitlines()) for path in MODULES) <= 300


@pytest.mark.parametrize("folder", ["cloaking", "scripts"])
def test_nobody_imports_the_jobs(folder):
    for path in (ROOT / folder).rglob("*.py"):
        assert not any(name.split(".")[0] == "jobs" for name in imports(path)), path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_library_calls_nothing_that_a_cluster_may_refuse_or_that_is_not_exact(path):
    refused = {"cache", "persist", "rdd", "_jvm", "_jsc", "_jdf", "percentile_approx", "approx_percentile"}
    refused |= {"approxQuantile", "approx_count_distinct", "dropDuplicates", "drop_duplicates", "zipWithIndex"}
    if path.name == "warnings.py":
        refused -= {"approx_count_distinct"}  # how many rows differ is told as "about", and no figure rests on it
    attributes = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not attributes & refused


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_sets_spark_settings_and_only_commands_print(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in ("set", "unset"):
            assert not ast.unparse(node.value).endswith("conf"), path
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            assert layer(path) == "command", path


@pytest.mark.parametrize(
    "module",
    [
        "cloaking",
        "cloaking.results",
        "cloaking.tables.reference",
        "cloaking.command.settings",
        "cloaking.command.local_cloaking",
        "cloaking.command.project",
        "cloaking.command.k_sweep",
    ],
)
def test_an_import_loads_neither_spark_nor_numpy(module):
    loaded = f"import sys, {module}; print(*sorted({{'pyspark', 'numpy', 'pandas', 'pyarrow'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("module", ["cloaking.kernel", "cloaking.report", "cloaking.sweep.simulate"])
def test_what_counts_and_what_draws_load_no_spark(module):
    loaded = f"import sys, {module}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_the_package_names_can_be_had_from_it():
    import cloaking

    for name in cloaking.__all__:
        assert getattr(cloaking, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cloaking.nonsense
