"""Axes and model without Spark, against an exact SVD of the dense scaled columns."""

import json

import numpy as np
import pytest

from cloaking.errors import InputError
from cloaking.projection.axes import Sums, solve
from cloaking.projection.model import Model, Parts, categories, numbers
from cloaking.projection.moments import Frame, add, centre_and_unit
from cloaking.results import Notice


def dense(values, codes, sizes):
    """The scaled columns themselves, as the formulas have them: (n, p)."""
    columns = [(x - x.mean()) / x.std() for x in values]
    for code, size in zip(codes, sizes, strict=True):
        for level in range(size):
            share = np.mean(code == level)
            columns.append(((code == level) - share) / np.sqrt(share))
    return np.column_stack(columns)


def fitted(values, codes, sizes, ncp, method="famd", blocks=1):
    """A model of these columns, summed in so many blocks."""
    scales = [centre_and_unit(x.mean(), x.min(), x.max()) for x in values]
    centre, unit = np.array(scales).reshape(-1, 2).T
    levels = tuple(tuple(f"level {k}" for k in range(size)) for size in sizes)
    frame = Frame(centre, unit, centre, levels)
    p, n = int(frame.offsets[-1]), len((values + codes)[0])
    totals, products = np.zeros(len(values)), np.zeros((p, p))
    for rows in np.array_split(np.arange(n), blocks):
        z = np.array([(x[rows] - c) / u for x, c, u in zip(values, centre, unit, strict=True)]).reshape(-1, len(rows))
        add(totals, products, z, [code[rows] for code in codes], frame)
    axes = solve(Sums(n, centre, unit, totals, products), ncp, len(codes) if method == "mca" else None)
    return Model(
        method=method,
        ncp=ncp,
        rows=n,
        rank=axes.rank,
        eigenvalues=tuple(axes.eigenvalues.tolist()),
        continuous=numbers([f"x{i}" for i in range(len(values))], axes),
        categorical=categories([(f"c{i}", "string") for i in range(len(codes))], levels, axes),
        constant=(),
        missing_continuous="error",
        missing_categorical="error",
        warnings=(Notice("few_values", "a hint"),),
        versions={"cloaking": "0"},
    ), axes  # fmt: skip


@pytest.fixture
def columns():
    rng = np.random.default_rng(1)
    values = [rng.normal(40, 9, 300), rng.lognormal(3, 1, 300), 1.7e9 + rng.integers(0, 86_400, 300) * 1.0]
    codes = [rng.integers(0, 3, 300), (values[0] > 40).astype(np.intp), rng.integers(0, 5, 300)]
    return values, codes, [3, 2, 5]


def test_eigenvalues_and_coordinates_are_those_of_an_exact_svd(columns):
    z = dense(*columns)
    _, singular, v = np.linalg.svd(z / np.sqrt(len(z)), full_matrices=False)
    model, _ = fitted(*columns, ncp=4)
    np.testing.assert_allclose(model.eigenvalues[:10], singular[:10] ** 2, rtol=1e-12)
    assert model.rank == 10  # 3 numbers, 10 modalities of 3 variables
    found = Parts.of(model).coordinates(*columns[:2]).T
    np.testing.assert_allclose(np.abs(found), np.abs(z @ v[:4].T), atol=1e-12)


def test_every_pair_of_modalities_is_counted_however_many_a_column_has():
    sizes = [2, 9, 3, 7, 5, 6]  # few and many in turn, in blocks that are no multiple of the rows taken at a time
    rng = np.random.default_rng(6)
    codes = [np.append(np.arange(size), rng.integers(0, size, 3000 - size)) for size in sizes]
    values = [rng.normal(size=3000) + codes[1], rng.normal(size=3000)]
    z = dense(values, codes, sizes)
    model, _ = fitted(values, codes, sizes, 3, blocks=2)
    np.testing.assert_allclose(model.eigenvalues, np.linalg.eigvalsh(z.T @ z / len(z))[::-1], atol=1e-13)


def test_blocks_add_up_to_the_same_axes(columns):
    one, many = (fitted(*columns, ncp=4, blocks=blocks)[0] for blocks in (1, 37))
    np.testing.assert_allclose(one.eigenvalues, many.eigenvalues, atol=1e-14)
    for a, b in zip(one.categorical, many.categorical, strict=True):
        assert a.proportions == b.proportions  # counts are exact
        np.testing.assert_allclose(a.axes, b.axes, atol=1e-12)


def test_sums_of_whole_numbers_do_not_depend_on_blocks_at_all():
    x = np.random.default_rng(2).integers(0, 1000, 500).astype(float)
    code = np.arange(500) % 3
    assert fitted([x], [code], [3], 2, blocks=1)[0] == fitted([x], [code], [3], 2, blocks=13)[0]


def test_a_column_of_epoch_seconds_keeps_its_variance():
    x = 1.7e9 + np.arange(1000.0) % 60
    model, _ = fitted([x, np.arange(1000.0)], [], [], 1)
    assert model.continuous[0].std == pytest.approx(np.std(np.arange(1000) % 60), rel=1e-14)


