"""Projection on Spark, against an exact SVD of the dense scaled columns, published counts and what must be refused."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from cloaking import projection
from cloaking.errors import InputError, SettingsError
from cloaking.kernel.index import AvatarIndex
from cloaking.options import Space
from cloaking.tables import read


def raw(rows=200, seed=0):
    """A raw table: two numbers, a text and a boolean."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "age": age,
            "weight": np.round(rng.normal(70, 12, rows) + age / 9, 1),
            "site": rng.choice(["north", "south", "east"], rows, p=[0.5, 0.3, 0.2]),
            "smoker": rng.random(rows) < age / 120,
        }
    )


def scaled(frame, numbers, categories):
    """The dense columns of the formulas: (n, p)."""
    columns = [(frame[name] - frame[name].mean()) / frame[name].std(ddof=0) for name in numbers]
    for name in categories:
        for level in sorted(frame[name].astype(str).unique()):
            has = frame[name].astype(str) == level
            columns.append((has - has.mean()) / np.sqrt(has.mean()))
    return np.column_stack(columns)


def coordinates(table, model, **options):
    """The projected table as a matrix in the order of id: (n, ncp)."""
    frame = projection.transform(table, model, keep=["id"], **options).toPandas().sort_values("id")
    assert list(frame.columns) == ["id", *model.components]
    return frame[list(model.components)].to_numpy()


def codes(notices):
    return [notice.code for notice in notices]


@pytest.fixture(scope="module")
def originals(spark):
    return spark.createDataFrame(raw())


@pytest.fixture(scope="module")
def model(originals):
    return projection.fit(originals, Space(ncp=3), keys=["id"])


@pytest.mark.parametrize(
    "method, numbers, categories, scale",
    [
        ("famd", ["age", "weight"], ["site", "smoker"], 1),
        ("pca", ["age", "weight"], [], 1),
        ("mca", [], ["site", "smoker"], 2),
    ],
)
def test_coordinates_are_those_of_an_exact_svd(originals, method, numbers, categories, scale):
    z = scaled(raw(), numbers, categories)
    _, singular, v = np.linalg.svd(z / np.sqrt(len(z)), full_matrices=False)
    drop = [name for name in ("age", "weight", "site", "smoker") if name not in numbers + categories]
    model = projection.fit(originals, Space(ncp=2, drop=drop), keys=["id"])  # auto
    assert model.method == method
    np.testing.assert_allclose(model.eigenvalues[:2], singular[:2] ** 2 / scale, rtol=1e-12)
    expected = np.abs(z @ v[:2].T) / np.sqrt(scale)
    np.testing.assert_allclose(np.abs(coordinates(originals, model)), expected, atol=1e-12)


def test_the_model_says_how_each_column_is_scaled(originals, model):
    frame = raw()
    assert [each.name for each in model.continuous] == ["age", "weight"]
    assert model.continuous[0].mean == pytest.approx(frame["age"].mean(), rel=1e-15)
    assert model.continuous[1].std == pytest.approx(frame["weight"].std(ddof=0), rel=1e-14)
    site, smoker = model.categorical
    assert site.levels == ("east", "north", "south") and smoker.levels == ("false", "true")
    assert site.proportions == tuple((frame["site"] == level).mean() for level in site.levels)
    assert (site.type, smoker.type) == ("string", "boolean")
    assert (model.rows, model.rank, model.missing_continuous) == (200, 5, "error")
    assert set(model.versions) == {"cloaking", "python", "spark", "numpy"}


def test_a_given_model_gives_a_row_the_same_bits_in_any_partitioning(originals, model):
    whole = coordinates(originals.coalesce(1), model)
    for parts in (7, 64):
        assert np.array_equal(coordinates(originals.orderBy(F.rand(parts)).repartition(parts), model), whole)


