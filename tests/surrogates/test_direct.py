from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import direct as oracle
from tests.oracles.measures import average, orders
from toprank.measures import measure
from toprank.surrogates import _working_set_kernels as kernels
from toprank.surrogates import direct

MEASURES = {
    "map": oracle.ap,
    "ndcg": oracle.ndcg,
    "ndcg@2": lambda order, grades: oracle.ndcg(order, grades, k=2),
    "ndcg:letor3": lambda order, grades: oracle.ndcg(order, grades, letor=True),
    "ndcg@3:letor3": lambda order, grades: oracle.ndcg(order, grades, k=3, letor=True),
}

VIOLATED = MEASURES | {
    "map@2": lambda order, grades: sum(p for i, p in precisions(order, grades) if i < 2) / max(count(grades), 1),
    "p@2": lambda order, grades: count([grades[i] for i in order[:2]]) / 2,
    "wta": lambda order, grades: float(grades[order[0]] >= 1),
    "recall@2": lambda order, grades: count([grades[i] for i in order[:2]]) / max(count(grades), 1),
    "mrr": lambda order, grades: 1 / (min((i for i, _ in precisions(order, grades)), default=np.inf) + 1),
    "rbp": lambda order, grades: sum(0.8**i for i, _ in precisions(order, grades)),
    "auc": lambda order, grades: sum(grades[i] > grades[j] for p, i in enumerate(order) for j in order[p + 1 :]),
}


def count(grades):
    return sum(g >= 1 for g in grades)


def precisions(order, grades):
    """Return (place from 0, precision there) of the relevant documents."""
    return [(p, count([grades[j] for j in order[: p + 1]]) / (p + 1)) for p, i in enumerate(order) if grades[i] >= 1]


@st.composite
def one_list(draw, longest=6, top=2, grid=8):
    n = draw(st.integers(2, longest))
    y = draw(st.lists(st.integers(0, top), min_size=n, max_size=n))
    s = draw(st.lists(st.integers(-20, 20), min_size=n, max_size=n))
    return np.array(s) / grid, np.array(y, dtype=float)


def finite_difference(surrogate, s, y, i, h=1e-6):
    step = np.zeros(len(s))
    step[i] = h
    up, down = (surrogate.value_and_grad(s + sign * step, y, [0, len(s)])[0] for sign in (1, -1))
    return (up - down) / (2 * h)


@given(one_list(), st.sampled_from(list(MEASURES)), st.sampled_from(["exponential", "logistic"]))
def test_type_one_is_phi_of_the_measure_and_bounds_the_loss(data, name, loss):
    s, y = data
    value, grad = tr.surrogates.TypeOne(name, loss=loss).value_and_grad(s, y, [0, len(s)])
    ties = "input" if "letor" in name else "average"
    E = average(MEASURES[name](order, y) for order in orders(s, y, ties))
    assert value == pytest.approx(oracle.PHI[loss](-E))
    assert value >= 1 - E
    assert not grad.any()


@given(
    one_list(longest=5),
    st.sampled_from(list(MEASURES)),
    st.sampled_from(["exponential", "logistic", "hinge", "margin"]),
    st.sampled_from(["max", "sum"]),
    st.sampled_from(["all", "graded"]),
)
def test_type_two_is_the_enumeration(data, name, loss, reduction, pairs):
    s, y = data
    value, _ = tr.surrogates.TypeTwo(name, loss=loss, reduction=reduction, pairs=pairs).value_and_grad(
        s, y, [0, len(s)]
    )
    expected = oracle.type_two(MEASURES[name], s, y, loss, reduction, pairs == "graded")
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("pairs", ["all", "graded"])
@pytest.mark.parametrize("reduction", ["max", "sum"])
@pytest.mark.parametrize("loss", ["exponential", "logistic", "hinge", "margin"])
def test_type_two_gradient_is_the_slope(loss, reduction, pairs):
    rng = np.random.default_rng(5)
    s, y = rng.normal(size=6), np.array([2.0, 0, 1, 0, 1, 0])
    surrogate = tr.surrogates.TypeTwo("map", loss=loss, reduction=reduction, pairs=pairs)
    _, grad = surrogate.value_and_grad(s, y, [0, 6])
    for i in range(6):
        assert finite_difference(surrogate, s, y, i) == pytest.approx(grad[i], rel=1e-5, abs=1e-5)
    assert grad.sum() == pytest.approx(0, abs=1e-9)


