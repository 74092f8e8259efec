"""What is said of a judge: agreement, bias and favourites by their definitions, and rules on what was judged."""

from __future__ import annotations

import numpy as np
import pytest

import toprank as tr
from tests.oracles import judges as oracle
from toprank.judging.agreement import agreement, documents_apart, mean_gaps
from toprank.judging.favour import biases, favours, suggestions
from toprank.judging.matching import TwoJudges, judged_share


def judgements(rng, queries, documents, grades=4):
    return {f"q{q}": {f"d{d}": int(rng.integers(grades)) for d in range(documents)} for q in range(queries)}


def noisy(qrels, rng, change):
    return {q: {d: change(g, rng) for d, g in docs.items()} for q, docs in qrels.items()}


def runs_of(qrels, rng, names=("a", "b", "c")):
    return {
        name: {q: {d: g + noise * rng.normal() for d, g in docs.items()} for q, docs in qrels.items()}
        for name, noise in zip(names, (0.5, 1.0, 3.0), strict=False)
    }


def half_right(grade, rng):
    return grade if rng.random() < 0.6 else int(rng.integers(4))


def test_agreement_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    people = judgements(rng, 6, 7)
    machine = noisy(people, rng, half_right)
    machine["elsewhere"] = {"d0": 1}
    both = TwoJudges.of(people, machine)
    pairs = [(g, machine[q][d]) for q, docs in people.items() for d, g in docs.items()]
    found = agreement(both)
    assert found.kappa == pytest.approx(oracle.weighted_kappa(pairs), rel=1e-12)
    assert found.interval[0] < found.kappa < found.interval[1]
    for i, a in enumerate(found.grades):
        for j, b in enumerate(found.grades):
            assert found.confusion[i, j] == pairs.count((a, b))
    assert found.exact == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert found.higher == pytest.approx(np.mean([b > a for a, b in pairs]))
    q, d, a, b = documents_apart(both, 1)[0]
    assert (people[q][d], machine[q][d]) == (a, b)
    assert abs(a - b) == max(abs(x - y) for x, y in pairs)
    for name, gap in zip(both.queries, mean_gaps(both), strict=False):
        assert gap == pytest.approx(np.mean([abs(g - machine[name][d]) for d, g in people[name].items()]))


def test_one_grade_alone_has_no_kappa():
    found = tr.judge({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1}, "r": {"a": 1}})
    assert np.isnan(found.agreement.kappa)
    assert found.to_dict()["agreement"]["kappa"] is None
    assert "no weighted kappa, as both gave one grade alone" in found.notes[0]


def test_bias_and_favour_are_those_of_the_definition_and_a_kind_judge_is_seen():
    rng = np.random.default_rng(1)
    h = rng.random((3, 40))
    f = np.clip(h + rng.normal(scale=0.05, size=h.shape), 0, 1)
    fair = favours(("a", "b", "c"), h, f)
    assert not any(one.shown for one in fair)
    f[1] = np.clip(f[1] + 0.3, 0, 1)
    found = {(one.a, one.b): one for one in favours(("a", "b", "c"), h, f)}
    for (a, b), (i, j) in {("a", "b"): (0, 1), ("a", "c"): (0, 2), ("b", "c"): (1, 2)}.items():
        assert found[a, b].favour == pytest.approx(oracle.mean_favour(h[i], h[j], f[i], f[j]))
        assert found[a, b].shown == (found[a, b].interval[0] > 0 or found[a, b].interval[1] < 0)
    assert found["a", "b"].verdict == found["b", "c"].verdict == "favours b"
    assert found["a", "c"].verdict == "not shown"
    for i, one in enumerate(biases(("a", "b", "c"), h, f)):
        assert one.bias == pytest.approx(np.mean(f[i]) - np.mean(h[i]))
        assert one.interval[0] <= one.bias <= one.interval[1]


def test_further_queries_are_those_of_a_plan():
    rng = np.random.default_rng(2)
    h, f = rng.random((2, 60)), rng.random((2, 300)) + np.array([[0.05], [0.0]])
    found = suggestions(("a", "b"), [(0, 1)], h, f, 1)[0]
    plan = _plan(h, abs(found.machine))
    assert found.needed == plan.needed
    assert found.machine == pytest.approx((f[0] - f[1]).mean())
    same = suggestions(("a", "b"), [(0, 1)], h, np.full((2, 300), 0.5), 1)[0]
    assert same.needed is None


def _plan(h, difference):
    reports = []
    for row in h:
        data = tr.QueryDataset.from_arrays(
            np.zeros((2 * len(row), 1)), np.tile([0, 1], len(row)), np.repeat(np.arange(len(row)), 2)
        )
        report = tr.evaluate(data.y, data, ["map"])
        report.per_query["map"] = row
        reports.append(report)
    return tr.queries_needed(*reports, difference=difference)["map"]


