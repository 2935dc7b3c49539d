"""Who may import whom, read from the imports themselves, and what the library never calls."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "cloaking").rglob("*.py"))
STANDARD = sys.stdlib_module_names
NUMERIC = {"kernel", "tree", "sieve", "cells"}
SPARK = {"pyspark", "py4j", "pyarrow", "pandas", "numpy"}

# Module -> what it may import besides the standard library and the package; None is everything. Those that are not
# here may use Spark and what it needs.
ALLOWED = {
    "__init__": set(),
    "addresses": set(),
    "errors": set(),
    "figures": set(),
    "options": set(),
    "config": set(),
    "contradictions": set(),
    "config_file": set(),
    "project_config": set(),
    "sweep_config": set(),
    "kernel": {"numpy"},
    "sieve": {"numpy"},
    "tree": {"numpy"},
    "cells": {"numpy"},
    "sweep": {"numpy", "scipy"},
    "report": {"jinja2", "matplotlib", "markupsafe"},
    "command": None,
    "project_command": None,
    "sweep_command": None,
    "running": {"pyspark"},
    "session": None,
}
COMMANDS = {"command", "project_command", "sweep_command"}
# Module -> the modules of the package that it may import; the others may import all but the command.
WITHIN = {
    "__init__": {"errors", "figures", "kernel", "measure"},  # lazily, and for type checkers
    "errors": set(),
    "figures": set(),
    "addresses": set(),
    "options": {"addresses", "errors"},
    "contradictions": {"addresses", "figures"},
    "config": {"__init__", "config_file", "contradictions", "errors", "figures", "options"},
    "config_file": {"addresses", "errors", "figures", "options"},
    "project_config": {"__init__", "config_file", "errors", "options"},
    "sweep_config": {"__init__", "errors", "options"},
    "kernel": {"sieve", "tree"},
    "sieve": {"tree"},
    "tree": set(),
    "cells": {"kernel"},
    "sweep": {"kernel", "tree"},
    "report": {"__init__", "config", "errors", "figures", "report", "sweep"},  # of sweep, the types of its results
}


def layer(path):
    """The module that a file belongs to; a folder is one."""
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
def test_a_module_imports_only_what_its_layer_allows(path):
    module = layer(path)
    allowed, own = ALLOWED.get(module, SPARK), {layer(other) for other in MODULES}
    for name in imports(path):
        package, *rest = name.split(".")
        if package != "cloaking":
            assert allowed is None or package in STANDARD or package in allowed, f"{path} imports {name}"
        else:
            target = rest[0] if rest and rest[0] in own else "__init__"
            assert target not in COMMANDS, f"{path} imports a command"
            assert target in WITHIN.get(module, own), f"{path} imports {name}"


@pytest.mark.parametrize("folder", ["cloaking", "scripts"])
def test_nobody_imports_the_jobs(folder):
    for path in (ROOT / folder).rglob("*.py"):
        assert not any(name.split(".")[0] == "jobs" for name in imports(path)), path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_library_calls_nothing_that_a_cluster_may_refuse_or_that_is_not_exact(path):
    refused = {"cache", "persist", "rdd", "_jvm", "_jsc", "_jdf", "percentile_approx", "approx_percentile"}
    refused |= {"approxQuantile", "approx_count_distinct", "dropDuplicates", "drop_duplicates", "zipWithIndex"}
    if layer(path) == "suspicions":
        refused -= {"approx_count_distinct"}  # how many rows differ is told as "about", and no figure rests on it
    attributes = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    assert not attributes & refused


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nobody_sets_spark_settings_and_only_commands_print(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in ("set", "unset"):
            assert not ast.unparse(node.value).endswith("conf"), path
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            assert layer(path) in {"command", "running"}, path


@pytest.mark.parametrize(
    "statement",
    [
        "import cloaking",
        "import cloaking.command",
        "import cloaking.config",
        "import cloaking.figures",
        "import cloaking.sweep_command",
    ],
)
def test_an_import_loads_neither_spark_nor_numpy(statement):
    loaded = f"import sys; {statement}; print(*sorted({{'pyspark', 'numpy', 'pandas', 'pyarrow'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_report_is_drawn_without_spark():
    loaded = "import sys; import cloaking.report; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_the_package_names_can_be_had_from_it():
    import cloaking

    for name in cloaking.__all__:
        assert getattr(cloaking, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cloaking.nonsense
