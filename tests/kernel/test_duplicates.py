"""Equal avatars are grouped: by value, whatever their hash and the sign of zero, and only where many are equal."""

import numpy as np
import oracle

from cloaking.kernel import duplicates
from cloaking.kernel.index import AvatarIndex


def test_where_all_rows_share_a_hash_every_row_still_counts(monkeypatch):
    rng = np.random.default_rng(5)
    avatars = rng.integers(0, 3, size=(400, 3)).astype(np.float64)
    originals, own = rng.permuted(avatars, axis=0), avatars
    expected = oracle.fast_count(avatars, originals, own)
    monkeypatch.setattr(duplicates, "_hash", lambda arrays: np.zeros(len(arrays[0]), np.uint64))
    np.testing.assert_array_equal(AvatarIndex(avatars).count(originals, own), expected)


def test_equal_rows_are_found_whatever_the_sign_of_zero():
    values = np.tile([[0.0, 1.0], [-0.0, 1.0], [2.0, 0.0], [2.0, -0.0]], (50, 1))
    groups = duplicates.distinct(values)
    assert len(groups.first) == 2
    np.testing.assert_array_equal(values[groups.first][groups.of], values)


def test_rows_are_not_grouped_where_few_are_equal():
    values = np.random.default_rng(6).normal(size=(1_000, 2))
    values[:100] = values[0]
    assert duplicates.distinct(values) is None
