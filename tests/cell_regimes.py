"""Sets of points that are hard to cut into cells of equal size."""

import numpy as np


def half_in_one_place(rng):
    points = rng.normal(size=(2_000, 3))
    points[:1_000] = points[0]
    return points


def nine_tenths_equal(rng):
    points = rng.normal(size=(2_000, 3))
    points[200:] = [1.0, -2.0, 3.0]
    return points


def on_a_line(rng):
    return np.outer(rng.normal(size=2_000), [1.0, 1.0, 0.0])


def one_far_outlier(rng):
    points = rng.normal(size=(2_000, 3))
    points[7] = 1e12
    return points


def half_on_borders(rng):
    points = rng.normal(size=(2_000, 3))
    points[::2, 0] = 0.0
    return points


def a_small_grid(rng):
    return rng.integers(0, 4, size=(2_000, 3)).astype(float)


REGIMES = [half_in_one_place, nine_tenths_equal, on_a_line, one_far_outlier, half_on_borders, a_small_grid]
