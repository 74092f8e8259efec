"""Certificates of a ranker from two judges: the values are those of `evaluate`, and what cannot be certified is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from toprank.certificates.judged import judged_difference, judged_interval
from toprank.judging.models import certify_with_judge, people_and_machine


@pytest.fixture(scope="module")
def parts():
    made = tr.datasets.make_graded(n_queries=160, random_state=0)
    train, rest = made[:60], made[60:]
    machine = replace(rest, y=np.minimum(rest.y + (rest.X[:, 0] > 0.5), 4))
    chosen = np.sort(np.random.default_rng(1).permutation(100)[:55])
    return tr.ListNet().fit_queries(train), train, rest[chosen], machine, chosen


def test_the_values_are_those_of_evaluate(parts):
    ranker, _, people, machine, chosen = parts
    others = np.setdiff1d(np.arange(100), chosen)
    base = {"first": lambda data: data.feature(0)}
    own, gain = certify_with_judge(ranker, people, machine, baseline=base)

    def values(model, data):
        return tr.evaluate(model, data, ["ndcg@10"]).per_query["ndcg@10"]

    h, f = values(ranker, people), values(ranker, machine)
    wanted = judged_interval(h, f[chosen], f[others], 0.975)
    assert (own.lower, own.upper) == (wanted.lower, wanted.upper)
    a, b = values(people.feature(0), people), values(machine.feature(0), machine)
    wanted = judged_difference((h, a), (f[chosen], b[chosen]), (f[others], b[others]), 0.975)
    assert (gain.lower, gain.upper) == (wanted.lower, wanted.upper)
    # The queries of people may stand in any order.
    turned = certify_with_judge(ranker, people[::-1], machine, baseline=base)[0]
    assert turned.people == pytest.approx(own.people, abs=0.02)


def test_queries_that_were_learned_from_certify_nothing(parts):
    ranker, train, *_ = parts
    found = certify_with_judge(ranker, train[:55], train)[0]
    assert found.verdict == "does not apply"
    assert "were learned from" in found.meaning


def test_what_does_not_belong_together_is_refused(parts):
    ranker, _, people, machine, chosen = parts
    with pytest.raises(tr.InputError, match="know no weights"):
        certify_with_judge(ranker, replace(people, query_weight=np.ones(55)), machine)
    with pytest.raises(tr.InputError, match="people judged 5 queries that the machine did not"):
        certify_with_judge(ranker, people, machine[np.setdiff1d(np.arange(100), chosen[:5])])
    names = np.arange(machine.n_docs).astype(str)
    other = names.copy()
    other[0] = "another"
    whole = replace(machine, doc_ids=names)
    with pytest.raises(tr.InputError, match="judged different documents of query"):
        certify_with_judge(ranker, replace(machine, doc_ids=other)[:55], whole)
    assert certify_with_judge(ranker, whole[:55], whole)[0].assumptions_hold
    data = tr.QueryDataset.from_arrays(np.zeros((4, 1)), [0, 1, 2, 3], ["q", "q", "r", "r"])
    with pytest.raises(tr.InputError, match="people graded 1 of the 2 documents of query r"):
        people_and_machine(data, np.array([1.0, 0.0, np.nan, 1.0]))
    with pytest.raises(tr.InputError, match="people graded no query"):
        people_and_machine(data, np.full(4, np.nan))