def test_a_new_fit_in_any_partitioning_gives_the_same_counts(spark):
    # Originals on a coarse grid and midpoints of them: many true ties.
    frame = raw(150)
    frame["weight"] = np.round(frame["weight"] / 10) * 10
    pairs = [frame[["age", "weight"]].to_numpy()[np.random.default_rng(k).permutation(150)] for k in (1, 2)]
    others = frame.assign(**dict(zip(("age", "weight"), sum(pairs).T / 2, strict=True)))
    sides = [spark.createDataFrame(each) for each in (frame, others)]
    found = []
    for parts in (1, 7, 64):
        shuffled = [side.orderBy(F.rand(parts)).repartition(parts) for side in sides]
        model = projection.fit(shuffled[0], Space(ncp=3), keys=["id"])
        x, y = (coordinates(side, model) for side in shuffled)
        found.append(AvatarIndex(y).count(x, y))
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert np.any(np.diff(found[0], axis=0) > 1)  # ties there are


def test_many_modalities_and_columns_without_indicators(spark):
    rows = 3000
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"id": np.arange(rows), "code": (rng.permutation(rows) % 300).astype(str)})
    for i in range(40):
        frame[f"x{i}"] = rng.normal(size=rows)
    table = spark.createDataFrame(frame).repartition(3)
    model = projection.fit(table, Space(ncp=4), keys=["id"])
    z = scaled(frame, [f"x{i}" for i in range(40)], ["code"])
    eigenvalues = np.linalg.eigvalsh(z.T @ z / rows)[::-1]
    np.testing.assert_allclose(model.eigenvalues[:10], eigenvalues[:10], rtol=1e-12)
    assert len(model.eigenvalues) == 340 and model.rank == 339


def test_key_columns_keep_their_names_types_and_values(spark, model):
    table = spark.createDataFrame(raw(3)).select(
        "*", (F.col("id") + 2**60).alias("a `key`.1"), F.lit("x").alias("Group"), F.lit(None).cast("int").alias("none")
    )
    found = projection.transform(table, model, keep=["a `key`.1", "Group", "none"])
    assert found.columns == ["a `key`.1", "Group", "none", "dim_1", "dim_2", "dim_3"]
    assert [field.dataType for field in found.schema][:3] == [T.LongType(), T.StringType(), T.IntegerType()]
    rows = found.collect()
    assert sorted(row[0] - 2**60 for row in rows) == [0, 1, 2] and {row[2] for row in rows} == {None}
    with pytest.raises(InputError, match="'Dim_2' has the name of a coordinate"):
        projection.transform(table.withColumnRenamed("Group", "Dim_2"), model, keep=["Dim_2"])


# Roles


def test_named_roles_win_over_types_and_few_values_are_only_hinted_at(spark):
    frame = raw().assign(arm=lambda d: d["id"] % 4)
    table = spark.createDataFrame(frame)
    assumed = projection.fit(table, Space(ncp=2), keys=["id"])
    assert "arm" in [each.name for each in assumed.continuous]
    assert codes(assumed.warnings) == ["few_values"] and "'arm'; if they are codes" in assumed.warnings[0].message
    named = projection.fit(table, Space(ncp=2, categorical=("arm",)), keys=["id"])
    assert {each.name: each.levels for each in named.categorical}["arm"] == ("0", "1", "2", "3")
    assert named.warnings == () == projection.fit(table, Space(ncp=2, continuous=("arm",)), keys=["id"]).warnings


def test_everything_wrong_with_the_columns_is_said_at_once(spark):
    table = spark.createDataFrame(
        [(1, datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1), [1], "a", True)],
        "id int, born date, seen timestamp, list array<int>, name string, flag boolean",
    )
    with pytest.raises(InputError) as error:
        projection.fit(
            table,
            Space(
                ncp=1,
                continuous=(
                    "flag",
                    "nme",
                ),
                categorical=("NAME",),
                drop=("flag",),
            ),
            keys=["id"],
        )
    assert error.value.problems == (
        "originals: column 'nme' is missing; look at --continuous",
        "originals: column 'NAME' is missing, but there is 'name'; write it alike",
        "column 'flag' is named in more than one of --continuous, --categorical, --drop, key; name it once",
        "originals: column 'born' is date, which has no role; "
        "cast it to a number of days in both tables, or name it in --categorical or --drop",
        "originals: column 'seen' is timestamp, which has no role; "
        "cast it to a number of seconds or to text in both tables, or name it in --drop",
        "originals: column 'list' is array<int>, which has no role; cast it in both tables, or name it in --drop",
    )