def test_mca_is_the_row_profile_over_the_root_of_the_column_masses_on_the_axes_of_its_centred_matrix():
    codes = [np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 1, 1, 0, 1, 0, 0, 1])]
    model, axes = fitted([], codes, [3, 2], 2, "mca")
    x = (
        np.column_stack([code == level for code, size in zip(codes, (3, 2), strict=True) for level in range(size)])
        * 1.0
    )
    n, q = len(x), 2
    c = x.sum(axis=0) / (n * q)
    matrix = x.T @ x / (n * q**2) / np.sqrt(np.outer(c, c)) - np.sqrt(np.outer(c, c))
    np.testing.assert_allclose(model.eigenvalues, np.linalg.eigvalsh(matrix)[::-1], atol=1e-14)
    np.testing.assert_allclose(matrix @ axes.axes, axes.axes * axes.eigenvalues[:2], atol=1e-14)
    expected = x / q / np.sqrt(c) @ axes.axes
    np.testing.assert_allclose(Parts.of(model).coordinates([], codes).T, expected, atol=1e-14)


def test_an_unseen_modality_adds_nothing_and_the_number_of_variables_stays():
    codes = [np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 1, 1, 0, 1, 0, 0, 1])]
    parts = Parts.of(fitted([], codes, [3, 2], 2, "mca")[0])
    whole = parts.coordinates([], [np.array([1]), np.array([0])])
    first, second = (parts.coordinates([], [np.array([a]), np.array([b])]) for a, b in ((1, 2), (3, 0)))
    np.testing.assert_allclose(first + second, whole, atol=1e-15)


def test_a_missing_number_takes_the_mean_where_that_is_asked_for(columns):
    values, codes, sizes = columns
    model, _ = fitted(values, codes, sizes, 3)
    gap = [np.array([np.nan]), *(x[:1] for x in values[1:])]
    mean = [np.array([model.continuous[0].mean]), *gap[1:]]
    first = [code[:1] for code in codes]
    assert np.array_equal(Parts.of(model).coordinates(gap, first, fill=True), Parts.of(model).coordinates(mean, first))
    assert np.isnan(Parts.of(model).coordinates(gap, first)).all()


def test_a_row_has_the_same_bits_in_any_batch(columns):
    values, codes, sizes = columns
    parts = Parts.of(fitted(values, codes, sizes, 5)[0])
    whole = parts.coordinates(values, codes)
    for rows in (slice(7, 8), slice(3, 300, 7), np.random.default_rng(3).permutation(300)):
        assert np.array_equal(whole[:, rows], parts.coordinates([x[rows] for x in values], [c[rows] for c in codes]))


def test_the_largest_loading_of_each_axis_is_positive(columns):
    axes = fitted(*columns, ncp=6)[1].axes
    assert (axes[np.argmax(np.abs(axes), axis=0), range(6)] > 0).all()


def test_more_components_than_the_rank_are_refused_with_the_rank():
    x = np.arange(20.0)
    with pytest.raises(InputError, match="--ncp 2 is above the rank of the columns, 1; give --ncp 1 or less"):
        fitted([x, -3 * x], [], [], 2)


def test_equal_eigenvalues_at_the_cut_are_noticed_and_only_there():
    rng = np.random.default_rng(4)
    square = np.array([(a, b, c) for a in (-1.0, 1) for b in (-1.0, 1) for c in (-1.0, 1)]).T
    square[2] += square[1]  # eigenvalues: one on its own, then two that are apart
    assert not fitted(list(np.array([(a, b) for a in (-1.0, 1) for b in (-1.0, 1)]).T), [], [], 1)[1].unique()
    assert fitted(list(square), [], [], 1)[1].unique()
    assert fitted(list(rng.normal(size=(3, 50))), [], [], 3)[1].unique()


def test_explained_variance_is_of_all_the_variance(columns):
    model, _ = fitted(*columns, ncp=10)
    assert sum(model.explained_variance) == pytest.approx(1, abs=1e-14)
    assert sum(model.eigenvalues) == pytest.approx(3 + 10 - 3, rel=1e-14)  # numbers + modalities - variables


def test_a_model_comes_back_from_its_json_bit_by_bit(columns):
    model, _ = fitted(*columns, ncp=3)
    assert Model.from_json(model.to_json()) == model
    document = json.loads(model.to_json())
    assert document["explained_variance"] == list(model.explained_variance)


@pytest.mark.parametrize(
    "change", [lambda d: d.pop("method"), lambda d: d.update(ncp=2), lambda d: d.update(schema_version=0)]
)
def test_what_is_no_model_is_refused_in_one_line(columns, change):
    document = json.loads(fitted(*columns, ncp=3)[0].to_json())
    change(document)
    with pytest.raises(InputError, match=r"^model: .*fit the model again$") as error:
        Model.from_json(json.dumps(document))
    assert len(error.value.problems) == 1
    with pytest.raises(InputError, match="is not a projection model"):
        Model.from_json("nothing")
