"""Input that the kernel refuses, with an error that names the array."""

import re

import numpy as np
import pytest
from kernel_problems import counts, numpy_warnings_are_errors

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


def _count_with(name, array):
    """Count three avatars of two components, with one of the three arrays replaced."""
    arrays = {"avatars": np.eye(3, 2), "originals": np.zeros((3, 2)), "own": np.eye(3, 2)} | {name: array}
    AvatarIndex(arrays["avatars"]).count(arrays["originals"], arrays["own"])


ARRAYS = ("avatars", "originals", "own")


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_with_the_array_and_the_number_of_rows(name, bad):
    array = np.eye(3, 2)
    array[0] = bad  # two in one row
    array[2, 1] = bad
    with pytest.raises(ValueError, match=rf"\b{name}\b") as refused:
        _count_with(name, array)
    assert re.search(r"\b2\b", str(refused.value))
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        _count_with(name, array.astype(np.float32))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "beyond",
    [
        np.array(2**53 + 1),
        np.array(-(2**53) - 1),
        np.array(2**63 - 1),
        np.array(-(2**63)),
        np.array(2**64 - 1, dtype=np.uint64),
    ],
    ids=str,
)
def test_integers_that_float64_would_round_are_refused(name, beyond):
    array = np.zeros((3, 2), dtype=beyond.dtype)
    array[1:, 0] = beyond
    with pytest.raises(ValueError, match=rf"\b{name}\b") as refused:
        _count_with(name, array)
    assert re.search(r"\b2\b", str(refused.value))


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("dtype", ["U8", "S8", "O", "M8[ns]", "complex128"])
def test_what_is_not_a_number_is_refused(name, dtype):
    with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
        _count_with(name, np.ones((3, 2), dtype="int64").astype(dtype))


@pytest.mark.parametrize(
    ("avatars", "originals", "own"),
    [
        ((4, 3), (2, 2), (2, 2)),
        ((4, 3), (2, 3), (2, 2)),
        ((4, 3), (2, 2), (2, 3)),
        ((4, 3), (2, 3), (3, 3)),
        ((4, 3), (2, 3), (1, 3)),
        ((4, 3), (2, 1), (2, 1)),
        ((4, 3), (3,), (3,)),
        ((4, 3), (2, 3), (3,)),
        ((4,), (2, 1), (2, 1)),
        ((4, 3, 1), (2, 3), (2, 3)),
        ((4, 3), (2, 3, 1), (2, 3, 1)),
        ((), (2, 1), (2, 1)),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused(avatars, originals, own):
    with pytest.raises(ValueError, match=r"avatars|originals|own"):
        AvatarIndex(np.ones(avatars)).count(np.ones(originals), np.ones(own))


@pytest.mark.parametrize("tie_tolerance", [-1e-15, -1.0, np.nextafter(1e-6, 1), 1.0, np.inf, np.nan])
def test_a_tolerance_outside_0_to_a_millionth_is_refused(tie_tolerance):
    with pytest.raises(ValueError, match="tie_tolerance"):
        counts([[0], [1]], [[0]], [[1]], tie_tolerance=tie_tolerance)


@pytest.mark.parametrize("flags", [[True], [True] * 3, [[True, True]], np.ones((2, 2), dtype=bool)], ids=str)
def test_one_flag_too_few_or_too_many_is_refused(flags):
    with pytest.raises(ValueError, match="own_in_index"):
        counts([[0], [1]], [[0], [1]], [[1], [1]], own_in_index=flags)


@pytest.mark.parametrize("unit", [1.0, 2.0**-1070, 2.0**900], ids=["ordinary", "subnormal", "huge"])
@pytest.mark.parametrize("copies", [1, 1_000])
def test_an_own_avatar_said_to_be_in_the_index_and_missing_is_refused(unit, copies):
    index = AvatarIndex(np.array([[1.0], [2.0], [9.0]] * copies) * unit)
    originals, own = np.zeros((3, 1)), np.array([[9.0], [5.0], [2.0]]) * unit
    with pytest.raises(ValueError, match=r"\bown\b"):
        index.count(originals, own)
    with pytest.raises(ValueError, match=r"\bown\b"):
        index.count(originals, own, own_in_index=[False, True, False])
    closer, within = index.count(originals, own, own_in_index=[True, False, True])
    assert closer.tolist() == [2 * copies, 2 * copies, copies]
    assert within.tolist() == [3 * copies, 2 * copies, 2 * copies]
