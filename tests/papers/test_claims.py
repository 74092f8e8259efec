"""Every sentence of every paper can come out either way: made-up numbers bear it out, others refute it.

`MADE_UP` has for each judge results and the verdicts they must get, a letter per sentence in its order: y(es), n(o), or
? where the numbers cannot decide.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from pathlib import Path

import numpy as np
import pytest

from toprank.certificates import Certificate
from toprank.papers import reproduce
from toprank.papers.clicks import PEERS
from toprank.papers.direct_optimization import methods
from toprank.papers.direct_optimization.methods import ADARANK, RANKBOOST
from toprank.papers.direct_optimization.tables import SHOWN
from toprank.papers.exhibits import JUDGES, VERDICTS, Own, judge
from toprank.papers.online_perceptrons.streams import LISTNET, THREE, TWO
from toprank.papers.precision_at_top.methods import PAPER, PERCEPTRON_AVG, PERCEPTRON_MAX, SGD_AVG, SGD_MAX

for paper in reproduce.papers():
    reproduce.makers(paper)  # imports the judges

THETA = np.linspace(0, 2 * np.pi, 8, endpoint=False)
HERE, THERE = np.where(np.arange(8) == 1, 0.0, 1.0)[None], np.where(np.arange(8) == 5, 0.0, 1.0)[None]
DIRECT, BASELINES = (*methods.DIRECT, *methods.OUR_DIRECT), (*methods.BASELINES, *methods.OUR_BASELINES)
RISING, FLAT = np.append(np.linspace(0.1, 0.4, 60), np.full(40, 0.4)), np.full(100, 0.4)
ORDER = "φL ≺ φS ≺ φE"
GROUP = np.repeat([0, 9], 50)


def reached(direct, baseline, **other):
    return {**dict.fromkeys(DIRECT, direct), **dict.fromkeys(BASELINES, baseline), **other}


def means(direct, baseline):
    return {name: np.full(5, value) for name, value in reached(direct, baseline).items()}


def p_values(label, between, among, difference=0.1, ada=None):
    base, shared = methods.BASELINES[0], {"set": label, "measure": "ndcg@1"}
    rows = [{**shared, "a": d, "b": base, "difference": difference, "p": between} for d in methods.DIRECT]
    if ada is not None:
        rows[1]["p"] = ada
    return ([*rows, {**shared, "a": methods.DIRECT[0], "b": methods.DIRECT[2], "difference": 0.1, "p": among}],)


def rates(*values, wide=0.0):
    found = dict(zip(SHOWN, values, strict=True))
    noise = {name: wide * np.array([-1.0, 0.0, 1.0]) * (name == ADARANK) for name in found}
    return ({name: dict.fromkeys(("d-n", "d-p"), v + noise[name]) for name, v in found.items()},)


def ahead(label, direct, baseline, wide=0.01, **other):
    printed = {name: [1.0 if name == "SVMmap" else 0.0] * 5 for name in methods.PAPER.values()}
    values, rng = reached(direct, baseline, **other), np.random.default_rng(0).normal(size=50)
    noise = wide * (rng - rng.mean())
    return {label: values}, "MAP", printed, lambda _, one, two: values[one] - values[two] + noise


def trained(curve, sizes, permu=None, bound=None):
    """Curves of training, and a bound that says nothing where none is given."""
    bound = np.linspace(-0.1, -9.0, 100) if bound is None else bound
    curves = {ADARANK: curve, f"bound of {ADARANK}": bound, methods.PERMURANK: curve if permu is None else permu}
    return curves, sizes


def groups(ada, boost, wide=0.0):
    noise = wide * np.tile([-1.0, 1.0], 50)
    values = {ADARANK: np.repeat(ada, 50) + noise, RANKBOOST: np.repeat(boost, 50)}
    return {name: [v[:50].mean(), None, v[50:].mean()] for name, v in values.items()}, values, GROUP


def costs(ada, growth):
    spent = {"AdaRank": ada, "PermuRank": (2.0, 3.0), "SVMmap": (1.0, 1.1)}
    cost = {name: {"CPU seconds": value} for name, value in spent.items()}
    return cost, {"queries": growth, "documents": growth}


def gaps(by_n, by_m, cosine, bound=0.9, wide=0.0, straight=0.9):
    """Rows of measured gaps: along, algorithm, φ, n, m, trained, largest, bound, exact bound, each training set's."""

    def row(axis, algorithm, kind, n, m, gap, most):
        off = np.array([-wide, wide]) * ((axis, algorithm) == ("m", "ListMLE") or kind == "linear")
        return (axis, algorithm, kind, n, m, 0, gap, 9, most, (gap + off).tolist())

    kinds = {"linear": straight, "exponential": 1.0, "sigmoid": 1.0}
    rows = [row("n", "ListMLE", kind, n, 10, by_n(n) * more, bound) for kind, more in kinds.items() for n in (10, 100)]
    for m in (5, 10):
        rows += [row("m", "ListMLE", "exponential", 100, m, by_m(m), bound)]
        others = ("ListNet top-one", "RankCosine")
        rows += [row("m", name, "exponential", 100, m, cosine(m), bound / 2) for name in others]
    return (rows,)


