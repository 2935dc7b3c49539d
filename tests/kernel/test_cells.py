"""Cells divide space: each point lies in one, none holds too many, and what an original need not visit is counted."""

import numpy as np
import pytest
from cell_regimes import REGIMES
from hypothesis import given
from hypothesis import strategies as st

from cloaking.kernel.cells import Boxes, Cells, cut_cells

MOST = 50


def boxes_of(cells: Cells, points):
    """Return the boxes of all cells that hold points, one cell at a time."""
    place = cells.of(points)
    used = np.unique(place)
    parts = [points[place == cell] for cell in used]
    corners = (np.array([function(part, axis=0) for part in parts]) for function in (np.min, np.max))
    return Boxes(used, np.array([len(part) for part in parts]), *corners)


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.__name__)
def test_no_cell_holds_more_than_asked_but_for_a_frequent_point(regime):
    points = regime(np.random.default_rng(1))
    cells = cut_cells(points, MOST)
    for cell in np.unique(cells.of(points)):
        inside = points[cells.of(points) == cell]
        assert len(inside) <= MOST or (inside == inside[0]).all()


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.__name__)
def test_a_point_is_in_the_same_cell_whatever_stands_beside_it(regime):
    points = regime(np.random.default_rng(2))
    cells = cut_cells(points, MOST)
    together = cells.of(points)
    assert [int(cells.of(point[None])[0]) for point in points[:200]] == together[:200].tolist()
    assert together.min() >= 0 and together.max() < cells.count


def test_a_point_on_a_cut_is_above_it():
    cells = cut_cells(np.array([[0.0], [1.0], [2.0], [3.0]]), 2)
    assert cells.of(np.array([[1.9], [2.0]])).tolist() == [
        cells.of(np.array([[0.0]]))[0],
        cells.of(np.array([[3.0]]))[0],
    ]


def test_signed_zeros_are_one_place():
    cells = cut_cells(np.array([[-0.0], [0.0], [0.0], [1.0]]), 2)
    assert len(np.unique(cells.of(np.array([[-0.0], [0.0]])))) == 1


def check_meeting(points, originals, lower, upper, most=MOST):
    """Hold counts without visit, and visits, against a comparison of every pair."""
    boxes = boxes_of(cells := cut_cells(points, most), points)
    row, cell, closer, within = boxes.meet(originals, lower, upper, np.zeros(len(originals), bool))
    place = cells.of(points)
    for i, original in enumerate(originals):
        squares = np.zeros(len(points))
        for k in range(points.shape[1]):
            squares += np.square(original[k] - points[:, k])
        visited = np.isin(place, cell[row == i])
        assert closer[i] + np.count_nonzero(squares[visited] < lower[i]) == np.count_nonzero(squares < lower[i])
        assert within[i] + np.count_nonzero(squares[visited] <= upper[i]) == np.count_nonzero(squares <= upper[i])
    return row


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.__name__)
def test_what_is_not_visited_is_counted(regime):
    rng = np.random.default_rng(3)
    points = regime(rng)
    originals = np.concatenate([rng.normal(size=(30, 3)), points[:30]])
    squared = rng.choice([0.0, 0.01, 1.0, 9.0, 100.0, 1e30], size=60)
    check_meeting(points, originals, squared, squared)


@pytest.mark.parametrize("ncp", [1, 2, 5])
def test_what_is_not_visited_is_counted_in_thousands_of_cells(ncp):
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.normal(size=(4000, ncp)), rng.integers(-2, 3, size=(4000, ncp)).astype(float)])
    originals = points[rng.integers(8000, size=40)] + rng.choice([0.0, 0.1], size=(40, 1))
    lower = rng.choice([0.0, 0.01, 1.0, 9.0, 1e30], size=40)
    check_meeting(points, originals, lower, lower * rng.choice([1.0, 1 + 1e-9], size=40), most=3)


def test_an_original_with_a_small_ball_is_held_against_few_of_many_cells(monkeypatch):
    points = np.random.default_rng(6).normal(size=(40_000, 2))
    boxes = boxes_of(cut_cells(points, 10), points)
    assert len(boxes.cell) >= 4000
    asked, corners = [], Boxes._corners

    def noted(boxes, x, row, box):
        asked.append(len(row))
        return corners(boxes, x, row, box)

    monkeypatch.setattr(Boxes, "_corners", noted)
    row, *_ = boxes.meet(points[:100], np.full(100, 1e-4), np.full(100, 1e-4), np.zeros(100, bool))
    assert len(row) < 100 * 10
    assert sum(asked) < 100 * 4000 / 20


def test_equal_avatars_need_no_visit():
    points = np.full((500, 2), 3.0)
    originals = np.array([[3.0, 3.0], [0.0, 3.0], [3.0, 4.0]])
    boxes = boxes_of(cut_cells(points, MOST), points)
    row, _, closer, within = boxes.meet(
        originals, np.array([0.0, 9.0, 2.0]), np.array([0.0, 9.0, 2.0]), np.zeros(3, bool)
    )
    assert row.tolist() == []
    assert (closer.tolist(), within.tolist()) == ([0, 0, 500], [500, 500, 500])


def test_an_original_that_must_see_everything_visits_every_cell():
    points = np.random.default_rng(4).normal(size=(500, 2))
    boxes = boxes_of(cut_cells(points, MOST), points)
    row, cell, closer, within = boxes.meet(np.zeros((1, 2)), np.array([1e30]), np.array([1e30]), np.ones(1, bool))
    assert (sorted(cell), closer[0], within[0]) == (sorted(boxes.cell), 0, 0) and not row.any()


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-300, 1e-12, 1.0, 1e8, 1e150]),
    st.sampled_from([0.0, 1.0, 1e8]),
    st.integers(1, 4),
)
def test_bounds_at_the_distance_of_a_corner_are_decided_as_for_a_point(seed, scale, shift, ncp):
    rng = np.random.default_rng(seed)
    points = (rng.integers(-3, 4, size=(300, ncp)) + rng.normal(size=(300, ncp)) * rng.integers(0, 2)) * scale + shift
    originals = points[rng.integers(300, size=5)] + rng.integers(-2, 3, size=(5, ncp)) * scale
    others = points[rng.integers(300, size=5)]
    squared = np.zeros(5)
    for k in range(ncp):
        squared += np.square(originals[:, k] - others[:, k])
    check_meeting(points, originals, squared, squared)
