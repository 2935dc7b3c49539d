"""The kernel's counts, against counts made by hand."""

import numpy as np
from kernel_problems import counts, numpy_warnings_are_errors

from cloaking.kernel.index import AvatarIndex

pytestmark = numpy_warnings_are_errors


def test_avatars_nearer_than_the_own_are_closer_and_farther_ones_are_not_counted():
    avatars = [[0, 0], [0, 1], [3, 4], [6, 8]]  # 0, 1, 5 and 10 from the origin
    assert counts(avatars, [[0, 0]], [[3, 4]]) == ([2], [3])


def test_the_own_avatar_is_within_and_not_closer():
    assert counts([[3, 4], [6, 8]], [[0, 0]], [[3, 4]]) == ([0], [1])


def test_every_copy_of_an_avatar_counts():
    avatars = [[1]] * 4 + [[2]] * 3 + [[3]] * 5
    assert counts(avatars, [[0]], [[2]]) == ([4], [7])


def test_originals_that_are_equal_count_alike():
    avatars = [[1], [2], [3]]
    assert counts(avatars, [[0], [0], [0]], [[1], [3], [3]]) == ([0, 2, 2], [1, 3, 3])


def test_one_avatar_is_its_originals_own():
    assert counts([[2, 3]], [[0, 0]], [[2, 3]]) == ([0], [1])


def test_there_may_be_more_originals_than_avatars_and_more_avatars_than_originals():
    avatars = [[1], [2], [4]]
    assert counts(avatars, [[0]], [[4]]) == ([2], [3])
    assert counts(avatars, [[0], [1], [3], [5], [9]], [[1], [4], [2], [1], [4]]) == ([0, 2, 0, 2, 0], [1, 3, 2, 3, 1])


def test_one_component_is_enough():
    avatars = [[value] for value in range(10)]
    assert counts(avatars, [[4.4]], [[7]]) == ([5], [6])  # 2 to 6 are nearer than 2.6


def test_forty_components_all_count():
    avatars = np.diag(np.arange(1.0, 41.0))  # avatar k is k away from the origin, along axis k
    closer, within = counts(avatars, np.zeros((40, 40)), avatars)
    assert closer == list(range(40))
    assert within == list(range(1, 41))


def test_minus_zero_is_zero():
    assert counts([[-0.0], [0.0], [1]], [[0.0]], [[-0.0]]) == ([0], [2])
    assert counts([[0.0, -0.0], [-0.0, 0.0]], [[-0.0, -0.0]], [[0.0, 0.0]]) == ([0], [2])


def test_no_originals_give_no_counts():
    closer, within = AvatarIndex(np.ones((4, 3))).count(np.empty((0, 3)), np.empty((0, 3)))
    assert closer.shape == within.shape == (0,)
    assert closer.dtype == within.dtype == np.int64
