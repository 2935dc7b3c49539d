"""Random tables, CSV and TOML files: the figures of the oracle, or an error with its lines, and nothing else."""

import contextlib
import datetime
import decimal
import math
from collections import Counter
from pathlib import Path

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloaking import CloakingError, local_cloaking
from cloaking.command.settings import parse
from cloaking.errors import InputError, SettingsError
from cloaking.tables import read


def profile(examples):
    """The same examples in every run; a session of Spark is shared by all."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None, suppress_health_check=checks)


KEYS = {
    "long": (pa.int64(), int),
    "int": (pa.int32(), int),
    "text": (pa.string(), lambda i: f"k{i}"),
    "date": (pa.date32(), lambda i: datetime.date.fromordinal(730_000 + i)),
    "decimal": (pa.decimal128(9, 2), decimal.Decimal),
    "double": (pa.float64(), float),  # makes no key
}
FAMILY = {"long": "integer", "int": "integer", "double": None}
COMPONENTS = {"double": pa.float64(), "float": pa.float32(), "long": pa.int64(), "text": pa.string()}
GRID = st.integers(-3, 3)  # ties
FINE = st.floats(-1e3, 1e3, width=32)


@st.composite
def pairs(draw):
    """Two tables as columns, with the types of their keys and components, and how to measure them."""
    n, ncp = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    good = draw(st.booleans())
    odd = st.nothing() if good else st.sampled_from([None, math.nan, math.inf])
    whole = draw(st.booleans())
    numbers = GRID if whole else st.one_of(GRID.map(float), FINE)
    key = draw(st.sampled_from(["long", "text"] if good else list(KEYS)))
    kinds = (key, key if good or draw(st.booleans()) else draw(st.sampled_from(list(KEYS))))
    component = draw(st.sampled_from(["double", "float", "long"] if whole else ["double"]))
    if not good and draw(st.integers(0, 9)) == 0:
        component = "text"
    if component == "long":
        odd = st.nothing() if good else st.just(None)

    def coordinates(rows):
        column = st.lists(st.one_of(numbers, numbers, numbers, odd), min_size=rows, max_size=rows)
        return [draw(column) for _ in range(ncp)]

    ids = list(range(n))
    unlinked = draw(st.integers(0, 4))
    made_from = draw(st.permutations([*ids, *range(100, 100 + unlinked)]))
    if not good:
        change = draw(st.sampled_from(["none", "null", "repeated", "missing", "none"]))
        if change == "missing":
            made_from = made_from[1:]
        elif change != "none":
            made_from[draw(st.integers(0, len(made_from) - 1))] = None if change == "null" else made_from[0]
    group = draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n)) if draw(st.booleans()) else None
    how = {"strategy": draw(st.sampled_from(["auto", "broadcast", "partition"])), "tasks": draw(st.integers(1, 3))}
    how["cell_rows"] = draw(st.integers(1, 6))
    return kinds, component, (ids, coordinates(n)), (made_from, coordinates(len(made_from))), group, how


def written(path, kind, component, side, group=None):
    """Write one table to a Parquet file."""
    keys, coordinates = side
    key_type, key_of = KEYS[kind]
    columns = {"id": pa.array([None if key is None else key_of(key) for key in keys], type=key_type)}
    for k, values in enumerate(coordinates):
        to = (lambda v: None if v is None else str(v)) if component == "text" else (lambda v: v)
        columns[f"x{k}"] = pa.array([to(value) for value in values], type=COMPONENTS[component])
    if group is not None:
        columns["ward"] = pa.array(group, type=pa.string())
    pq.write_table(pa.table(columns), path)
    return str(path)


def is_wrong(pair):
    """Tell whether the tables hold what cannot be measured, from the columns alone."""
    kinds, component, (ids, xs), (made_from, ys), _, _ = pair
    families = [FAMILY.get(kind, kind) for kind in kinds]
    values = [value for column in (*xs, *ys) for value in column]
    return (
        None in families
        or families[0] != families[1]
        or component == "text"
        or None in made_from
        or any(count > 1 for count in Counter(made_from).values())
        or not set(ids) <= set(made_from)
        or any(value is None or not math.isfinite(value) for value in values)
    )


def check(spark, folder, pair):
    kinds, component, (ids, xs), (made_from, ys), group, how = pair
    originals = spark.read.parquet(written(folder / "originals.parquet", kinds[0], component, (ids, xs), group))
    avatars = spark.read.parquet(written(folder / "avatars.parquet", kinds[1], component, (made_from, ys)))
    options = how if group is None else {**how, "group_by": "ward"}
    if is_wrong(pair):
        with pytest.raises(InputError) as caught:
            local_cloaking(originals, avatars, **options)
        assert caught.value.problems
        assert all(line.strip() and "\n" not in line for line in caught.value.problems)
        return
    found = local_cloaking(originals, avatars, **options)
    closer, tied, cloaking = oracle.cloaking(
        np.array(ys, dtype=float).T, np.array(xs, dtype=float).T, [made_from.index(key) for key in ids]
    )
    figures = oracle.figures(closer, tied)
    assert found.summary.local_cloaking == figures.local_cloaking
    for rate in ("hidden_rate", "hidden_rate_ties_hide", "hidden_rate_ties_expose"):
        assert getattr(found.summary, rate) == pytest.approx(getattr(figures, rate), rel=1e-12)
    rows = sorted((row.closer, row.tied, row.cloaking) for row in found.counts.collect())
    assert rows == sorted(zip(closer.tolist(), tied.tolist(), cloaking.tolist(), strict=True))


@profile(8)
@given(pair=pairs())
def test_random_tables_give_the_figures_of_the_oracle_or_lines(spark, tmp_path, pair):
    check(spark, tmp_path, pair)


@pytest.mark.slow
@profile(60)
@given(pair=pairs())
def test_many_random_tables_give_the_figures_of_the_oracle_or_lines(spark, tmp_path, pair):
    check(spark, tmp_path, pair)


CELL = st.one_of(
    st.integers(-99, 99).map(str),
    st.sampled_from(["", "1.5", "1,5", "nan", "-inf", "1e400", '"', '""', "\\", "\n", "a b", "é", "'", "2 kg", "\x00"]),
    st.text(max_size=4),
)
LINES = st.lists(st.lists(CELL, min_size=1, max_size=4).map(",".join), min_size=1, max_size=6).map("\n".join)
FILES = st.one_of(
    st.binary(max_size=60), LINES.map(lambda text: ("id,x\n" + text).encode()), LINES.map(lambda text: text.encode())
)


def read_csv(spark, folder, content, whole_files):
    path = folder / "random.csv"
    path.write_bytes(content)
    try:
        table = read.read_table(spark, f"csv:{path}", "originals", text=("id",), by_position=whole_files)
        table.collect()
    except CloakingError as error:
        assert error.problems
        assert all(line.startswith("originals 'csv:") for line in error.problems)


@profile(15)
@given(content=FILES, whole_files=st.booleans())
def test_random_csv_is_read_or_refused_with_lines(spark, tmp_path, content, whole_files):
    read_csv(spark, tmp_path, content, whole_files)


@pytest.mark.slow
@profile(150)
@given(content=FILES, whole_files=st.booleans())
def test_much_random_csv_is_read_or_refused_with_lines(spark, tmp_path, content, whole_files):
    read_csv(spark, tmp_path, content, whole_files)


@profile(10)
@given(rows=st.lists(st.tuples(st.text("ab,\"' é", min_size=1, max_size=5), st.floats(-1e300, 1e300)), min_size=1))
def test_csv_in_the_dialect_is_read_as_it_was_written(spark, tmp_path, rows):
    lines = [f'"{key.replace(chr(34), chr(34) * 2)}",{value!r}' for key, value in rows]
    (tmp_path / "good.csv").write_text("\n".join(["id,x", *lines]) + "\n")
    table = read.read_table(spark, f"csv:{tmp_path}/good.csv", "originals", text=("id",))
    assert sorted((row.id, row.x) for row in table.collect()) == sorted(rows)


NAMES = st.sampled_from(
    ["originals", "avatars", "output", "id", "ncp", "where", "gates", "conf", "reports", "jdbc", "run_date", "dry_run",
     "tie_tolerance", "min_hidden_rate", "strategy", "history", "counts", "link", "group_by", "nonsense", "project"]
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["true", "'a'", "''", "'${HOME}'", "'${NOT_SET}'", "'jdbc:a'", "1e999", "nan", "-inf", "0x1F"]),
        st.sampled_from(["2026-11-01", "2026-11-01T00:00:00Z", "07:00:00", "'2026-13-01'", "'auto'", "'\\u0000'"]),
        st.integers().map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.3f}"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(
            st.sampled_from(["metric", "at_least", "group", "url", "table", "partitions", "a"]), inner, max_size=3
        ).map(lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items.items()) + "}"),
    ),
    max_leaves=4,
)
TOML = st.dictionaries(NAMES, VALUES, max_size=6).map(lambda items: "\n".join(f"{k} = {v}" for k, v in items.items()))


@profile(300)
@given(content=st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode), TOML.map(str.encode)))
def test_a_random_config_file_is_read_or_refused_with_lines(tmp_path, content):
    path = tmp_path / "random.toml"
    path.write_bytes(content)
    for bare in ((), ("--originals", "a", "--avatars", "b", "--output", "c")):
        read_config("--config", str(path), *bare)
        read_config("--config", str(path), "--report", "a", *bare)


def read_config(*argv):
    try:
        found = parse(argv)
    except SettingsError as error:
        assert error.problems
        return
    assert isinstance(found.originals, str)
    assert found.options.ncp is None or found.options.ncp >= 1
    assert isinstance(found.options.id, tuple)


@profile(200)
@given(argv=st.lists(st.one_of(st.text(max_size=8), NAMES.map(lambda name: f"--{name.replace('_', '-')}")), max_size=6))
def test_a_random_command_line_is_read_or_refused_with_lines(argv):
    with contextlib.suppress(SystemExit, SettingsError):  # --help and --version end with 0
        assert Path(parse(argv).originals)
