"""The settings that are tried: every ranker has some, every one of them is a legal ranker, the defaults come first."""

import pytest

import toprank as tr
from toprank import rankers as package
from toprank.contests import settings
from toprank.measures import measure

NDCG = measure("ndcg@10")


def test_every_ranker_has_a_space():
    assert set(settings.SETTINGS) == set(settings.known())
    assert set(package.__all__) <= set(settings.known())


@pytest.mark.parametrize("name", settings.known())
def test_defaults_come_first_and_no_setting_comes_twice(name):
    if name == settings.CATBOOST:
        pytest.importorskip("catboost")
        guests = settings.candidate(name, NDCG).rankers
        assert [dict(guest.setting) for guest in guests] == [{}, *settings.SETTINGS[name]]
        return
    rankers = settings.candidate(name, NDCG).rankers
    kind = type(rankers[0])
    changed = {"measure", "missing", "random_state", *settings._ALWAYS.get(name, {}), *settings.ENGINES.get(name, {})}
    defaults = kind().get_params(deep=False)
    first = rankers[0].get_params(deep=False)
    assert {key for key in defaults if first[key] != defaults[key]} <= changed
    params = [ranker.get_params(deep=False) for ranker in rankers]
    assert all(one != other for place, one in enumerate(params) for other in params[:place])
    assert len(params) > 1


def test_online_rankers_choose_between_last_and_averaged_weights():
    for name in ("SlamPerceptron", "MinimaxPerceptron", "OnlineListNet"):
        assert {ranker.average for ranker in settings.candidate(name, NDCG).rankers} == {"auto"}


def test_a_ranker_is_trained_for_the_measure_where_it_can_be():
    for name, target in (("AdaRank", "mrr"), ("SlamPerceptron", "map"), ("ListNet", "err@10")):
        found = settings.candidate(name, measure(target, convention="letor3"))
        assert str(found.rankers[0].measure) == f"{target}:letor3"
        assert found.notes == ()
    found = settings.candidate("SlamPerceptron", measure("mrr"))
    assert found.rankers[0].measure == "ndcg@10"
    assert "SlamPerceptron was trained for ndcg@10" in found.notes[0]


def test_a_measure_inside_a_setting_follows_the_convention():
    found = settings.candidate("SVMMap", measure("ndcg@5", convention="letor4"))
    assert {str(ranker.measure) for ranker in found.rankers} == {"ndcg@5:letor4", "map:letor4"}
    same = settings.candidate("SVMMap", measure("map"))
    assert [ranker.C for ranker in same.rankers] == [10.0, tuple(10.0**p for p in range(-2, 5))]


def test_a_path_of_C_counts_every_C():
    assert settings.candidate("RankSVM", NDCG).sizes == (1, 7)


def test_seed_and_missing_reach_the_ranker():
    ranker = settings.candidate("OnlineListNet", NDCG, "zero", 7).rankers[1]
    assert (ranker.missing, ranker.random_state) == ("zero", 7)


def test_unknown_name():
    with pytest.raises(tr.InputError, match=r"unknown ranker 'ListNte' \(did you mean 'ListNet'\?\)"):
        settings.candidate("ListNte", NDCG)


def test_a_path_of_penalties_counts_each_and_tells_the_one_that_was_chosen():
    data = tr.datasets.make_graded(n_queries=20, n_features=3, random_state=0)
    ranker = tr.ListNet(penalty=[tr.L1(0.1), tr.L1(0.01)])
    assert settings.Candidate("mine", (ranker, tr.ListNet())).sizes == (2, 1)
    shown = settings.settings_of(ranker.fit_queries(data[:10], data[10:]))
    assert shown["penalty"] == str(ranker.penalty_)
    assert "alpha" not in shown