def test_the_whole_report_says_what_its_parts_say():
    rng = np.random.default_rng(3)
    everything = judgements(rng, 30, 12)
    machine = noisy(everything, rng, half_right)
    people = {q: everything[q] for q in list(everything)[5:17]}
    runs = runs_of(everything, rng)
    found = tr.judge(people, machine, runs, "ndcg@5", judge_name="robot", baseline="c", random_state=1)
    assert (found.n_people, found.n_machine) == (12, 18)
    by_people = {name: tr.evaluate_run(run, people, ["ndcg@5"]) for name, run in runs.items()}
    by_machine = {name: tr.evaluate_run(run, machine, ["ndcg@5"]) for name, run in runs.items()}
    place = {q: i for i, q in enumerate(by_machine["a"].query_ids)}
    beside = {n: [r.per_query["ndcg@5"][place[q]] for q in people] for n, r in by_machine.items()}
    for one in found.biases:
        assert one.people == pytest.approx(by_people[one.system].mean["ndcg@5"])
        assert one.machine == pytest.approx(np.mean(beside[one.system]))
    names = list(runs)
    means = [[by_people[n].mean["ndcg@5"] for n in names], [np.mean(beside[n]) for n in names]]
    assert found.measured.orders_alike() == pytest.approx(oracle.ordered_alike(*means))
    assert set(found.gains) == {"a", "b"}
    assert {s.a for s in found.suggestions} == {"c"}
    assert set(found.next_queries) == set(everything) - set(people)
    assert len(found.next_queries) == 18
    values = found.to_dict()
    assert values["judged"]["k"] == 5
    assert values["judged"]["people"]["a"] == 1.0
    printed = str(found)
    for text in ("kappa", "robot − people", "Shown for", "people alone", "To judge next", "judged@5"):
        assert text in printed
    # Without runs there is agreement alone.
    alone = tr.judge(people, machine)
    assert alone.measured is None
    assert alone.to_dict()["certificates"] == {}
    assert alone.agreement.kappa == found.agreement.kappa


def test_a_judge_that_favours_a_bad_system_misleads_nobody():
    rng = np.random.default_rng(4)
    queries = [f"q{i}" for i in range(400)]
    documents = {q: {"good": 3, "bad": 0} for q in queries}
    people = {q: documents[q] for q in queries[:220]}
    machine = {q: {"good": 0, "bad": 3} if rng.random() < 0.9 else documents[q] for q in queries}
    runs = {
        "right": {q: {"good": 2.0, "bad": 1.0} for q in queries},
        "wrong": {q: {"good": 1.0, "bad": 2.0} for q in queries},
    }
    found = tr.judge(people, machine, runs, "p@1", baseline="right")
    assert found.measured.orders_alike() == 0.0
    assert found.favours[0].verdict == "favours wrong"
    certificate = found.gains["wrong"]
    assert certificate.with_machine
    assert certificate.upper < 0  # people say it is worse, and so does the bound, whatever the machine says
    assert "worse than right" in certificate.meaning
    right, wrong = found.certificates
    assert right.lower > 0.9
    assert wrong.upper < 0.1
    # A machine that is against people is of no use, and does not narrow.
    for c in (right, wrong):
        assert c.upper - c.lower >= 0.95 * (c.people.upper - c.people.lower)


def test_a_sample_that_is_not_random_is_refused_and_documents_of_one_judge_too():
    rng = np.random.default_rng(5)
    machine = {f"q{i}": {"x": int(i < 30), "y": 1} for i in range(60)}
    people = {q: dict(docs) for q, docs in list(machine.items())[:30]}
    run = {"one": {q: {"x": 2.0, "y": 1.0} for q in machine}}
    refused = tr.judge(people, machine, run, "p@1").certificates[0]
    assert refused.verdict == "does not apply"
    assert "nothing can be said" in refused.meaning
    chosen = rng.permutation(list(machine))[:30]
    fine = tr.judge({q: machine[q] for q in chosen}, machine, run, "p@1").certificates[0]
    assert fine.verdict == "holds"
    people = {q: dict(machine[q]) for q in chosen}
    people[chosen[0]]["z"] = 1
    with pytest.raises(tr.InputError, match="1 documents were judged by people alone and 0 by the machine alone"):
        tr.judge(people, machine, run, "p@1")
    allowed = tr.judge(people, machine, run, "p@1", unjudged="zero").certificates[0]
    assert any("is not relevant for them" in a.text for a in allowed.assumptions)
    assert tr.judge(people, machine).n_people == 30  # agreement is of the documents of both


def test_the_share_of_judged_documents_is_counted():
    run = tr.Run.of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 1.0}})
    qrels = tr.Qrels.of({"q": {"a": 1, "c": 0}})
    assert judged_share(run, qrels, np.array(["q", "r", "s"]), 3).tolist()[:2] == [pytest.approx(2 / 3), 0.0]


@pytest.mark.parametrize(
    ("people", "machine", "message"),
    [
        ({"q": {"a": 1}}, {"r": {"a": 1}}, "people judged 1 queries that the machine did not, such as q"),
        ({"q": {"a": -1}}, {"q": {"a": 1}}, "there are no judgements of people"),
        ({"q": {"a": 1}}, {"q": {"b": 1}}, "judged no document in common"),
    ],
)
def test_judgements_that_do_not_belong_together_are_refused(people, machine, message):
    with pytest.raises(tr.InputError, match=message):
        tr.judge(people, machine)
