"""Any small input, any size of any regime, and any cut of the avatars, made by hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_problems import (
    LARGEST,
    REGIMES,
    SMALLEST,
    TOLERANCES,
    Problem,
    assert_counts,
    loop,
    numpy_warnings_are_errors,
    problem_of,
    reference,
    repeatable,
)

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


EDGES = [0.0, -0.0, SMALLEST, -SMALLEST, 2.0**-1022, 2.0**-401, 2.0**-400, np.nextafter(2.0**-400, 0), 1e-160, 1e-45]
EDGES += [2.0**400, np.nextafter(2.0**400, np.inf), -(2.0**401), 1e160, -1e160, 1e30, -1e39, LARGEST, -LARGEST, 1.0]


VALUES = st.sampled_from(
    [
        st.integers(-3, 3).map(float),
        st.integers(-20, 20).map(lambda tenths: tenths / 10),
        st.integers(-4, 4).map(lambda ulps: 1 + ulps * 2.0**-52),
        st.integers(-4, 4).map(lambda ulps: 1e8 + ulps * 2.0**-26),
        st.integers(-50, 50).map(lambda multiple: multiple * SMALLEST),
        st.floats(-10, 10),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from(EDGES),
        st.one_of(st.sampled_from(EDGES), st.integers(-3, 3).map(float), st.floats(-1, 1)),
    ]
)


@st.composite
def problems(draw):
    """A few rows from one kind of values, with copies of avatars and originals that are avatars."""
    values = draw(VALUES)
    row = st.tuples(*[values] * draw(st.integers(1, 6)))
    distinct = draw(st.lists(row, min_size=1, max_size=10))
    avatars = distinct + draw(st.lists(st.sampled_from(distinct), max_size=10))
    originals = draw(st.lists(st.one_of(row, st.sampled_from(avatars)), min_size=1, max_size=6))
    own_rows = draw(st.lists(st.integers(0, len(avatars) - 1), min_size=len(originals), max_size=len(originals)))
    return Problem(np.array(avatars), np.array(originals), np.array(own_rows))


@settings(repeatable, max_examples=600)
@given(problem=problems(), tie_tolerance=st.sampled_from([*TOLERANCES, 1e-9, 1e-15, 1e-300, SMALLEST]))
def test_any_small_input_counts_as_the_double_loop(problem, tie_tolerance):
    assert_counts(problem, loop(problem, tie_tolerance), tie_tolerance)


@settings(repeatable, max_examples=60)
@given(
    regime=st.sampled_from([name for name in REGIMES if "forty" not in name]),
    m=st.integers(1, 6_000),
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    tie_tolerance=st.sampled_from([*TOLERANCES, 1e-9]),
)
def test_any_size_of_any_regime_counts_as_the_definition(regime, m, n, seed, tie_tolerance):
    problem = problem_of(regime, m, n, seed)
    assert_counts(problem, reference(problem, tie_tolerance), tie_tolerance)


@settings(repeatable, max_examples=60)
@given(problem=problems(), cut=st.integers(1, 19))
def test_any_cut_of_the_avatars_in_two_adds_up(problem, cut):
    cut = min(cut, len(problem.avatars) - 1)
    parts = [slice(0, cut), slice(cut, None)] if cut else [slice(None)]
    totals = np.zeros((2, len(problem.originals)), dtype=np.int64)
    for part in parts:
        here = np.isin(problem.own_rows, np.arange(len(problem.avatars))[part])
        totals += AvatarIndex(problem.avatars[part]).count(problem.originals, problem.own, own_in_index=here)
    np.testing.assert_array_equal(totals, loop(problem))
