"""Paired tests against enumeration and scipy, Holm against its procedure, and tables that say what they mean."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.oracles import compare as oracle
from toprank._tables import Table
from toprank.data.synthetic import make_graded
from toprank.errors import InputError
from toprank.statistics import _intervals as intervals
from toprank.statistics import _statistics as statistics
from toprank.statistics.comparison import Comparison, compare
from toprank.statistics.evaluation import evaluate


@dataclass
class FakeReport:
    """As much of a report as a comparison reads."""

    per_query: dict[str, np.ndarray]
    convention: str = "standard"
    query_ids: np.ndarray = field(default_factory=lambda: np.zeros(0))
    query_weight: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.per_query = {name: np.asarray(values, dtype=float) for name, values in self.per_query.items()}
        if not len(self.query_ids):
            self.query_ids = np.arange(len(next(iter(self.per_query.values()), [])))


def reports(**systems: object) -> dict[str, FakeReport]:
    return {name: FakeReport({"map": values}) for name, values in systems.items()}


# Multiples of 1/8 add without rounding, so exact ties between flips are real ties.
eighths = st.integers(-8, 8).map(lambda k: k / 8)


@settings(max_examples=60, deadline=None)
@given(st.lists(eighths, min_size=1, max_size=9))
def test_sign_flip_counts_every_pattern(d: list[float]) -> None:
    p = statistics.sign_flip(np.array([d]), 100, np.random.default_rng(0))
    assert p[0] == pytest.approx(float(oracle.sign_flip_p(d)), abs=1e-15)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1, 1).filter(lambda v: v == 0 or abs(v) > 1e-9), min_size=1, max_size=8))
def test_sign_flip_is_symmetric_and_ignores_zeros(d: list[float]) -> None:
    rows = np.array([[*d, 0.0], [*(-v for v in d), 0.0], [0.0, *d]])
    p = statistics.sign_flip(rows, 100, np.random.default_rng(0))
    assert p[0] == p[1] == p[2]
    assert 0 < p[0] <= 1


@pytest.mark.parametrize("test", ["sign_flip", "wilcoxon"])
def test_no_more_false_alarms_than_stated(test: str) -> None:
    """Under the null every sign pattern is equally likely: the share of patterns with p ≤ α must not exceed α."""
    sizes = np.random.default_rng(1).random(9) + 0.1
    flips = np.array(list(product((1, -1), repeat=9))) * sizes
    if test == "sign_flip":
        p = statistics.sign_flip(flips, 100, np.random.default_rng(0))
    else:
        p = np.array([statistics.wilcoxon(d) for d in flips])
    for alpha in (0.01, 0.05, 0.1, 0.3, 0.7):
        assert (p <= alpha + 1e-12).mean() <= alpha + 1e-12


def test_sampled_flips_agree_with_all_flips() -> None:
    rng = np.random.default_rng(3)
    d = rng.standard_normal(statistics.EXACT) + 0.4
    exact = statistics.sign_flip(d[None], 1, rng)[0]
    # Queries that hardly differ push the same test over the limit, and so into sampling.
    more = np.concatenate((d, np.full(4, 1e-9)))
    B = 20_000
    sampled = statistics.sign_flip(more[None], B, rng)[0]
    assert abs(sampled - exact) < 5 * np.sqrt(exact * (1 - exact) / B) + 1 / B
    assert (sampled * (B + 1)) % 1 == pytest.approx(0, abs=1e-6)
    assert statistics.sign_flip(np.full((1, 60), 0.5), 999, rng)[0] == 1 / 1000


def test_sampling_in_chunks_is_bounded_and_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(statistics.chunks(1000, 50, 350)) == [7] * 142 + [6]
    assert list(statistics.chunks(3, 50, 10)) == [1] * 3
    d = np.random.default_rng(0).standard_normal((3, 50))
    one = intervals.bootstrap_means(d, np.ones(50), 1000, np.random.default_rng(5))
    monkeypatch.setattr(intervals, "_CHUNK", 350)
    assert intervals.bootstrap_means(d, np.ones(50), 1000, np.random.default_rng(5)) == pytest.approx(one, rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=40).filter(lambda d: np.std(d) > 1e-3))
def test_t_agrees_with_scipy(d: list[float]) -> None:
    expected = stats.ttest_rel(np.array(d) + 0.5, np.full(len(d), 0.5)).pvalue
    assert statistics.paired_t(np.array(d) + 0.5 - 0.5) == pytest.approx(expected, rel=1e-12, abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=2, max_size=9, unique=True), st.data())
def test_wilcoxon_agrees_with_enumeration_and_scipy(sizes: list[int], draw: st.DataObject) -> None:
    d = np.array([size * draw.draw(st.sampled_from([-1, 1])) for size in sizes], dtype=float)
    p = statistics.wilcoxon(np.append(d, 0.0))
    assert p == pytest.approx(oracle.signed_rank_p(d), abs=1e-12)
    assert p == pytest.approx(stats.wilcoxon(d).pvalue, abs=1e-12)


@settings(max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.999))
def test_holm_decides_as_the_procedure_does(p: list[float], alpha: float) -> None:
    corrected = statistics.holm(np.array(p))
    near = np.abs(corrected - alpha) < 1e-9  # at the boundary, rounding decides
    assert ((corrected <= alpha) == oracle.holm_rejects(p, alpha))[~near].all()
    assert (corrected >= p).all()
    assert (corrected <= 1).all()


def test_bootstrap_means_have_the_spread_of_a_mean() -> None:
    values = np.random.default_rng(0).random((1, 200))
    means = intervals.bootstrap_means(values, np.ones(200), 4000, np.random.default_rng(1))[0]
    deviation = values.std() / np.sqrt(200)
    assert means.mean() == pytest.approx(values.mean(), abs=5 * deviation / np.sqrt(4000))
    assert means.std() == pytest.approx(deviation, rel=0.06)


@pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon"])
def test_a_clear_winner_and_a_copy(test) -> None:
    rng = np.random.default_rng(0)
    base = rng.random(80)
    result = compare(reports(base=base, same=base, better=base + 0.1 + 0.05 * rng.random(80)), test=test)
    same = result.difference("map", "base", "same")
    assert (same.p, same.p_holm, same.difference, same.interval) == (1.0, 1.0, 0.0, (0.0, 0.0))
    assert (same.wins, same.ties, same.losses) == (0, 80, 0)
    assert same.verdict == "not shown"
    worse = result.difference("map", "base", "better")
    assert worse.shown
    assert worse.verdict == "better is better"
    assert (worse.wins, worse.ties, worse.losses) == (0, 0, 80)
    assert worse.interval[0] < worse.difference < worse.interval[1] < 0
    low, high = result.interval("base", "map")
    assert low < base.mean() < high
    assert result.means["map"]["base"] == pytest.approx(base.mean(), abs=1e-15)


def test_the_family_is_every_pair_on_every_measure() -> None:
    rng = np.random.default_rng(0)
    systems = {name: FakeReport({"map": rng.random(30), "mrr": rng.random(30)}) for name in "abc"}
    result = compare(systems)
    assert [(d.measure, d.a, d.b) for d in result.differences] == [
        (m, a, b) for m in ("map", "mrr") for a, b in ("ab", "ac", "bc")
    ]
    p = [d.p for d in result.differences]
    assert [d.p_holm for d in result.differences] == statistics.holm(np.array(p)).tolist()
    one_sided = compare(systems, baseline="b")
    assert [(d.a, d.b) for d in one_sided.differences] == [("a", "b"), ("c", "b")] * 2
    assert "(2 × 2)" in str(one_sided)


def test_a_constant_shift_still_leaves_room_for_what_was_not_seen() -> None:
    base = 0.7 * np.random.default_rng(0).random(40)
    for test in ("permutation", "t"):
        one = compare(reports(a=base + 0.25, b=base), test=test).differences[0]
        low, high = one.interval
        assert one.by_betting
        assert low < 0.25 - 3 / 40 < 0.25 + 3 / 40 < high  # a failure of one query in forty may not have been seen
    one = compare(reports(a=base + 0.25, b=base), test="t").differences[0]
    assert (one.p, one.shown) == (1.0, False)  # no spread, nothing to go by
    far = compare(reports(a=10 + base, b=base)).differences[0]  # beyond [0, 1] nothing bounds what was not seen
    assert (far.by_betting, far.interval) == (False, pytest.approx((10, 10), abs=1e-12))


def test_the_same_seed_gives_the_same_comparison() -> None:
    rng = np.random.default_rng(0)
    systems = reports(a=rng.random(50), b=rng.random(50))
    assert compare(systems) == compare(systems)
    assert compare(systems).differences[0].p != compare(systems, random_state=1).differences[0].p


def test_rounding_is_a_tie() -> None:
    d = compare(reports(a=[0.1 + 0.2, 0.5], b=[0.3, 0.5])).differences[0]
    assert (d.wins, d.ties, d.losses, d.p) == (0, 2, 0, 1.0)


def test_one_query_proves_nothing() -> None:
    for test in ("permutation", "wilcoxon"):
        d = compare(reports(a=[1.0], b=[0.0]), test=test).differences[0]
        assert (d.p, d.shown, d.difference) == (1.0, False, 1.0)
    with pytest.raises(InputError, match="the paired t test needs at least two queries, got 1"):
        compare(reports(a=[1.0], b=[0.0]), test="t")


def test_queries_that_are_not_counted_are_left_out() -> None:
    result = compare(reports(a=[1.0, np.nan, 0.5], b=[0.5, np.nan, 0.5]))
    d = result.differences[0]
    assert (d.wins, d.ties, d.losses, d.difference) == (1, 1, 0, 0.25)
    assert result.means["map"] == {"a": 0.75, "b": 0.5}
    with pytest.raises(InputError, match="map skips other queries in one report than in another"):
        compare(reports(a=[1.0, np.nan], b=[0.5, 0.5]))
    with pytest.raises(InputError, match="map counts no query"):
        compare(reports(a=[np.nan], b=[np.nan]))


def test_weights_count_as_repeated_queries() -> None:
    """Whole weights are the same as queries that stand several times, for means, differences and exact p-values."""
    a, b, w = np.array([0.5, 0.25, 1.0, 0.0]), np.array([0.25, 0.5, 0.25, 0.75]), np.array([2.0, 1.0, 3.0, 0.0])
    weighted = compare({n: FakeReport({"map": v}, query_weight=w) for n, v in (("a", a), ("b", b))})
    d = weighted.differences[0]
    assert weighted.means["map"]["a"] == pytest.approx((2 * 0.5 + 0.25 + 3 * 1.0) / 6, abs=1e-15)
    assert d.difference == pytest.approx((2 * 0.25 - 0.25 + 3 * 0.75) / 6, abs=1e-15)
    assert d.p == float(oracle.sign_flip_p([2 * 0.25, -0.25, 3 * 0.75]))
    assert (d.wins, d.ties, d.losses) == (2, 0, 1)
    assert d.interval[0] < d.difference < d.interval[1]
    for test in ("t", "wilcoxon"):
        with pytest.raises(InputError, match='knows no weights, and these queries have them: use test="permutation"'):
            compare({n: FakeReport({"map": a}, query_weight=w) for n in "ab"}, test=test)
    with pytest.raises(InputError, match="'a' and 'b' weigh the queries differently"):
        compare({"a": FakeReport({"map": a}, query_weight=w), "b": FakeReport({"map": a})})


def test_real_reports_are_compared_under_their_convention() -> None:
    data = make_graded(n_queries=40, n_features=4, random_state=0)
    systems = {f"x{j}": evaluate(data.X[:, j], data, ["ndcg@5", "map"], convention="letor4") for j in range(2)}
    result = compare(systems)
    assert result.convention == "letor4"
    assert result.measures == ("ndcg@5", "map")
    for name, report in systems.items():
        assert result.means["map"][name] == pytest.approx(report.mean["map"], abs=1e-14)
    d = result.difference("ndcg@5", "x0", "x1")
    expected = systems["x0"].per_query["ndcg@5"] - systems["x1"].per_query["ndcg@5"]
    assert (d.wins, d.losses) == ((expected > 1e-12).sum(), (expected < -1e-12).sum())


@pytest.mark.parametrize(
    ("systems", "options", "message"),
    [
        (reports(a=[1]), {}, "compare needs at least two reports, got 1"),
        (reports(a=[1, 2], b=[1]), {}, "'a' and 'b' hold different queries"),
        (
            {"a": FakeReport({"map": [1]}), "b": FakeReport({"map": [1]}, "letor4")},
            {},
            "'b' letor4: evaluate both under one",
        ),
        ({"a": FakeReport({"map": [1]}), "b": FakeReport({"mrr": [1]})}, {}, "'a' has the measures map and 'b' mrr"),
        ({"a": FakeReport({}), "b": FakeReport({})}, {}, "hold no measures"),
        (reports(a=[1], b=[2]), {"test": "z"}, "test must be one of 'permutation', 't', 'wilcoxon', got 'z'"),
        (reports(a=[1], b=[2]), {"alpha": 1}, "alpha must be a number between 0 and 1"),
        (reports(a=[1], b=[2]), {"baseline": "c"}, "baseline must be one of 'a', 'b', got 'c'"),
        (reports(a=[1], b=[2]), {"n_resamples": 0}, "n_resamples must be a whole number"),
    ],
)
def test_what_cannot_be_compared_is_named(systems, options, message: str) -> None:
    with pytest.raises(InputError) as caught:
        compare(systems, **options)
    assert message in str(caught.value)


@pytest.fixture(scope="module")
def result() -> Comparison:
    base = np.random.default_rng(0).random(60)
    return compare(reports(**{"list_net": base + 0.2, "50% <b>|x": base, "p*q": base + 1e-14}))


def test_the_printed_table_says_what_is_shown(result: Comparison) -> None:
    text = str(result)
    assert "Means over 60 queries, convention standard" in text
    assert text.count("list_net is better") == 2
    assert text.count("  not shown\n") == 1
    assert "+0.2000" in text
    assert "shown where p (Holm) ≤ 0.05" in text


def test_every_way_to_show_it_is_escaped(result: Comparison) -> None:
    assert r"50% \<b>\|x" in result.to_markdown()
    assert r"list\_net" in result.to_markdown()
    lines = result.to_markdown().splitlines()
    assert all(line.replace("\\|", "").count("|") in (0, 5, 10) for line in lines)
    assert r"50\% \textless{}b\textgreater{}\textbar{}x" in result.to_latex()
    assert result.to_latex().count(r"\begin{tabular}") == result.to_latex().count(r"\end{tabular}") == 2
    assert "50% &lt;b&gt;|x" in result._repr_html_()
    assert "<b>list_net is better</b>" in result._repr_html_()


def test_rich_and_json(result: Comparison) -> None:
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=200).print(result)
    assert "50% <b>|x" in out.getvalue()
    back = json.loads(json.dumps(result.to_dict()))
    assert back["means"]["map"]["list_net"] == result.means["map"]["list_net"]
    assert back["differences"][0]["p_holm"] == result.differences[0].p_holm


def test_a_table_knows_numbers_from_text() -> None:
    table = Table(["name", "n", "x"], [["a", 3, np.float32(0.5)], ["b|c\nd", None, 0.25]], bold={(1, 2)}, digits=2)
    assert table.plain().splitlines() == ["name   n     x", "-----  -  ----", "a      3  0.50", "b|c d     0.25"]
    assert table.markdown().splitlines()[1:] == [
        "| :--- | ---: | ---: |",
        "| a | 3 | 0.50 |",
        "| b\\|c d |  | **0.25** |",
    ]
    assert table.latex().splitlines()[0] == r"\begin{tabular}{lrr}"
    assert r"b\textbar{}c d &  & \textbf{0.25} \\" in table.latex()
    assert "\\begin{table}" in Table(["a"], [], title="T").latex()
    assert "-1.334e+14" in Table(["a"], [[-133396178367191.3125]]).plain()
    assert "999999.50" in Table(["a"], [[999999.5]], digits=2).plain()
    with pytest.raises(ValueError, match="row 0 has 1 cells for 2 columns"):
        Table(["a", "b"], [["x"]])


def test_latex_escapes_every_special_character() -> None:
    row = Table([r"\{}$&#%_~^"], [["±≤−…"]]).latex().splitlines()
    assert row[2] == r"\textbackslash{}\{\}\$\&\#\%\_\textasciitilde{}\textasciicircum{} \\"
    assert row[4] == r"$\pm$$\leq$$-$\ldots{} \\"
