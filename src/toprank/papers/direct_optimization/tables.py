"""Tables 2 and 3, Figs. 8 to 16 but 11, the tests between methods, and the comparison beyond the paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..._tables import Cell, Table
from ..._typing import Floats
from ...data.dataset import QueryDataset
from ...statistics._intervals import every, interval, spread, surely
from ...surrogates.pairwise import misordered_pairs, pair_counts
from ..exhibits import Exhibit, Maker, Panel, Said, judge, panels
from ..experiments import MEASURES, Letor, Results, on_folds
from . import methods as the
from .methods import ALL, BASELINES, CHOSEN, DIRECT, LITERAL, OUR_BASELINES, OUR_DIRECT, OURS, PAPER, SETS

SHOWN = {name: ALL[name] for name in (the.ADARANK, the.RANKBOOST, "AdaRank, rule improve", "RankBoost (queries equal)")}
Means = Mapping[str, Mapping[str, float]]  # of each method on each collection
LABELS = [letor.label for letor in SETS]
PAIRS = {"d-n": (2, 0), "d-p": (2, 1), "p-n": (1, 0)}  # of grades: definitely, partially, not relevant


def ranks(values: Sequence[float]) -> list[int]:
    """Return the place of each value, the highest first."""
    return [1 + sum(other > value for other in values) for value in values]


def _table(number: int, measure: str, found: Sequence[Results]) -> Exhibit:
    columns, what = ["method"], measure.upper()
    cells: dict[str, list[Cell]] = {method: [method] for method in ALL}
    which, printed = MEASURES.index(measure), {name: the.PRINTED[name][number - 2] for name in PAPER.values()}
    values = {results.letor.label: {m: float(results.means(m)[which]) for m in ALL} for results in found}
    for label, reached in values.items():
        columns += [label, "published", "difference"]
        place = ranks([reached[method] for method in LITERAL])
        theirs = [row[LABELS.index(label)] for row in printed.values()]
        given = the.MISPRINTED if (number, label) == (2, "OHSUMED") else ranks(theirs)
        for method, own, said, rank in zip(LITERAL, place, theirs, given, strict=True):
            mean = reached[method]
            cells[method] += [f"{mean:.4f} ({own})", f"{said:.4f} ({rank})", f"{mean - said:+.4f}"]
        for method in OURS:
            cells[method] += [f"{reached[method]:.4f}", None, None]
    note = "Mean over the queries of a fold, then over folds. In brackets: rank among the paper's five"
    note += ", which prints 2 and 3 for 0.4456 and 0.4469 on OHSUMED." if number == 2 else "."

    def gap(label: str, one: str, other: str) -> Floats:
        (here,) = (results for results in found if results.letor.label == label)
        first, second = (np.asarray(here.pooled(method).per_query[measure]) for method in (one, other))
        return np.asarray(first - second)

    claims = (*_ahead(values, what, printed, gap), *_undecided(values, f"The direct methods are ahead by {what}"))
    title, table = f"Table {number}: {what} on the test parts", Table(columns, list(cells.values()))
    return Exhibit(f"table{number}", title, values, table, (note, CHOSEN), claims=claims)


@judge
def _ahead(
    values: Means, what: str, printed: Mapping[str, Sequence[float]], gap: Callable[[str, str, str], Floats]
) -> Said:
    for label, reached in values.items():
        (worst, most), (mine, other) = (
            (min(direct, key=lambda m: reached[m]), max(baselines, key=lambda m: reached[m]))
            for direct, baselines in ((DIRECT, BASELINES), (OUR_DIRECT, OUR_BASELINES))
        )
        theirs = [printed[name][LABELS.index(label)] for name in PAPER.values()]
        text = f"On {label} SVMmap, AdaRank and PermuRank have a higher {what} than Ranking SVM and RankBoost."
        told = f"The lowest of the three has {reached[worst]:.4f}, the higher baseline {reached[most]:.4f} (difference"
        apart, by = gap(label, worst, most), min(theirs[:3]) - max(theirs[3:])
        told = f"{told} {spread(apart)}); with the library's own designs {reached[mine]:.4f} and"
        told = f"{told} {reached[other]:.4f}; the paper prints {min(theirs[:3]):.4f} and {max(theirs[3:]):.4f}"
        yield text, surely(apart), f"{told} (difference {by:+.4f}).{_beside_printed(apart, by)}"
        if label == "OHSUMED":
            top, best = max(LITERAL, key=lambda m: reached[m]), max(PAPER, key=lambda m: printed[PAPER[m]][0])
            others = [m for m in LITERAL if m != best]
            second = max(others, key=lambda m: reached[m])
            told = f"Here it is {top} with {reached[top]:.4f}; {best} is ahead of {second} by"
            holds = every(surely(gap(label, best, m)) for m in others)
            yield (
                f"{PAPER[best]} has the highest {what} of the five on OHSUMED.",
                holds,
                (f"{told} {spread(gap(label, best, second))}."),
            )


def _beside_printed(apart: Floats, printed: float) -> str:
    """Say what the paper's own difference says of its sentence, and whether it lies in the interval found here."""
    mean, half = interval(apart)
    told = "" if printed > 0 else " In the paper's own table the sentence is not true either"
    if abs(mean - printed) <= half:
        told = f"{told or ' The numbers'}{', and the numbers' if told else ''} replicate: the printed difference lies"
        return f"{told} within the interval."
    return f"{told}." if told else ""