def rounds(two, three, listnet, wide=0.001):
    """The measure in two rounds, apart by `wide` for one learner."""
    return {TWO: two + np.array([-wide, wide]), THREE: np.full(2, three), LISTNET: np.full(2, listnet)}


def run(two, three, listnet, last=(10, 500), lost=(1.0, 2.0), bounds=(50.0, 5.0), apart=1e-4):
    ends = {TWO: (two, last[0], lost[0]), THREE: (three, last[1], lost[1]), LISTNET: (listnet, 9, 9.0)}
    return "s", ends, dict(zip((TWO, THREE), bounds, strict=True)), 1000, apart


def precise(worse=0.6, good=0.8, loose=0.7, dear=9.0, early=0.79, perceptron=None, wide=0.001):
    found = {
        PERCEPTRON_AVG: perceptron or good,
        SGD_AVG: good,
        PERCEPTRON_MAX: loose,
        SGD_MAX: loose,
        "1PMB": worse,
        "SVMPerf": worse,
    }
    runs = {
        name: np.array([value, value + wide * (name in (SGD_AVG, PERCEPTRON_AVG))]) for name, value in found.items()
    }
    spent = {name: np.full(2, dear if name == "SVMPerf" else 1.0) for name in PAPER}
    return tuple({"adult": each} for each in (runs, spent, {SGD_AVG: np.full(2, early)}))


def swept(above, spread):
    return above, {"adult": {SGD_AVG: [(0.5, 0.0), (0.5 - spread, 0.0)], "1PMB": [(0.5, 0.0), (0.1, 0.0)]}}, (100, 500)


def hierarchy(values, margins, apart=0.0):
    names = ("prec@k", "ramp", "avg", "max")
    pairs = ((names, values), (names[1:], margins))
    return *({n: np.array([v]) for n, v in zip(keys, each, strict=True)} for keys, each in pairs), np.array([apart])


def proved(value, vacuous_from):
    return [Certificate("mistakes", value, 5.0, "Theorem 7", vacuous_from=vacuous_from)]


def clicks(own, naive, true, trees=0.3, spread=0.001):
    entrants = {"naive": naive, "true": true, **dict.fromkeys(PEERS if trees else (), trees)}
    runs = {name: np.full(2, value) for name, value in entrants.items()}
    return ({"c": {"estimated": own + np.array([-spread, spread]), **runs}},)