@given(one_list(longest=5), st.sampled_from(list(MEASURES)))
def test_theorem_1_sorting_maximises_F(data, name):
    s, _ = data
    best = max(oracle.F(order, s) for order in oracle.rankings(len(s)))
    assert oracle.F(sorted(range(len(s)), key=lambda i: -s[i]), s) == pytest.approx(best)


@given(one_list(longest=5), st.sampled_from(list(MEASURES)))
def test_theorem_2_the_worst_case_bounds_the_basic_loss(data, name):
    s, y = data
    ptr = np.array([0, len(s)])
    worst = direct.worst_case(name, s, y, ptr)[0]
    assert worst == pytest.approx(oracle.type_two(MEASURES[name], s, y, "step", "max"))
    perfect = MEASURES[name](sorted(range(len(s)), key=lambda i: -y[i]), y)
    basic = perfect - measure(name).per_query(s, y, ptr)[0]
    assert worst >= basic - 1e-12
    for loss in ("exponential", "logistic", "hinge", "margin"):
        bound = tr.surrogates.TypeTwo(name, loss=loss).per_query(s, y, ptr)[0][0]
        assert bound >= worst - 1e-12
        assert tr.surrogates.TypeTwo(name, loss=loss, reduction="sum").per_query(s, y, ptr)[0][0] >= bound - 1e-9


@given(one_list(longest=5), st.sampled_from(["exponential", "logistic", "hinge"]), st.floats(1, 40))
def test_theorem_3_type_two_is_tighter_near_the_optimum(data, loss, scale):
    s, y = data
    s = scale * (s / 4 + 4 * y)  # mostly well separated: the theorem's condition is met often, and always asked
    perfect, others = oracle.split(oracle.ap, len(s), y)
    E = oracle.ap(sorted(range(len(s)), key=lambda i: -s[i]), y)
    if others and min(oracle.F(g, s) for g in perfect) - max(oracle.F(b, s) for b in others) >= E:
        two = tr.surrogates.TypeTwo("map", loss=loss).per_query(s, y, np.array([0, len(s)]))[0][0]
        assert two <= oracle.PHI[loss](-E) + 1e-12


def test_too_many_orders_of_the_grades_are_refused():
    y = np.repeat([0.0, 1.0], 20)
    with pytest.raises(tr.InputError, match="StructuralHinge"):
        tr.surrogates.TypeTwo().value_and_grad(np.zeros(40), y, [0, 40])
    with pytest.raises(tr.InputError, match="up to 8"):
        tr.surrogates.TypeTwo(reduction="sum").value_and_grad(np.zeros(40), y, [0, 40])
    with pytest.raises(tr.InputError, match=r"\[0, 1\]"):
        tr.surrogates.TypeOne("dcg")


def test_the_simulation_of_the_paper_has_116280_patterns():
    found = direct._patterns(measure("map"), (0.0, 1.0), (14, 7))
    assert len(found.rows) == factorial(21) // (factorial(7) * factorial(14)) == 116_280
    assert len(np.unique(found.rows, axis=0)) == 116_280
    assert (found.lost == 0).sum() == 1


STRUCTURAL = {
    "map": oracle.ap,
    "ndcg": oracle.ndcg,
    "ndcg@2": lambda order, grades: oracle.ndcg(order, grades, k=2),
    "ndcg:letor3": lambda order, grades: oracle.ndcg(order, grades, letor=True),
}


