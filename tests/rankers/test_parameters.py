"""Parameters are refused by their names, in the same words by every ranker; what is no data set too."""

import numpy as np
import pytest

import toprank as tr
from tests.rankers.test_failed_fit import ALL, STREAMS
from toprank import InputError

BAD = {
    **dict.fromkeys(("batch_size", "budget", "cut", "degree", "epochs", "every", "max_iter", "rounds"), 0),
    **dict.fromkeys(("orders", "patience", "thresholds"), 0),
    **dict.fromkeys(("tol", "radius", "gamma"), 0.0),
    **dict.fromkeys(("alpha", "coef0", "random_state"), -1),
    **dict.fromkeys(("solver", "rule", "variant", "schedule", "kernel", "drop", "loss", "pairs", "start"), "other"),
    **dict.fromkeys(("truth", "ties", "scale", "missing", "penalty"), "other"),
    "signs": {"a": "other"},
}


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=8, n_features=3, n_grades=2, random_state=0)
    assert set(made.y) == {0.0, 1.0}
    return made


@pytest.mark.parametrize("kind", ALL)
def test_each_door_refuses_a_parameter_by_its_name(kind, data):
    names = [name for name in kind._get_param_names() if name in BAD]
    assert names
    for name in names:
        ranker = kind(**{name: BAD[name]})
        for learn in (lambda r=ranker: r.fit(data.X, data.y, data.qid), lambda r=ranker: r.fit_queries(data)):
            with pytest.raises(InputError, match=f"^{name} must be "):
                learn()
        if kind in STREAMS:
            with pytest.raises(InputError, match=f"^{name} must be "):
                ranker.partial_fit(data.X, data.y, data.qid)
        assert "function_" not in vars(ranker)


@pytest.mark.parametrize("kind", ALL)
def test_what_is_no_data_set_is_refused_in_words(kind, data):
    fitted = kind().fit_queries(data)
    doors = [fitted.fit_queries, fitted.predict_grouped, fitted.certify, lambda X: tr.certify(fitted, X)]
    if hasattr(kind, "partial_fit_queries"):
        doors += [fitted.partial_fit_queries, kind().partial_fit_queries]
    for door in doors:
        with pytest.raises(InputError, match="data must be a QueryDataset, got a ndarray"):
            door(data.X)


@pytest.mark.parametrize("kind", ALL)
def test_no_rows_are_an_empty_data_set(kind):
    with pytest.raises(InputError, match="the data set is empty"):
        kind().fit(np.empty((0, 2)), np.empty(0), np.empty(0))


def test_certify_names_the_confidence(data):
    for given in (None, data):
        ranker = tr.SlamPerceptron().partial_fit_queries(data)
        with pytest.raises(InputError, match="confidence must be a number between 0 and 1, got 2"):
            tr.certify(ranker, given, confidence=2)


@pytest.mark.parametrize("kind", [tr.MinimaxPerceptron, tr.OnlineListNet])
def test_a_measure_without_a_theorem_still_says_what_new_queries_see(kind, data):
    first, *rest = tr.certify(kind("mrr").fit_queries(data[:4]), data[4:])
    assert first.n_queries == 4
    assert first.verdict in ("holds", "vacuous")
    assert [certificate.verdict for certificate in rest] == ["does not apply"]
    assert "not mrr" in rest[0].meaning


def test_choose_eta_wants_an_online_ranker(data):
    with pytest.raises(InputError, match="choose_eta takes an online ranker"):
        tr.choose_eta(tr.ListNet(), data)