@judge
def _undecided(there: Collection[str], text: str) -> Said:
    for letor in (letor for letor in SETS if letor.label not in there):
        yield f"{text} on {letor.label}.", None, f"{letor.label}: {letor.where}."


@on_folds(SETS, ALL)
def table2(found: Sequence[Results]) -> Exhibit:
    """Table 2: MAP of the five methods to the letter and of ours, beside the paper's."""
    return _table(2, "map", found)


@on_folds(SETS, ALL)
def table3(found: Sequence[Results]) -> Exhibit:
    """Table 3: NDCG@3 of the five methods to the letter and of ours, beside the paper's."""
    return _table(3, "ndcg@3", found)


def _accuracies(number: int, letor: Letor) -> Maker:
    """Return the figure of one collection."""

    def show(found: Sequence[Results]) -> Exhibit:
        means = {method: found[0].means(method) for method in ALL}
        floor = 0.8 * min(values.min() for values in means.values())
        drawn = panels(Panel({m: means[m].tolist() for m in LITERAL}, MEASURES, ylim=(floor, None), bars=True))
        table = Table(("method", *MEASURES), [[m, *map(float, values)] for m, values in means.items()])
        folds = f"Convention {letor.convention}; {len(found[0].tests)} folds"
        claims = _almost_always(letor.label, means) if letor in (the.OHSUMED, the.WSJ, the.AP) else ()
        title, notes = f"Fig. {number}: accuracies on {letor.label}", (f"{folds}. Drawn are the paper's five methods.",)
        return Exhibit(f"fig{number}", title, {"measures": MEASURES, "means": means}, table, notes, drawn, claims)

    show.__name__ = f"fig{number}"
    show.__doc__ = f"Fig. {number}: MAP and NDCG@1, 3, 5, 10 of all methods on {letor.label}."
    return on_folds([letor], ALL)(show)


@judge
def _almost_always(label: str, means: Mapping[str, Floats]) -> Said:
    def won(direct: Iterable[str], baselines: Iterable[str]) -> tuple[int, int]:
        gaps = [means[a] - means[b] for a, b in product(direct, baselines)]
        return int(np.sum(np.array(gaps) > 0)), np.size(gaps)

    good, of = won([m for m in DIRECT if label == "OHSUMED" or "AdaRank" not in m], BASELINES)
    mine, own = won(OUR_DIRECT, OUR_BASELINES)
    told = f"A direct method is above a baseline in {good} of {of} comparisons (five measures); with the library's own"
    told = f"{told} designs in {mine} of {own}. Read as: in nine of ten."
    yield f"On {label} the direct methods almost always outperform the baselines.", good >= 0.9 * of, told