def test_a_method_that_has_no_place_for_a_column_is_refused(originals):
    with pytest.raises(InputError, match=r"pca takes numbers only, and these are none: site, smoker; .*or use famd"):
        projection.fit(originals, Space(ncp=2, method="pca"), keys=["id"])
    with pytest.raises(InputError, match=r"mca takes categories only, and these are none: age, weight"):
        projection.fit(originals, Space(ncp=2, method="mca"), keys=["id"])
    with pytest.raises(SettingsError, match="method is 'tsne'"):
        projection.fit(originals, Space(ncp=2, method="tsne"), keys=["id"])


def test_constant_columns_are_left_out_with_a_warning_and_may_be_missing_elsewhere(originals, model):
    table = originals.select("*", F.lit(7.5).alias("same"), F.lit("x").alias("word"))
    found = projection.fit(table, Space(ncp=3), keys=["id"])
    assert found.constant == ("same", "word") and codes(found.warnings) == ["constant_columns"]
    assert found.continuous == model.continuous and found.categorical == model.categorical
    assert projection.check(originals, found) == ()
    with pytest.raises(InputError, match="every column holds one value"):
        projection.fit(table.select("same", "word"), Space(ncp=1))


def test_more_components_than_the_rank_are_refused(originals):
    with pytest.raises(
        InputError, match="originals: --ncp 6 is above the rank of the columns, 5; give --ncp 5 or less"
    ):
        projection.fit(originals, Space(ncp=6), keys=["id"])


def test_axes_that_are_not_unique_are_warned_of(spark):
    square = spark.createDataFrame([(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)], "a double, b double")
    assert "axes_not_unique" in codes(
        projection.fit(
            square,
            Space(
                ncp=1,
                continuous=(
                    "a",
                    "b",
                ),
            ),
        ).warnings
    )
    assert (
        projection.fit(
            square,
            Space(
                ncp=2,
                continuous=(
                    "a",
                    "b",
                ),
            ),
        ).warnings
        == ()
    )


def test_a_column_of_keys_is_no_category(spark):
    table = spark.range(5000).select(F.col("id").cast("string").alias("key"), F.col("id").alias("x"))
    with pytest.raises(InputError, match=r"column 'key' has more modalities than the 4,096 columns"):
        projection.fit(table.repartition(3), Space(ncp=1))


# Missing values


@pytest.fixture(scope="module")
def gaps(spark):
    table = spark.createDataFrame(raw())
    holes = F.when(F.col("id") % 10 == 1, F.lit(None)).when(F.col("id") % 10 == 2, F.lit(float("nan")))
    return table.withColumn("weight", holes.otherwise(F.col("weight"))).withColumn(
        "site", F.when(F.col("id") % 8 != 0, F.col("site"))
    )


def test_missing_values_are_refused_with_columns_counts_and_the_fix(gaps):
    with pytest.raises(InputError) as error:
        projection.fit(gaps, Space(ncp=2), keys=["id"], label="originals 'x'")
    assert error.value.problems == (
        "originals 'x': column 'weight' is missing (null or NaN) in 40 of 200 rows; "
        "fill it, or give --missing-continuous mean or drop-rows",
        "originals 'x': column 'site' is missing (null) in 25 of 200 rows; "
        "fill it, or give --missing-categorical level, which makes missing a modality of its own",
    )


