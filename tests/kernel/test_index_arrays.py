"""Arrays of any layout in memory and of any type of numbers count alike."""

import numpy as np
import pytest
from kernel_problems import Problem, numpy_warnings_are_errors, problem_of, reference

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


def _fortran(array):
    return np.asfortranarray(array)


def _every_other(array):
    wide = np.full((2 * len(array), 2 * array.shape[1]), np.nan)
    wide[::2, ::2] = array
    return wide[::2, ::2]


def _backwards(array):
    return np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1]


def _unaligned(array):
    buffer = bytearray(array.nbytes + 1)
    view = np.frombuffer(buffer, dtype=np.float64, offset=1, count=array.size).reshape(array.shape)
    view[:] = array
    return view


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _other_byte_order(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.parametrize("layout", [_fortran, _every_other, _backwards, _unaligned, _read_only, _other_byte_order])
@pytest.mark.parametrize("regime", ["ordinary", "small grid", "a magnitude per row"])
def test_the_layout_in_memory_does_not_matter(layout, regime):
    problem = problem_of(regime, m=1_500, n=40)
    avatars, originals, own = (layout(array) for array in (problem.avatars, problem.originals, problem.own))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), reference(problem))


def test_read_only_memory_maps_are_counted(tmp_path):
    problem = problem_of("ordinary", m=1_500, n=40)
    maps = []
    for name, array in zip(
        ("avatars", "originals", "own"), (problem.avatars, problem.originals, problem.own), strict=True
    ):
        np.save(tmp_path / f"{name}.npy", array)
        maps.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    np.testing.assert_array_equal(AvatarIndex(maps[0]).count(maps[1], maps[2]), reference(problem))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint8"])
def test_other_numbers_are_converted_exactly(dtype):
    rng = np.random.default_rng(8)
    values = rng.integers(0, 6, size=(1_200, 3)) if "int" in dtype else rng.normal(size=(1_200, 3))
    avatars = values.astype(dtype)
    originals, own_rows = avatars[rng.integers(1_200, size=30)][:, ::-1], rng.integers(1_200, size=30)
    expected = reference(Problem(avatars.astype(np.float64), originals.astype(np.float64), own_rows))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, avatars[own_rows]), expected)


def test_a_float32_is_not_the_float64_of_the_same_text():
    index = AvatarIndex(np.array([[0.1], [0.3]], dtype=np.float32))  # 1.5e-9 above 0.1, 1.2e-8 above 0.3
    originals, own = np.array([[0.2]]), np.array([[0.3]], dtype=np.float32)
    closer, within = index.count(originals, own)
    assert (closer.tolist(), within.tolist()) == ([1], [2])
    closer, within = index.count(originals, own, tie_tolerance=1e-6)
    assert (closer.tolist(), within.tolist()) == ([0], [2])


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_count_up_to_2_53(sign):
    largest = sign * 2**53
    index = AvatarIndex(np.array([[largest], [largest - sign], [0]]))
    closer, within = index.count(np.array([[largest]]), np.array([[largest - sign]]), tie_tolerance=0)
    assert (closer.tolist(), within.tolist()) == ([1], [2])