fig8, fig9, fig10 = _accuracies(8, the.OHSUMED), _accuracies(9, the.TD2003), _accuracies(10, the.TD2004)
fig12, fig13 = _accuracies(12, the.WSJ), _accuracies(13, the.AP)


@on_folds(SETS, LITERAL)
def ttests(found: Sequence[Results]) -> Exhibit:
    """Paired t-tests between the paper's five methods, MAP and NDCG@1, on every collection (Sec. 6.1)."""
    tests = [
        {"set": r.letor.label, **{n: getattr(d, n) for n in ("measure", "a", "b", "difference", "p", "p_holm")}}
        for r in found
        for d in r.compared(LITERAL, "t").differences
        if d.measure in ("map", "ndcg@1")
    ]
    gaps = [(t["set"], t["measure"], f"{t['a']} − {t['b']}", f"{t['difference']:+.4f}") for t in tests]
    rows = [(*gap, t["p"], t["p_holm"]) for gap, t in zip(gaps, tests, strict=True)]
    table = Table(("collection", "measure", "compared", "difference", "p", "p (Holm)"), rows)
    notes = ("Over the test queries of all folds; p without a correction is the paper's.",)
    claims = (*_significance(tests), *_undecided({t["set"] for t in tests}, "The t-tests agree with the paper's"))
    return Exhibit("ttests", "Paired t-tests", {"tests": tests}, table, notes, claims=claims)


@judge
def _significance(tests: Sequence[Mapping[str, Any]]) -> Said:
    """What the paper says of each collection: Sections 6.1 (LETOR) and 6.2 (WSJ and AP, where AdaRank is left out)."""
    for label in dict.fromkeys(t["set"] for t in tests):
        top = [t for t in tests if t["set"] == label and t["measure"] == "ndcg@1"]
        small, wide = label in (the.TD2003.label, the.TD2004.label), label == the.OHSUMED.label
        direct = [m for m in DIRECT if wide or m != the.ADARANK]
        between = [t for t in top if {t["a"], t["b"]} & set(direct) and {t["a"], t["b"]} & set(BASELINES)]
        better = [t for t in between if t["p"] < 0.05 and (t["difference"] > 0) == (t["a"] in direct)]
        among = [t for t in top if small or {t["a"], t["b"]} <= set(direct)]
        apart, whose = [t for t in among if t["p"] < 0.05], "the direct methods" if wide else "SVMmap and PermuRank"
        if not small:
            text = f"On {label} the gains of {whose} over the baselines in NDCG@1 are significant (p < 0.05)."
            told = f"{len(better)} of {len(between)} are, the smallest p is {min(t['p'] for t in between):.3f}."
            yield text, len(better) == len(between), told
        text = f"On {label} no significant difference in NDCG@1 exists among {'all methods' if small else whose}."
        told = f"{len(apart)} of {len(among)} have p < 0.05, the smallest p is {min(t['p'] for t in among):.3f}."
        yield text, not apart, told


@on_folds([the.OHSUMED], SHOWN)
def fig14(found: Sequence[Results]) -> Exhibit:
    """Fig. 14: share of test pairs that AdaRank and RankBoost put the wrong way round, by pair of grades."""
    wrong = {m: {label: _wrong(found[0], m, *grades) for label, grades in PAIRS.items()} for m in SHOWN}
    rates = {m: {label: float(each.mean()) for label, each in found.items()} for m, found in wrong.items()}
    table = Table(("method", *PAIRS), [[method, *values.values()] for method, values in rates.items()])
    drawn = Panel({m: list(v.values()) for m, v in rates.items()}, list(PAIRS), "", "error", bars=True)
    title, notes = "Fig. 14: error rates by pair of grades on OHSUMED", ("Tied pairs count one half.",)
    return Exhibit("fig14", title, rates, table, notes, panels(drawn), _fewer(wrong))