def test_missing_values_can_be_filled_and_be_a_modality(gaps):
    model = projection.fit(gaps, Space(ncp=3, missing_continuous="mean", missing_categorical="level"), keys=["id"])
    frame = raw()
    frame.loc[frame["id"] % 10 == 1, "weight"] = np.nan
    frame.loc[frame["id"] % 10 == 2, "weight"] = np.nan
    frame["weight"] = frame["weight"].fillna(frame["weight"].mean())
    frame.loc[frame["id"] % 8 == 0, "site"] = "~missing"  # sorts last, as a missing one does
    z = scaled(frame, ["age", "weight"], ["site", "smoker"])
    _, singular, v = np.linalg.svd(z / np.sqrt(len(z)), full_matrices=False)
    np.testing.assert_allclose(model.eigenvalues[:6], singular[:6] ** 2, rtol=1e-12)
    np.testing.assert_allclose(np.abs(coordinates(gaps, model)), np.abs(z @ v[:3].T), atol=1e-12)
    assert codes(model.warnings) == ["missing_filled", "missing_level"]
    assert "'weight' 40" in model.warnings[0].message and "'site' 25" in model.warnings[1].message
    assert model.categorical[0].levels == ("east", "north", "south", None)
    assert projection.Model.from_json(model.to_json()) == model
    assert codes(projection.check(gaps, model)) == ["missing_filled", "missing_level"]


def test_rows_with_missing_numbers_can_be_left_out(gaps):
    table = gaps.drop("site")
    model = projection.fit(table, Space(ncp=2, missing_continuous="drop-rows"), keys=["id"])
    whole = projection.fit(table.dropna(), Space(ncp=2), keys=["id"])
    assert (model.rows, model.eigenvalues) == (160, whole.eigenvalues)
    assert "40 of 200 rows are left out" in model.warnings[0].message
    assert np.array_equal(coordinates(table, model), coordinates(table.dropna(), whole))
    assert codes(projection.check(table, model)) == ["rows_left_out"]


def test_infinite_and_immense_numbers_are_refused(originals):
    for value, problem in ((float("-inf"), "is infinite in 1 of 200 rows"), (1e300, "too large or too small")):
        table = originals.withColumn("weight", F.when(F.col("id") == 3, F.lit(value)).otherwise(F.col("weight")))
        with pytest.raises(InputError, match=f"column 'weight' .*{problem}"):
            projection.fit(table, Space(ncp=2, missing_continuous="mean"), keys=["id"])


# The other table


def test_what_the_model_needs_must_be_there_with_its_type(originals, model):
    table = originals.drop("site").withColumn("age", F.col("age").cast("string"))
    with pytest.raises(InputError) as error:
        projection.check(table, model, label="avatars 'y'")
    assert error.value.problems == (
        "avatars 'y': column 'site' is missing; the model needs it; add it, or fit the model without it",
        "avatars 'y': column 'age' is string, not a number; cast it in both tables, or name it in --drop",
    )


def test_unseen_modalities_are_refused_or_add_nothing(originals, model):
    table = originals.withColumn("site", F.when(F.col("id") < 3, "secret").otherwise(F.col("site")))
    with pytest.raises(
        InputError, match=r"'site' holds 1 modalities in 3 of 200 rows that the originals lack"
    ) as error:
        projection.check(table, model)
    assert "secret" not in str(error.value) and "--unseen ignore" in str(error.value)
    with pytest.raises(Exception, match=r"projection\.check refuses this table"):
        projection.transform(table, model).collect()
    assert codes(projection.check(table, model, unseen="ignore")) == ["unseen_ignored"]
    found, without = coordinates(table, model, unseen="ignore"), coordinates(originals, model)
    assert np.array_equal(found[3:], without[3:]) and not np.allclose(found[:3], without[:3])
    loadings = dict(zip(model.categorical[0].levels, model.categorical[0].axes, strict=True))
    shares = dict(zip(model.categorical[0].levels, model.categorical[0].proportions, strict=True))
    part = np.array([np.array(loadings[site]) / np.sqrt(shares[site]) for site in raw()["site"][:3]])
    np.testing.assert_allclose(without[:3] - found[:3], part, atol=1e-14)