MADE_UP = {
    "clicks._goal": [
        (clicks(0.5, 0.4, 0.505, spread=1e-4), "yyyyyyyy"),
        (clicks(0.5, 0.4, 0.505), "yyynyyyy"),
        (clicks(0.5, 0.4, 0.505, spread=0.02), "ynynyyyy"),
        (clicks(0.4, 0.4, 0.45), "nnnnyyyy"),
        (clicks(0.47, 0.4, 0.45, trees=0.5), "yynnnnnn"),
        (clicks(0.5, 0.4, 0.5, trees=None), "yyyn????"),
        (({},), "????????"),
    ],
    "clicks._helps": [
        (({"c": {"estimated": np.array([0.5]), "naive": np.array([0.4])}},), "y"),
        (({"c": {"estimated": np.array([0.4]), "naive": np.array([0.4])}},), "n"),
    ],
    "clicks._beats": [(({"c": ([0.5], [0.4])},), "y"), (({"c": ([0.4], [0.4])},), "n")],
    "direct_optimization.bounds._tighter": [
        (({"exponential": np.zeros(2), "logistic": np.ones(2)},), "y"),
        (({"exponential": np.array([0.0, 1.0]), "logistic": np.array([1.0, 0.9])},), "n"),
    ],
    "direct_optimization.bounds._tightest": [
        (({"a": np.array([0.0, 1.0]), "b": np.array([1.0, 0.0])},), "y"),
        (({"a": np.zeros(2), "b": np.ones(2)},), "n"),
    ],
    "direct_optimization.bounds._smallest": [
        ((THETA, HERE + 0.5, HERE, HERE), "yyy"),
        ((THETA, np.zeros((1, 8)), HERE + 0.5, HERE), "yyn"),  # flat: π/4 has its smallest value
        ((THETA, THERE, HERE + 1.5, HERE), "nyn"),
        ((THETA, HERE, THERE, HERE), "ynn"),
        ((THETA, np.concatenate([HERE, THERE]), *2 * [np.concatenate([HERE - 1, THERE])]), "nnn"),  # one draw of two
    ],
    "direct_optimization.bounds._above": [
        (({"a": np.array([0.1, 0.0])},), "y"),
        (({"a": np.array([0.1, -0.1])},), "n"),
    ],
    "direct_optimization.tables._fewer": [
        (rates(0.2, 0.3, 0.2, 0.3), "yy"),
        (rates(0.4, 0.3, 0.2, 0.3), "nn"),
        (rates(0.4, 0.3, 0.2, 0.3, wide=0.5), "??"),  # queries that differ more
    ],
    "direct_optimization.tables._vary": [
        ((np.arange(1.0, 100.0),), "n"),  # one query has next to none
        ((np.geomspace(1.0, 1e4, 9),), "y"),
    ],
    "direct_optimization.tables._grouped": [
        (groups([0.6, 0.3], [0.4, 0.3]), "yy"),
        (groups([0.4, 0.3], [0.6, 0.3]), "nn"),
        (groups([0.5, 0.6], [0.4, 0.3]), "yn"),
        (groups([0.6, 0.3], [0.4, 0.3], wide=5.0), "??"),
    ],
    "direct_optimization.tables._ahead": [
        (ahead("OHSUMED", 0.5, 0.4, SVMmap=0.6), "yy"),
        (ahead("OHSUMED", 0.4, 0.5), "nn"),
        (ahead("OHSUMED", 0.5, 0.4, **{ADARANK: 0.3, "SVMmap": 0.6}), "ny"),
        (ahead("OHSUMED", 0.5, 0.4, wide=5.0, SVMmap=0.6), "??"),
        (ahead("OHSUMED", 0.4, 0.5, wide=5.0), "??"),  # below, and not shown: the same rule both ways
        (ahead("TD2003", 0.5, 0.4), "y"),
        (ahead("TD2003", 0.3, 0.4), "n"),
    ],
    "direct_optimization.tables._undecided": [(([], "X"), "?????")],
    "direct_optimization.tables._almost_always": [
        (("OHSUMED", means(0.5, 0.4)), "y"),
        (("OHSUMED", means(0.4, 0.5)), "n"),
        # On the others the paper leaves AdaRank out.
        (("WSJ", {**means(0.5, 0.4), "AdaRank (Fig. 6)": np.zeros(5)}), "y"),
        (("WSJ", means(0.4, 0.5)), "n"),
    ],
    "direct_optimization.tables._significance": [
        (p_values("OHSUMED", 0.01, 0.5), "yy"),
        (p_values("OHSUMED", 0.2, 0.01), "nn"),
        (p_values("OHSUMED", 0.01, 0.5, -0.1), "ny"),  # significant, but the wrong way round
        (p_values("OHSUMED", 0.01, 0.5, ada=0.5), "ny"),
        (p_values("WSJ", 0.01, 0.5, ada=0.5), "yy"),  # where the paper leaves AdaRank out
        (p_values("WSJ", 0.2, 0.01), "nn"),
        (p_values("TD2003", 0.2, 0.5), "y"),  # where it finds no difference at all
        (p_values("TD2003", 0.01, 0.5), "n"),
    ],
    "direct_optimization.training._trained": [
        (trained(RISING, 50.0), "yyy?ny"),
        (trained(FLAT, 5.0, bound=np.linspace(0.1, 0.5, 100)), "nnnnyn"),
        (trained(RISING, 50.0, RISING[::-1], np.linspace(0.01, 0.09, 100)), "ynyyyy"),
    ],
    "direct_optimization.training._cheap": [
        (costs((0.5, 0.6), 1.0), "yy"),
        (costs((1.5, 1.6), 2.0), "nn"),
        (costs((0.5, 1.2), 0.3), "??"),  # overlap; far less than it may be
    ],
    "listwise_generalization.tables._as_defined": [((1e-12, {"linear": 1e-9}), "yy"), ((0.01, {"linear": 0.1}), "nn")],
    "listwise_generalization.tables._right": [((2, [[5, 5, 5], [1, 1, 1]]), "yy"), ((2, [[5, 4, 3], [1, 1, 1]]), "nn")],
    "listwise_generalization.tables._factor": [
        (({1.0: 1 + math.e},), "yy"),
        (({1.0: 0.9},), "nn"),
        (({1.0: 1.5},), "ny"),
    ],
    "listwise_generalization.tables._cases": [(([], ORDER, ORDER), "yyy"), ((["φL ≻ φE"], "other", "other"), "nnn")],
    "listwise_generalization.tables._by_length": [
        (([("a", "yes", "yes", 5)], {"agree": 9, "points": 9, "footnote": 4, "footnote agrees": 4}), "yyyy"),
        (([("a", "yes", "no", 7)], {"agree": 8, "points": 9, "footnote": 4, "footnote agrees": 3}), "nnnn"),
    ],
    "listwise_generalization.tables._vanish": [(([-0.5, -0.5003],), "y"), (([-0.5, -0.4],), "n")],
    "listwise_generalization.measured._contracts": [
        (([("a", "φL", 1.0, 2.0, 3.0)],), "yy"),
        (([("a", "φL", 3.0, 2.0, 1.0)],), "nn"),
        (([("a", "φL", 1.0, 2.0, 3.0), ("b", "φL", 1.0, 4.0, 3.0)],), "yn"),
    ],
    "listwise_generalization.measured._findings": [
        (gaps(lambda n: n**-0.5, lambda m: 1 / m, lambda m: m / 50), "yyyyyyy"),
        (gaps(lambda _: 0.95, lambda m: m / 50, lambda m: 1 / m, straight=1.0), "nnnnnnn"),
        (gaps(lambda n: n**-0.5, lambda m: 1 / m, lambda m: m / 50, 7.0), "?yyyyyy"),  # a bound above 1 cannot fail
        (gaps(lambda n: n**-0.5, lambda m: 1 / m, lambda m: m / 50, wide=0.3), "yy???yy"),  # sets that differ more
    ],
    "listwise_generalization.measured._within": [
        (([("c", "ListMLE", 0.1, 0.2, 9.0, 0.5), ("c", "RankCosine", 0.1, 0.2, 9.0, 0.4)], 152.0), "yyy"),
        (([("c", "ListMLE", 0.1, 0.6, 9.0, 0.5), ("c", "RankCosine", 0.1, 0.6, 9.0, 0.4)], 90.0), "nnn"),
        (([("c", "ListMLE", 0.1, 0.2, 9.0, 1.5), ("c", "RankCosine", 0.1, 0.2, 9.0, 0.6)], None), "??"),
    ],
    "online_perceptrons.separable._meet": [
        (([(0.1, 0.2, 99, 99, 100.0, 50.0, 50.0, 60.0, 900.0)],), "yyy"),
        (([(0.1, 0.2, 99, 120, 100.0, 50.0, 40.0, 60.0, 900.0)],), "nyn"),  # too many mistakes, too small a loss
        (([(0.1, 0.2, 99, 10, 100.0, 50.0, 60.0, 60.0, 900.0)],), "yny"),
    ],
    "online_perceptrons.separable._separated": [
        (run(0.9999, 0.9998, 0.99), "yyyyy"),
        (run(0.99, 0.9, 0.995, (10, 999), (60.0, 6.0), apart=0.01), "nnnnn"),
        (run(0.9999, 0.9998, 0.99, (10, 999)), "?yyyy"),  # too short
        (run(0.9999, 0.9998, 0.99, bounds=(1e9, 5.0)), "yyy?y"),  # more than all rounds can lose
    ],
    "online_perceptrons.separable._grow": [((0.01, 0.5), "yy"), ((0.2, 0.9), "nn")],
    "online_perceptrons.streams._beside": [
        (
            (
                {
                    "mslr-web10k": rounds(0.5, 0.2, 0.4),
                    "yahoo-set1": rounds(0.5, 0.2, 0.505),
                    "yandex": rounds(0.5, 0.2, 0.5),
                },
                "AP",
            ),
            "yyyyyy",
        ),
        (
            (
                {
                    "mslr-web10k": rounds(0.3, 0.49, 0.4),
                    "yahoo-set1": rounds(0.3, 0.49, 0.5),
                    "yandex": rounds(0.3, 0.49, 0.5),
                },
                "AP",
            ),
            "nnnnnn",
        ),
        (({"mslr-msn1-5k": rounds(0.5, 0.2, 0.4)}, "AP"), "yy????"),
        (({"mslr-msn1-5k": rounds(0.3, 0.4, 0.4)}, "AP"), "nn????"),
        (({"mslr-msn1-5k": rounds(0.5, 0.49, 0.49, wide=0.1)}, "AP"), "??????"),  # ahead by means that are all over
        (({"yandex": rounds(0.5, 0.4, 0.49, wide=0.1)}, "AP"), "??????"),
        (({"something else": rounds(0.3, 0.49, 0.5)}, "AP"), "??????"),
    ],
    "online_perceptrons.streams._depends": [
        (({TWO: [0.4, 0.5], THREE: [0.4, 0.4]},), "yy"),
        (({TWO: [0.4, 0.4], THREE: [0.4, 0.5]},), "nn"),
    ],
    "precision_at_top.figures._findings": [
        (precise(), "yyynyyyyy"),
        (precise(worse=0.9, loose=0.9, dear=0.1), "nnnynnnnn"),
        (precise(perceptron=0.75, early=0.5), "yyynyyynn"),
        (precise(early=0.7), "yyynyyyyn"),  # as good as SVMPerf, not as the best
        (precise(wide=0.5), "????y?yy?"),  # splits that differ more than the methods
    ],
    "precision_at_top.figures._swept": [
        (swept([True, True], 0.01), "yy"),
        (swept([True, None, False], 0.1), "nn"),
        (swept([True, None], 0.1), "?n"),
    ],
    "precision_at_top.theory._hierarchy": [
        (hierarchy((0, 0, 0, 0), (3, 2, 1)), "yyyyyyyy"),
        (hierarchy((4, 3, 2, 1), (1, 2, 3), 0.1), "nnnnnnnn"),
        (hierarchy((0, 1, 2, 3), (0.3, 0.2, 0.1)), "yyyy???y"),
    ],
    "precision_at_top.theory._mistakes": [
        ((proved(9.0, 20.0),), "y"),
        ((proved(3.0, 20.0),), "n"),
        ((proved(30.0, 20.0),), "?"),
    ],
    "precision_at_top.theory._rates": [
        (({"avg": (-0.5, 1.0)}, -0.6, {10: 0.2, 20: 0.1}, {10: 0.1}), "yy?"),
        (({"avg": (-0.1, 1.0)}, -0.1, {10: 0.2, 20: 0.1}, {10: 0.1}), "nn?"),
    ],
    "precision_at_top.theory._wrong": [
        (([("r", "", 0.0, 1.0, 0.0), ("s", "", 1.0, -5.0, 0.0), ("a", "", 0.0, 1.0, 0.0)],), "yy"),
        (([("r", "", 0.0, 1.0, 0.0), ("s", "", 0.0, 5.0, 0.0), ("a", "", 0.0, 1.0, 0.0)],), "nn"),
    ],
}
LETTER = dict(zip((True, False, None), "yn?", strict=True))