@judge
def _fewer(wrong: Mapping[str, Mapping[str, Floats]]) -> Said:
    for label in ("d-n", "d-p"):
        ada, boost, ours, theirs = (wrong[name][label] for name in SHOWN)
        told = f"{ada.mean():.4f} against {boost.mean():.4f} (difference {spread(ada - boost)}); the library's own"
        told = f"{told} designs {ours.mean():.4f} and {theirs.mean():.4f}."
        yield f"AdaRank makes fewer errors than RankBoost on {label} pairs.", surely(boost - ada), told


def _wrong(results: Results, method: str, high: int, low: int) -> Floats:
    """Return what each query adds to the share of wrong pairs: the mean over queries is that share."""
    test, keep = results.all_tests, np.isin(results.all_tests.y, (high, low))
    ptr = np.concatenate(([0], np.cumsum(np.add.reduceat(keep, test.ptr[:-1])))).astype(np.int64)
    against, tied = misordered_pairs(np.concatenate(results.scores[method])[keep], test.y[keep], ptr)
    return np.asarray((against + 0.5 * tied) * len(against) / pair_counts(test.y[keep], ptr).sum())


def _groups(test: QueryDataset) -> tuple[Floats, Any, list[str], Any]:
    """Return how many document pairs each query has, its group of 1,000, their names and their sizes."""
    pairs = pair_counts(test.y, test.ptr)
    group = np.minimum(pairs // 1000, 10).astype(int)
    names = [f"{g}k-{g + 1}k" if g < 10 else "10k and more" for g in range(int(group.max()) + 1)]
    return pairs, group, names, np.bincount(group, minlength=len(names))


@on_folds([the.OHSUMED], SHOWN)
def fig15(found: Sequence[Results]) -> Exhibit:
    """Fig. 15: how many queries have how many document pairs."""
    pairs, _, names, counts = _groups(found[0].all_tests)
    drawn = panels(Panel({"queries": counts.tolist()}, names, "", "queries", bars=True))
    table = Table(("document pairs", "queries"), list(zip(names, counts.tolist(), strict=True)))
    title, data = "Fig. 15: queries by number of document pairs on OHSUMED", {"groups": names, "queries": counts}
    return Exhibit("fig15", title, data, table, draw=drawn, claims=_vary(pairs))


@on_folds([the.OHSUMED], SHOWN)
def fig16(found: Sequence[Results]) -> Exhibit:
    """Fig. 16: MAP of AdaRank and RankBoost for queries with few and with many document pairs."""
    _, group, names, counts = _groups(found[0].all_tests)
    values = {method: np.asarray(found[0].pooled(method).per_query["map"]) for method in SHOWN}
    some = [(group == g, size) for g, size in enumerate(counts)]
    means = {m: [float(v[which].mean()) if size else None for which, size in some] for m, v in values.items()}
    rows = list(zip(names, counts.tolist(), *means.values(), strict=True))
    table, drawn = Table(("document pairs", "queries", *means), rows), Panel(means, names, "", "MAP", bars=True)
    title, data = (
        "Fig. 16: MAP by number of document pairs on OHSUMED",
        {"groups": names, "queries": counts, "map": means},
    )
    return Exhibit("fig16", title, data, table, draw=panels(drawn), claims=_grouped(means, values, group))


@judge
def _vary(pairs: Floats) -> Said:
    low, middle, high = np.quantile(pairs, (0.1, 0.5, 0.9))
    told = f"Nine of ten have at least {low:,.0f}, half {middle:,.0f}, one of ten {high:,.0f}; read as: tenfold."
    yield "The numbers of document pairs vary much from query to query.", bool(high >= 10 * low), told


@judge
def _grouped(means: Mapping[str, Sequence[float | None]], values: Mapping[str, Floats], group: Any) -> Said:
    ada, boost = (float(np.mean([v for v in means[m] if v is not None])) for m in (the.ADARANK, the.RANKBOOST))
    gain, small = values[the.ADARANK] - values[the.RANKBOOST], group < 6  # of a thousand pairs each
    of_group = np.bincount(group)
    by_group = gain * len(gain) / ((of_group > 0).sum() * of_group[group])  # their mean is that over the groups
    text = "The mean MAP of AdaRank over the groups is higher than RankBoost's."
    yield text, surely(by_group), f"{ada:.4f} against {boost:.4f}, {spread(by_group)}; over all queries {spread(gain)}."
    text, holds = "AdaRank gains most over RankBoost on queries with few document pairs (up to 6,000).", None
    if small.any() and not small.all():
        beyond = gain * len(gain) * np.where(small, 1 / small.sum(), -1 / (~small).sum())  # the mean: few − many pairs
        holds = every((surely(gain[small]), surely(beyond)))
    yield text, holds, f"{spread(gain[small])} there, {spread(gain[~small])} on the others."


@on_folds(the.WIDER, {**ALL, **the.MORE})
def comparison(found: Sequence[Results]) -> Exhibit:
    """Beyond the paper: all methods, ListNet and perceptrons on OHSUMED 2.0, 3.0 and MQ2008."""
    rows: list[list[Cell]] = []
    values: dict[str, Any] = {}
    notes = []
    for results in found:
        letor, base = results.letor, OUR_BASELINES[0]
        tested = results.compared(results.scores, baseline=base)
        values[letor.name] = {}
        for method in results.scores:
            means, low_high = results.means(method), tested.interval(method, "map")
            known = the.PUBLISHED if letor is the.OHSUMED else {}
            published = known.get(PAPER.get(method, method), (None,) * len(MEASURES))
            gaps = [None if theirs is None else float(m - theirs) for m, theirs in zip(means, published, strict=True)]
            values[letor.name][method] = {"means": means, "published": published, "difference": gaps}
            shown = [f"{m:.4f}" + ("" if gap is None else f" ({gap:+.4f})") for m, gap in zip(means, gaps, strict=True)]
            rows.append([letor.label, method, *shown, f"[{low_high[0]:.3f}, {low_high[1]:.3f}]"])
        sure = [d for d in tested.differences if d.p_holm < 0.05]
        told = f"{letor.label}: against {base}, {len(sure)} of {len(tested.differences)} differences are shown at 5%"
        named = "".join(f"; {d.a} − {d.b} {d.measure} {d.difference:+.4f}" for d in sure)
        notes.append(f"{told} (permutation test, Holm){named}.")
    notes += ["In brackets after a mean: the difference to the published figure. Interval: 95% of MAP.", CHOSEN]
    table = Table(("set", "method", *MEASURES, "MAP interval"), rows)
    return Exhibit("comparison", "All methods on three LETOR sets", values, table, tuple(notes))


ADA, PERMU = tuple(OURS)[:2]


@on_folds(the.WIDER, {ADA: OURS[ADA], PERMU: OURS[PERMU], **the.SWITCH})
def switch(found: Sequence[Results]) -> Exhibit:
    """The paper's closing idea: does PermuRank gain from starting at an AdaRank model?"""
    values = {results.letor: {m: results.means(m) for m in results.scores} for results in found}
    rows: list[list[Cell]] = [
        [letor.label, m, *map(float, reached)] for letor, means in values.items() for m, reached in means.items()
    ]
    gaps = {r.letor.label: r.compared((PERMU, the.LATE)).difference("map", PERMU, the.LATE) for r in found}
    notes = tuple(f"{on}: PermuRank − {the.LATE} {gap.difference:+.4f}, p = {gap.p:.3f}." for on, gap in gaps.items())
    stored = {letor.name: means for letor, means in values.items()}
    return Exhibit("switch", "Type one first, then type two", stored, Table(("set", "method", *MEASURES), rows), notes)