@pytest.mark.parametrize(
    "name, ours, theirs",
    [
        ("id", "string", "double"),
        ("id", "double", "string"),
        ("smoker", "boolean", "int"),
        ("smoker", "int", "boolean"),
    ],
)
def test_modalities_that_match_but_for_their_type_are_refused_even_where_unseen_ones_are_ignored(
    originals, name, ours, theirs
):
    table = originals.withColumn("arm", (F.col("id") % 3 if name == "id" else F.col("smoker").cast("int")))
    first, second = (table.withColumn("arm", F.col("arm").cast(kind)) for kind in (ours, theirs))
    model = projection.fit(first, Space(ncp=2, categorical=("arm",)), keys=["id"])
    with pytest.raises(InputError, match=f"the types differ \\({ours} among the originals, {theirs} here\\)"):
        projection.check(second, model, unseen="ignore")
    assert projection.check(first, model) == ()


def test_whole_numbers_of_any_integer_type_and_their_text_are_the_same_category(originals):
    kinds = ("int", "bigint", "string", "decimal(5,0)")
    sides = [originals.withColumn("arm", (F.col("id") % 3).cast(kind)) for kind in kinds]
    model = projection.fit(sides[0], Space(ncp=2, categorical=("arm",)), keys=["id"])
    for side in sides[1:]:
        assert projection.check(side, model) == ()


# Real data (skipped where it is absent)


def counts(originals, avatars, model):
    x, y = (coordinates(table, model) for table in (originals, avatars))
    closer, within = AvatarIndex(y).count(x, y)
    return closer, within - 1 - closer


@pytest.mark.parametrize(
    "data, name, ncp, rank", [("aids_prepared", "aids_famd_nf5", 5, 28), ("wbcd_raw", "wbcd_famd_nf2", 2, 10)]
)
def test_real_data_has_its_published_counts_and_eigenvalues(spark, reference_data, data, name, ncp, rank):
    known = json.loads((reference_data / f"{name}_model.json").read_text())
    categorical = known["categorical"]
    sides = [
        read.read_table(spark, f"csv:{reference_data}/{data}_{side}.csv", side, text=categorical).repartition(parts)
        for side, parts in (("originals", 7), ("avatars", 2))
    ]
    model = projection.fit(sides[0], Space(ncp=ncp, categorical=categorical), keys=["id"])
    projection.check(sides[1], model)
    assert model.rank == rank
    np.testing.assert_allclose(model.eigenvalues[:rank], known["eigenvalues"][:rank], rtol=1e-12)
    expected = pd.read_csv(reference_data / f"{name}_counts.csv").sort_values("id")
    closer, tied = counts(*sides, model)
    assert np.array_equal(closer, expected["closer"]) and np.array_equal(tied, expected["tied"])


# saiph 3.0.2: fit(originals) without nf, transform(either); first two axes of the rows with id 1 and 682, but for sign.
SAIPH = {
    "mca": (
        [[0.51030677688, 0.519140415336], [1.05676523222, 0.19613338888]],
        [[0.213517899536, 0.705120421191], [0.808140104808, 0.342498177169]],
    ),
    "pca": (
        [[1.0927526685, 0.367917400455], [2.94612892335, 1.14528795848]],
        [[0.0652314482021, 0.153847870614], [2.34563469571, 0.584219336322]],
    ),
}


@pytest.mark.parametrize("method", SAIPH)
def test_real_data_has_the_coordinates_of_an_independent_implementation(spark, reference_data, method):
    names = (reference_data / "wbcd_raw_originals.csv").open().readline().strip().split(",")[1:]
    text = names if method == "mca" else []
    sides = [
        read.read_table(spark, f"csv:{reference_data}/wbcd_raw_{side}.csv", side, text=text)
        for side in ("originals", "avatars")
    ]
    model = projection.fit(sides[0], Space(ncp=2, method=method), keys=["id"])
    for side, expected in zip(sides, SAIPH[method], strict=True):
        np.testing.assert_allclose(np.abs(coordinates(side, model)[[1, 682]]), expected, atol=1e-9)


def test_a_table_without_rows_is_refused(originals, model):
    with pytest.raises(InputError, match="originals: has no rows to project"):
        projection.fit(originals.where("id < 0"), Space(ncp=1), keys=["id"])
    with pytest.raises(InputError, match="avatars: has no rows to project"):
        projection.check(originals.limit(0), model)