def name_of(say):
    return f"{say.__module__.removeprefix('toprank.papers.')}.{say.__qualname__}"


PAPERS = {name_of(say): say for say in JUDGES if say.__module__.startswith("toprank.papers.")}


def played(say, given):
    """Yield for each sentence the line of its `yield`, its text and its verdict."""
    sentences = say(*given)
    for text, holds, why in sentences:
        assert text.endswith(".")
        assert why.endswith(".")
        yield sentences.gi_frame.f_lineno, text, LETTER[holds if holds is None else bool(holds)]


def yields(say):
    """Return the lines of each `yield` in a judge, but of those that never decide: their verdict is written as None."""
    lines, first = inspect.getsourcelines(say)
    nodes = [n for n in ast.walk(ast.parse(textwrap.dedent("".join(lines)))) if isinstance(n, ast.Yield)]
    return [
        range(first + n.lineno - 1, first + n.end_lineno)
        for n in nodes
        if not (isinstance(n.value.elts[1], ast.Constant) and n.value.elts[1].value is None)
    ]


def test_every_judge_of_every_paper_has_made_up_results():
    assert set(MADE_UP) == set(PAPERS)


@pytest.mark.parametrize(("name", "given", "verdicts"), [(n, *case) for n, cases in MADE_UP.items() for case in cases])
def test_verdicts_follow_the_numbers(name, given, verdicts):
    assert "".join(letter for *_, letter in played(PAPERS[name], given)) == verdicts


