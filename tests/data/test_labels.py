from __future__ import annotations

import numpy as np
import pytest

from toprank.data.labels import TwoClasses
from toprank.errors import InputError


@pytest.mark.parametrize(
    ("y", "options", "expected"),
    [
        ([0, 1, 1], {}, [0, 1, 1]),
        ([True, False], {}, [1, 0]),
        ([-1.0, 1.0], {}, [0, 1]),
        (["b", "a"], {}, [1, 0]),
        (["b", "a"], {"pos_label": "a"}, [0, 1]),
        (np.array([3, 5, 3], dtype=object), {}, [0, 1, 0]),
        ([[2], [1]], {}, [1, 0]),
        ([0, 2, 1, 0], {}, [0, 1, 1, 0]),
        ([1, 2, 3], {"pos_label": 2}, [0, 1, 0]),
        (["a", "a"], {"classes": ["a", "b"]}, [0, 0]),
    ],
)
def test_labels_become_zeros_and_ones(y, options, expected):
    assert TwoClasses.of(y, **options).encode(y).tolist() == expected


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([1, 1], {}, "one class only"),
        ([1, 2, 3], {}, "3 labels: name the positive one"),
        (["a", "b", "c"], {}, "3 labels"),
        ([1, 2], {"pos_label": 3}, "pos_label 3 is not among"),
        (["a", None], {}, r"missing \(None\) in row 1"),
        ([1.0, np.nan], {}, "nan in row 1"),
        (np.array(["a", 1, 2], dtype=object), {}, "different types"),
        ([1], {"classes": [1, 2, 3]}, "classes must be the two labels"),
        ([1j, 2], {}, "Complex"),
        (None, {}, "y is missing"),
        ([[1, 2], [3, 4]], {}, "2 labels for each row"),
    ],
)
def test_what_cannot_be_read_is_named(y, options, message):
    with pytest.raises(InputError, match=message):
        TwoClasses.of(y, **options)


def test_a_label_that_was_never_seen_is_refused_by_its_row():
    with pytest.raises(InputError, match=r"the label 'c' in row 1: known are 'a' and 'b'"):
        TwoClasses.of(["a", "b"]).encode(["a", "c"])
    with pytest.raises(InputError, match="negative grade -1 in row 0"):
        TwoClasses.of([0, 1, 2]).encode([-1, 1])


def test_classes_stand_negative_first():
    assert TwoClasses.of(["x", "y"], pos_label="x").classes.tolist() == ["y", "x"]
    assert TwoClasses.of([1, 2, 3], pos_label=2).classes.tolist() == [False, True]