@given(one_list(longest=6, top=1), st.sampled_from(list(STRUCTURAL)))
def test_structural_hinge_is_the_worst_of_all_rankings(data, name):
    s, y = data
    value, grad = tr.surrogates.StructuralHinge(name).value_and_grad(s, y, [0, len(s)])
    if 0 < y.sum() < len(y):
        assert value == pytest.approx(oracle.structural(STRUCTURAL[name], s, y), abs=1e-12)
        basic = 1 - STRUCTURAL[name](orders(s, y, "worst")[0], y)
        assert value >= basic - 1e-12, "also in the worst order of ties"
    else:
        assert value == 0
        assert not grad.any()


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    st.sampled_from(["map", "ndcg", "ndcg@1", "ndcg@6"]),
)
def test_each_search_finds_what_dynamic_programming_finds(n_pos, n_neg, seed, scale, name):
    """Halving, and rows up to the cut-off, against the whole table; with many ties (scale 0) as well."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1.0, 0.0], [n_pos, n_neg]))
    s = scale * (rng.normal(size=len(y)).round(1) + y)
    value, grad = tr.surrogates.StructuralHinge(name).value_and_grad(s, y, [0, len(y)])
    pos, neg = -np.sort(-s[y == 1]), -np.sort(-s[y == 0])
    i = np.arange(1, n_pos + 1)[:, None]
    a = np.arange(n_neg + 1)[None, :]
    if name == "map":
        E = i / (i + a) / n_pos
    else:
        k = {"ndcg": np.inf, "ndcg@1": 1, "ndcg@6": 6}[name]
        discount = np.where(np.arange(1, len(y) + 1) <= k, 1 / np.log2(np.arange(2, len(y) + 2)), 0.0)
        E = discount[i + a - 1] / discount[:n_pos].sum()
    gain = -E - 2 / (n_pos * n_neg) * (a * pos[:, None] - np.concatenate(([0], np.cumsum(neg)))[None, :])
    best = np.zeros(n_neg + 1)
    for row in gain:
        best = np.maximum.accumulate(best) + row
    assert value == pytest.approx(1 + best.max(), abs=1e-9)
    assert grad.sum() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", ["map", "ndcg", "ndcg@5", "ndcg:letor3"])
def test_structural_gradient_is_the_slope(name):
    rng = np.random.default_rng(8)
    s, y = rng.normal(size=30), rng.integers(0, 2, 30).astype(float)
    surrogate = tr.surrogates.StructuralHinge(name)
    _, grad = surrogate.value_and_grad(s, y, [0, 30])
    for i in range(0, 30, 5):
        assert finite_difference(surrogate, s, y, i) == pytest.approx(grad[i], abs=1e-6)


def test_grades_become_relevant_at_the_threshold():
    s, y = np.array([0.3, 0.2, 0.1, 0.0]), np.array([0.0, 2.0, 1.0, 0.0])
    wide = tr.surrogates.StructuralHinge().value_and_grad(s, y, [0, 4])
    narrow = tr.surrogates.StructuralHinge(threshold=2).value_and_grad(s, y, [0, 4])
    assert wide[0] == tr.surrogates.StructuralHinge().value_and_grad(s, y >= 1, [0, 4])[0]
    assert narrow[0] == tr.surrogates.StructuralHinge().value_and_grad(s, y >= 2, [0, 4])[0]
    assert narrow[1][2] >= 0 > wide[1][2]
    mslr = tr.surrogates.StructuralHinge(measure("map", convention="mslr"))
    assert mslr.value_and_grad(s, y, [0, 4])[0] == narrow[0]


def test_a_short_list_under_letor4_teaches_nothing():
    value, grad = tr.surrogates.StructuralHinge("ndcg@5:letor4").value_and_grad([0.0, 1.0], [1, 0], [0, 2])
    assert value == 0
    assert not grad.any()


@given(one_list(longest=6, top=3), st.sampled_from(list(VIOLATED)))
def test_most_violated_rankings_are_those_of_the_enumeration(data, name):
    s, y = data
    n = len(s)
    blocks, binary = direct.places_told_apart(measure(name), n)
    level = (y >= 1).astype(float) if binary else y
    lowest, highest, known = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(1, np.bool_)
    kernels.most_violated(s, level, np.array([0, n]), blocks, lowest, highest, known)
    perfect, others = oracle.split(VIOLATED[name], n, y)
    low = tuple(np.argsort(lowest).tolist())
    assert low in perfect
    assert oracle.F(low, s) == pytest.approx(min(oracle.F(order, s) for order in perfect))
    assert bool(known[0]) == bool(others)
    if others:
        high = tuple(np.argsort(highest).tolist())
        assert high in others
        assert oracle.F(high, s) == pytest.approx(max(oracle.F(order, s) for order in others))


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.sampled_from([0.0, 0.25, 0.5, 1.0])), min_size=1, max_size=12),
)
def test_working_set_hinge_is_the_double_sum(rows):
    F, E = np.array([f for f, _ in rows]) / 8, np.array([e for _, e in rows])
    surrogate = direct.WorkingSetHinge()
    value, grad = surrogate.value_and_grad(F, E, [0, len(F)])
    if (E != 1).any():
        assert value == pytest.approx(oracle.working_set(F, E), abs=1e-12)
    assert grad.sum() == pytest.approx(0, abs=1e-12)
    # A subgradient: the value never falls below the tangent.
    for d in (0.03, -0.07):
        moved = F + d * np.arange(len(F))
        assert surrogate.value_and_grad(moved, E, [0, len(F)])[0] >= value + grad @ (moved - F) - 1e-9