@pytest.mark.parametrize("name", list(MADE_UP))
def test_every_sentence_comes_out_both_ways(name):
    found = [told for given, _ in MADE_UP[name] for told in played(PAPERS[name], given)]
    deciding = yields(PAPERS[name])
    for place in deciding:
        assert {"y", "n"} <= {letter for line, _, letter in found if line in place}, f"line {place[0]}"
    for text in {text for line, text, _ in found if any(line in place for place in deciding)}:
        letters = {letter for _, other, letter in found if other == text}
        assert {"y", "n"} <= letters, text


def test_own_sentences_are_marked():
    said = [(PAPERS[name], given) for name, cases in MADE_UP.items() for given, _ in cases]
    own = {text for one in said for text in owned(*one)}
    every = {text for one in said for _, text, _ in played(*one)}
    assert {text for text in every if text.startswith(("From 10,000 clicks", "Theorem 1 on"))} <= own
    assert "Every row of Table 3 has a case under its own condition." in own
    assert not {text for text in own if "OHSUMED SVMmap" in text or text.startswith("AdaRank")}
    assert len(own) < len(every) / 3


def owned(say, given):
    return {str(text) for text, *_ in say(*given) if isinstance(text, Own)}


def test_the_papers_own_table_is_told_where_it_refutes_its_sentence():
    given = ahead("OHSUMED", 0.45, 0.46, wide=0.1)
    printed = {name: [0.44, 0.5] if name in ("SVMmap", "AdaRank", "PermuRank") else [0.45, 0.4] for name in given[2]}
    why = next(PAPERS["direct_optimization.tables._ahead"](given[0], "MAP", printed, given[3]))[2]
    assert "(difference -0.0100)" in why
    assert "In the paper's own table the sentence is not true either, and the numbers replicate" in why
    assert "would be)" in why
    far = next(
        PAPERS["direct_optimization.tables._ahead"](given[0], "MAP", printed, lambda *_: np.array([0.4, 0.5, 0.45]))
    )[2]
    assert "numbers replicate" not in far


def test_a_claim_is_made_by_a_judge_only():
    """No module of a paper makes a claim past its judges, so that none is past this file."""
    home = Path(reproduce.__file__).parent
    for file in (file for file in home.rglob("*.py") if file.name != "exhibits.py"):
        called = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        assert not {"Claim", "claim"} & {func.id for func in called if isinstance(func, ast.Name)}, file


def test_a_forgotten_sentence_would_be_seen():
    @judge
    def forgets(a):
        yield "A.", a > 0, "a."
        if a > 5:
            yield "B.", a > 6, "a."

    say = JUDGES.pop()
    assert len(yields(say)) == 2
    lines = {line for given in ((1,), (0,)) for line, *_ in played(say, given)}
    assert not any(line in yields(say)[1] for line in lines)
    assert [c.verdict for c in forgets(0)] == [VERDICTS[1]]
