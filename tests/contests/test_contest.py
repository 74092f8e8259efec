"""A contest: nothing is chosen on the test queries; the same seed gives the same bits, interrupted or not."""

import io
import json
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.contests import contest as running
from toprank.contests import parts as contest_parts
from toprank.contests import search
from toprank.data.splits import Fold
from toprank.solvers import deadline as deadlines
from toprank.solvers.deadline import deadline

QUICK = ["RankSVM", "AdaRank", "OnlineListNet"]


def made(n_queries=36, seed=0, **options):
    return tr.datasets.make_graded(n_queries=n_queries, n_docs=(4, 9), n_features=4, random_state=seed, **options)


def relabelled(data, seed=5):
    return replace(data, y=np.random.default_rng(seed).permutation(data.y))


@pytest.fixture(scope="module")
def parts():
    data = made()
    return data[:18], data[18:24], data[24:]


@pytest.fixture(scope="module")
def result(parts):
    train, valid, test = parts
    return tr.contest(train, test, valid, QUICK, measures=["map", "mrr"])


def outcome(contest):
    """Everything of a contest that does not depend on the clock."""
    return [
        (e.name, e.scores.tobytes(), e.params, e.valid, e.tried, e.planned, e.curves, e.certificates)
        for e in contest.entrants
    ] + [contest.comparison, contest.notes]


def timeless(contest):
    """A contest as JSON has it, without the seconds that it took."""
    found = contest.to_dict(per_query=True)
    for entrant in found["entrants"]:
        del entrant["seconds"], entrant["seconds_searched"], entrant["seconds_processor"]
    return json.dumps(found)


class TestChoosing:
    def test_the_chosen_setting_is_the_best_on_validation(self, parts, result):
        train, valid, test = parts
        reached = {}
        for C in (1.0, *(10.0**p for p in range(-4, 3))):
            ranker = tr.RankSVM("ndcg@10", C=C).fit_queries(train)
            reached[C] = tr.evaluate(ranker, valid, ["ndcg@10"]).mean["ndcg@10"]
        entrant = result.entrant("RankSVM")
        assert entrant.valid[0] == pytest.approx(max(reached.values()), abs=1e-6)
        assert (entrant.tried, entrant.planned) == (8, 8)
        np.testing.assert_array_equal(entrant.scores, entrant.rankers[0].predict(test))

    def test_the_test_queries_take_no_part(self, parts, result):
        train, valid, test = parts
        other = tr.contest(train, relabelled(test), valid, QUICK, measures=["map", "mrr"])
        for entrant in result.entrants:
            again = other.entrant(entrant.name)
            np.testing.assert_array_equal(again.scores, entrant.scores)
            assert (again.params, again.valid, again.tried) == (entrant.params, entrant.valid, entrant.tried)

    def test_the_validation_queries_do(self, parts, result):
        train, valid, test = parts
        other = tr.contest(train, test, relabelled(valid), QUICK)
        assert [e.valid for e in other.entrants] != [e.valid for e in result.entrants]

    def test_same_seed_same_bits(self, parts, result):
        train, valid, test = parts
        assert outcome(tr.contest(train, test, valid, QUICK, measures=["map", "mrr"])) == outcome(result)

    def test_no_budget_tries_the_defaults_alone(self, parts):
        train, valid, test = parts
        contest = tr.contest(train, test, valid, QUICK, budget=0)
        assert [contest.entrant(name).tried for name in QUICK] == [1, 1, 1]
        assert contest.entrant("RankSVM").params == ({"C": 1.0},)
        assert any("budget=0 ended the search" in note and "RankSVM 1 of 8" in note for note in contest.notes)
        assert contest.cut_short == f"3 of {sum(contest.entrant(name).planned for name in QUICK)} settings tried"

    def test_a_budget_counts_settings_beyond_the_defaults(self, parts):
        train, valid, test = parts
        contest = tr.contest(train, test, valid, QUICK, budget=1)
        assert [contest.entrant(name).tried for name in QUICK] == [8, 2, 2]  # the path of C is one setting of RankSVM
        folds = [Fold(train, valid, test[:6]), Fold(train, valid, test[6:])]
        assert tr.contest(folds, rankers=QUICK, budget=1).entrant("AdaRank").tried == 2 + 2
        whole = tr.contest(train, test, valid, QUICK, budget=50)
        assert whole.cut_short == ""
        assert outcome(whole) == outcome(tr.contest(train, test, valid, QUICK))

    def test_same_seed_same_numbers_on_a_slow_machine(self, parts, monkeypatch):
        """A machine on which every look at a clock costs an hour: without `seconds` no choice depends on time."""
        train, valid, test = parts
        clock = count(0.0, 3600.0)
        now = SimpleNamespace(**dict.fromkeys(("perf_counter", "process_time", "monotonic"), lambda: next(clock)))
        for options in ({}, {"budget": 1}, {"repeats": 2, "budget": 0}, {"refit": True, "budget": 1}):
            run = partial(tr.contest, train, test, valid, [*QUICK, "ListNet"], n_resamples=100, **options)
            quick = timeless(run())
            with monkeypatch.context() as slow:
                for module in (search, deadlines):
                    slow.setattr(module, "time", now)
                late = run()
            assert timeless(late) == quick, options
            assert max(entrant.seconds for entrant in late.entrants) >= 3600

    def test_a_cut_plan_is_said_first(self, parts):
        train, valid, test = parts
        whole, cut = (tr.contest(train, test, valid, QUICK[:1], budget=budget) for budget in (None, 0))
        assert (whole.cut_short, cut.cut_short) == ("", "1 of 8 settings tried")
        assert "settings tried" not in str(whole).splitlines()[0]
        assert str(cut).splitlines()[0].endswith("; search cut short: 1 of 8 settings tried")
        assert (whole.to_dict()["cut_short"], cut.to_dict()["cut_short"]) == (None, "1 of 8 settings tried")

    def test_seconds_stop_by_the_processor_time_of_learning(self, parts, monkeypatch):
        clock = iter(range(10_000))
        monkeypatch.setattr(search.time, "process_time", lambda: float(next(clock)))  # every setting takes a second
        monkeypatch.setattr(deadlines, "time", SimpleNamespace(process_time=lambda: 0.0))
        train, valid, test = parts
        contest = tr.contest(train, test, valid, QUICK, seconds=4)
        # Three defaults, and as one second is left a second round, for everybody: who stands first has no more tries.
        assert [contest.entrant(name).tried for name in QUICK] == [8, 2, 2]
        folds = [Fold(train, valid, test[:6]), Fold(train, valid, test[6:])]
        # A fold may spend what the folds before it left, shared equally: 9/2 allows a round, then 9 − 6 = 3 does not.
        assert tr.contest(folds, rankers=QUICK, seconds=10).entrant("RankSVM").tried == 8 + 8
        assert tr.contest(folds, rankers=QUICK, seconds=9).entrant("RankSVM").tried == 8 + 1
        assert tr.contest(folds, rankers=QUICK, seconds=6).entrant("RankSVM").tried == 1 + 1
        assert any("another machine may try other settings" in note for note in contest.notes)

    def test_rankers_of_your_own_are_taken_as_they_are(self, parts):
        train, valid, test = parts
        mine = {"weak": tr.RankSVM(C=1e-6), "strong": tr.RankSVM(C=1e3), "searched": "RankSVM"}
        contest = tr.contest(train, test, valid, mine)
        assert contest.entrant("weak").params == ({"C": 1e-6},)
        assert (contest.entrant("weak").tried, contest.entrant("searched").tried) == (1, 8)
        twice = tr.contest(train, test, valid, [tr.RankSVM(C=0.1), tr.RankSVM(C=10.0)])
        assert {"RankSVM", "RankSVM 2"} < {e.name for e in twice.entrants}

    def test_without_validation_queries_some_are_held_out(self, parts):
        train, _, test = parts
        contest = tr.contest(train, test, rankers=["RankSVM"], random_state=3)
        learned, chosen = tr.query_train_test_split(train, test_size=0.25, random_state=3)
        by_hand = tr.contest(learned, test, chosen, rankers=["RankSVM"], random_state=3)
        np.testing.assert_array_equal(contest.entrant("RankSVM").scores, by_hand.entrant("RankSVM").scores)
        assert any("5 of the 18 training queries were held out" in note for note in contest.notes)
        assert not any("held out" in note for note in by_hand.notes)


class TestJudging:
    def test_reports_are_those_of_evaluate(self, parts, result):
        test = parts[2]
        assert [e.report.mean["ndcg@10"] for e in result.entrants] == sorted(
            (e.report.mean["ndcg@10"] for e in result.entrants), reverse=True
        )
        for entrant in result.entrants:
            by_hand = tr.evaluate(entrant.scores, test, ["ndcg@10", "map", "mrr"])
            for name in by_hand.per_query:
                np.testing.assert_array_equal(entrant.report.per_query[name], by_hand.per_query[name])
        assert result.best is result.entrants[0]
        assert result.comparison == tr.compare({e.name: e.report for e in result.entrants})

    def test_the_best_feature_is_chosen_on_the_training_part(self, parts, result):
        train, _, test = parts
        column, sign = max(
            ((c, s) for c in range(4) for s in (1, -1)),
            key=lambda one: tr.evaluate(one[1] * train.X[:, one[0]], train, ["ndcg@10"]).mean["ndcg@10"],
        )
        np.testing.assert_array_equal(result.entrant("best feature").scores, sign * test.X[:, column])

    def test_folds_are_judged_together(self):
        data = made(45)
        folds = [Fold(data[9:33], data[33:], data[:9]), Fold(data[:24], data[33:], data[24:33])]
        contest = tr.contest(iter(folds), rankers=["RankSVM"], measures=["map"], convention="letor3")
        assert (contest.n_folds, contest.fold.tolist()) == (2, [0] * 9 + [1] * 9)
        assert contest.data.query_ids.tolist() == [*data[:9].query_ids.tolist(), *data[24:33].query_ids.tolist()]
        entrant = contest.entrant("RankSVM")
        values = []
        for fold, ranker in zip(folds, entrant.rankers, strict=True):
            again = tr.RankSVM(tr.measure("ndcg@10", convention="letor3"), C=ranker.C_).fit_queries(fold.train)
            np.testing.assert_allclose(ranker.coef_, again.coef_, rtol=1e-2, atol=1e-3)  # along a path: within tol
            values.append(tr.evaluate(ranker, fold.test, ["map"], convention="letor3").per_query["map"])
        np.testing.assert_array_equal(entrant.report.per_query["map"], np.concatenate(values))
        told = contest.to_dict()["entrants"][[e.name for e in contest.entrants].index("RankSVM")]
        assert told["fold_means"]["map"] == [pytest.approx(v.mean()) for v in values]

    def test_a_baseline_narrows_the_family(self, parts):
        train, valid, test = parts
        contest = tr.contest(train, test, valid, ["RankSVM", "AdaRank"], budget=0, baseline="best feature")
        assert {d.b for d in contest.comparison.differences} == {"best feature"}
        assert "− best feature" in str(contest)
        with pytest.raises(tr.InputError, match="baseline must be one of"):
            tr.contest(train, test, valid, ["RankSVM"], baseline="AdaRank")

    def test_your_own_number_of_flips_is_kept_and_warned_about(self, parts):
        train, valid, _ = parts
        many = made(40, seed=3)
        mine = tr.contest(train, many, valid, ["RankSVM"], budget=0)
        own = tr.contest(train, many, valid, ["RankSVM"], budget=0, n_resamples=50)
        assert (mine.comparison.n_resamples, mine.comparison.tilted) == (10_000, True)
        assert (own.comparison.n_resamples, own.comparison.tilted) == (50, False)
        warning = "With 50 flips no p can be below 0.02, and 6 times that is above 0.05"
        assert warning in str(own)
        assert "no p can be below" not in str(mine)

    def test_curves_and_certificates(self, result):
        assert len(result.entrant("AdaRank").curves["valid"]) == len(result.entrant("AdaRank").curves["train"])
        assert set(result.entrant("OnlineListNet").curves) == {"train", "valid"}
        assert len(result.entrant("OnlineListNet").curves["valid"]) == 30
        assert "valid" not in result.entrant("RankSVM").curves  # it was chosen along a path of C
        assert all(c.holds() for c in result.entrant("AdaRank").certificates)
        assert result.entrant("AdaRank").certificates


class TestShowing:
    def test_text(self, result):
        text = str(result)
        assert "means over 12 test queries, convention standard" in text
        assert text.index(result.best.name) < text.index("order as given")
        assert "8 of 8" in text
        assert "the test queries took no part in any choice" in text
        assert "RankSVM" in repr(result)
        assert "<table" in result._repr_html_()
        assert "| map |" in result.to_markdown()

    def test_rich(self, result):
        from rich.console import Console

        console = Console(width=200, file=io.StringIO())
        console.print(result)
        assert "What was chosen" in console.file.getvalue()

    def test_json(self, result):
        told = json.loads(json.dumps(result.to_dict(per_query=True)))
        assert told["best"] == result.best.name
        assert [e["name"] for e in told["entrants"]] == [e.name for e in result.entrants]
        assert len(told["entrants"][0]["per_query"]["map"]) == 12
        assert told["comparison"]["test"] == "permutation"
        assert "per_query" not in result.to_dict()["entrants"][0]

    def test_unknown_name(self, result):
        with pytest.raises(KeyError, match=r"no 'RankSMV' in this contest \(did you mean 'RankSVM'\?\)"):
            result.entrant("RankSMV")


class TestResuming:
    """State is kept setting by setting: whenever the interruption comes, the run that goes on ends at the same bits."""

    RANKERS = ("RankSVM", "AdaRank")

    def hold(self, parts, state=None):
        train, valid, test = parts
        folds = [Fold(train, valid, test[6:]), Fold(train[3:], valid, test[:6])]
        return tr.contest(folds, rankers=self.RANKERS, state=state)

    @pytest.fixture
    def calls(self, monkeypatch):
        """Counts fits, and interrupts the one whose number is set."""
        made, real = {"done": 0, "stop": None}, search.fit

        def fit(*args):
            if made["done"] == made["stop"]:
                made["stop"] = None
                raise KeyboardInterrupt
            made["done"] += 1
            return real(*args)

        monkeypatch.setattr(search, "fit", fit)
        return made

    def test_at_every_point(self, parts, calls, tmp_path):
        whole = outcome(self.hold(parts))
        total = calls["done"]
        assert total >= 10  # two folds, two and three settings
        for stop in range(total + 1):
            folder = tmp_path / str(stop)
            calls.update(done=0, stop=stop)
            if stop < total:
                with pytest.raises(KeyboardInterrupt):
                    self.hold(parts, folder)
                calls.update(done=0)
            assert outcome(self.hold(parts, folder)) == whole
        calls.update(done=0)
        assert outcome(self.hold(parts, folder)) == whole
        assert calls["done"] == 4  # nothing is tried again: only the winners are fitted once more

    def test_in_the_middle_of_writing(self, parts, tmp_path, monkeypatch):
        import toprank._files as files

        whole, real, left = outcome(self.hold(parts)), files.os.replace, [3]

        def broken(*args):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            real(*args)

        monkeypatch.setattr(files.os, "replace", broken)
        with pytest.raises(KeyboardInterrupt):
            self.hold(parts, tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        assert outcome(self.hold(parts, tmp_path)) == whole

    def test_damaged_pieces_are_done_again(self, parts, tmp_path):
        whole = outcome(self.hold(parts, tmp_path))
        for number, piece in enumerate(sorted(tmp_path.iterdir())):
            piece.write_bytes([b"", b"{", b"\xff\xfe", b"[1]"][number % 4])
        assert outcome(self.hold(parts, tmp_path)) == whole

    def test_other_data_other_measure_other_version_are_never_mixed_in(self, parts, calls, tmp_path, monkeypatch):
        train, valid, test = parts
        tr.contest(train, test, valid, self.RANKERS, state=tmp_path)

        def fits(*args, **options):
            calls.update(done=0)
            tr.contest(*args, rankers=self.RANKERS, state=tmp_path, **options)
            return calls["done"]

        assert fits(train, test, valid) == 2
        assert fits(train, relabelled(test), valid) == 2  # the test part decides nothing
        assert fits(relabelled(train), test, valid) == 5
        assert fits(train, test, relabelled(valid)) == 5
        assert fits(train, test, valid, measure="map") == 5
        assert fits(train, test, valid, measure="map", convention="letor4") == 5
        monkeypatch.setattr(search, "__version__", "0.0.0")
        assert fits(train, test, valid) == 5

    def test_stored_seconds_count_towards_the_time(self, parts, tmp_path, monkeypatch):
        clock = iter(range(10_000))
        monkeypatch.setattr(search.time, "process_time", lambda: float(next(clock)))
        monkeypatch.setattr(deadlines, "time", SimpleNamespace(process_time=lambda: 0.0))
        train, valid, test = parts
        first = tr.contest(train, test, valid, QUICK, seconds=4, state=tmp_path)
        monkeypatch.undo()
        assert outcome(tr.contest(train, test, valid, QUICK, seconds=4, state=tmp_path)) == outcome(first)

    def test_a_ranker_that_does_not_repeat_is_told(self, parts, tmp_path, monkeypatch):
        train, valid, test = parts
        tr.contest(train, test, valid, ["RankSVM"], state=tmp_path)
        monkeypatch.setattr(search.Search, "value", lambda self, ranker, valid: 0.123)
        again = tr.contest(train, test, valid, ["RankSVM"], state=tmp_path)
        assert any("RankSVM does not repeat bit by bit" in note for note in again.notes)


class TestTrouble:
    def test_one_that_cannot_learn_is_left_out(self, parts):
        train, valid, test = parts
        bad = tr.ListNet(alpha=-1.0)
        contest = tr.contest(train, test, valid, {"bad": bad, "RankSVM": "RankSVM"})
        assert "bad" not in [e.name for e in contest.entrants]
        assert any(note.startswith("bad was left out: alpha must be") for note in contest.notes)
        with pytest.raises(tr.InputError, match="nobody could learn from these data: bad: alpha must be"):
            tr.contest(train, test, valid, {"bad": bad})
        with pytest.raises(tr.InputError, match="the baseline bad was left out"):
            tr.contest(train, test, valid, {"bad": bad, "RankSVM": "RankSVM"}, baseline="bad")

    def test_a_setting_that_fails_costs_only_itself(self, parts, monkeypatch):
        real = search.fit

        def fit(template, train, valid):
            if template.get_params(deep=False).get("rule") == "paper" or template.get_params()["both_directions"]:
                raise tr.InputError("it overflows")
            return real(template, train, valid)

        monkeypatch.setattr(search, "fit", fit)
        train, valid, test = parts
        entrant = tr.contest(train, test, valid, ["AdaRank"]).entrant("AdaRank")
        assert (entrant.tried, entrant.params[0]["rule"]) == (3, "improve")

    def test_a_missing_extra_leaves_out_at_once(self, parts, monkeypatch):
        tried = []

        def fit(template, train, valid):
            tried.append(template)
            if type(template).__name__ == "SVMMap":
                raise tr.errors.MissingExtraError("piqp", extra="svm", purpose="cutting planes")
            return real(template, train, valid)

        real = search.fit
        monkeypatch.setattr(search, "_warm_up", lambda *args: None)
        monkeypatch.setattr(search, "fit", fit)
        train, valid, test = parts
        contest = tr.contest(train, test, valid, ["SVMMap", "RankSVM"])
        assert [type(t).__name__ for t in tried].count("SVMMap") == 1
        assert any("SVMMap was left out: cutting planes needs piqp" in note for note in contest.notes)

    def test_sparse_data_give_the_same(self, parts):
        sparse = [replace(part, X=csr_array(part.X)) for part in parts]
        ours, theirs = (tr.contest(t, e, v, QUICK, budget=0) for t, v, e in (parts, sparse))
        for entrant in ours.entrants:
            np.testing.assert_allclose(theirs.entrant(entrant.name).scores, entrant.scores, rtol=1e-6, atol=1e-9)

    def test_blank_queries_and_a_single_test_query(self, parts):
        train, valid, test = parts
        blank = replace(test, y=np.where(np.repeat(np.arange(12), test.lengths) < 6, 0.0, test.y))
        contest = tr.contest(train, blank, valid, ["RankSVM"], budget=0)
        assert contest.best.report.counts["blank_queries"] >= 6
        assert tr.contest(train, test[:1], valid, ["RankSVM"], budget=0).data.n_queries == 1

    def test_three_hundred_grades(self):
        data = made(30)
        many = replace(data, y=np.random.default_rng(0).integers(0, 300, data.n_docs).astype(float))
        contest = tr.contest(many[:20], many[20:], rankers=["RankSVM", "RankBoost", "LightGBM"], budget=0)
        assert {"RankSVM", "RankBoost"} <= {e.name for e in contest.entrants}
        assert any(
            'LightGBM was left out: BoostedTrees(loss="lambdarank") takes whole grades' in note
            for note in contest.notes
        )

    def test_query_weights_count(self, parts):
        train, valid, test = parts
        weighted = replace(test, query_weight=np.arange(1.0, 13.0))
        contest = tr.contest(train, weighted, valid, ["RankSVM"], budget=0)
        entrant = contest.entrant("RankSVM")
        expected = np.average(entrant.report.per_query["map"], weights=np.arange(1.0, 13.0))
        assert entrant.report.mean["map"] == pytest.approx(expected)

    def test_parts_with_names_are_matched_by_name(self, parts):
        train, valid, test = parts
        named = [part.with_X(part.X, list("abcd")) for part in (train, valid, test)]
        turned = [part.with_X(part.X[:, ::-1], list("dcba")) for part in (valid, test)]
        run = partial(tr.contest, rankers=["RankSVM"], budget=0, progress=False)
        plain, matched = run(named[0], named[2], named[1]), run(named[0], turned[1], turned[0])
        assert np.array_equal(matched.entrant("RankSVM").scores, plain.entrant("RankSVM").scores)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda a, v, t: (a, None, v), "needs test queries"),
            (lambda a, v, t: (a[:1], t, None), "there is one training query"),
            (lambda a, v, t: (a, t.with_X(t.X[:, :2]), v), "the test part has 2 features and the training part 4"),
            (lambda a, v, t: (a, t, v.with_X(v.X[:, :2])), "the validation part has 2 features"),
            (lambda a, v, t: (a, t[:0], v), "the test part holds no queries"),
            (lambda a, v, t: (replace(a, y=np.ones(a.n_docs)), t, v), "no query is informative"),
            (lambda a, v, t: ([Fold(a, v, t)], t, None), "folds bring their own"),
            (lambda a, v, t: ([], None, None), "there are no folds"),
            (
                lambda a, v, t: (a.with_X(a.X, list("abcd")), t.with_X(t.X, list("abed")), None),
                "the test part: the data set has no feature 'c'",
            ),
        ],
    )
    def test_parts_that_do_not_fit(self, parts, change, message):
        train, valid, test = parts
        with pytest.raises(tr.InputError, match=message):
            tr.contest(*change(train, valid, test), rankers=["RankSVM"])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rankers": ["RankSMV"]}, "did you mean 'RankSVM'"),
            ({"rankers": []}, "rankers is empty"),
            ({"rankers": [3]}, "a contestant is a name, a ranker, an estimator"),
            ({"rankers": ["ListNet", "ListNet"]}, "two contestants are called 'ListNet'"),
            ({"rankers": {"best feature": "ListNet"}}, "two contestants are called 'best feature'"),
            ({"measure": "ndgc"}, "unknown measure"),
            ({"budget": -1}, "budget must be a whole number of at least 0"),
            ({"budget": 0.5}, "budget must be a whole number of at least 0"),
            ({"seconds": 0}, "seconds must be a number above 0"),
            ({"comparison": "sign"}, "test must be one of"),
            ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1"),
        ],
    )
    def test_bad_options_are_told_before_any_work(self, parts, options, message, monkeypatch):
        monkeypatch.setattr(running, "run_folds", lambda *args: pytest.fail("work was done"))
        train, valid, test = parts
        with pytest.raises(tr.InputError, match=message):
            tr.contest(train, test, valid, **options)

    def test_queries_that_are_in_two_parts_are_told(self, parts):
        """All three pairs, by what the queries hold: another id hides nothing, the same id alone proves nothing."""
        train, valid, test = parts
        renamed = replace(valid, query_ids=np.arange(1000, 1006))
        clean, quick = "the test queries took no part in any choice", {"rankers": ["RankSVM"], "budget": 0}
        cases = {
            "18 of 18 test queries stand in the training part too": (train, train, valid),
            "6 of 6 test queries stand in the validation part too": (train, renamed, valid),
            "6 of 6 validation queries stand in the training part too": (train, test, train[:6]),
        }
        for warning, (learned, judged, chosen) in cases.items():
            result = tr.contest(learned, judged, chosen, **quick)
            assert [w for w in result.warnings if warning in w]
            assert set(result.warnings) <= set(result.notes)
            assert (clean in str(result)) == ("test queries" not in warning)
        other = replace(test, query_ids=train.query_ids[:12])
        result = tr.contest(train, other, valid, **quick)
        assert any(
            "12 query ids of the test part occur in the training or validation part too" in n for n in result.notes
        )
        assert result.warnings == ()
        assert clean in str(result)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_a_fold_that_comes_again_is_refused(self, parts, sparse):
        train, valid, test = (replace(p, X=csr_array(p.X)) for p in parts) if sparse else parts
        with pytest.raises(tr.InputError, match="12 of the 12 test queries of fold 2 are test queries of fold 1 too"):
            tr.contest([Fold(train, valid, test)] * 6, rankers=["RankSVM"], budget=0)
        folds = [Fold(train, valid, part) for part in (test[:4], test[4:8], test[7:])]
        with pytest.raises(tr.InputError, match="1 of the 5 test queries of fold 3 are test queries of fold 2 too"):
            tr.contest(folds, rankers=["RankSVM"], budget=0)


class TestPlan:
    def test_winners_learn_again_from_both_parts(self, parts):
        train, valid, test = parts
        rankers = ["RankSVM", "AdaRank"]
        once, again = (tr.contest(train, test, valid, rankers, refit=refit) for refit in (False, True))
        both, _ = contest_parts.pool([train, valid])
        C = once.entrant("RankSVM").rankers[0].C_
        by_hand = tr.RankSVM("ndcg@10", C=C).fit_queries(both)
        np.testing.assert_array_equal(again.entrant("RankSVM").scores, by_hand.predict_grouped(test))
        assert again.entrant("AdaRank").rankers[0].rounds == max(1, once.entrant("AdaRank").rankers[0].n_iter_)
        assert again.entrant("RankSVM").valid == once.entrant("RankSVM").valid
        assert "learned once more, from training and validation queries together" in str(again)
        assert "were not fitted again with the validation queries" in str(once)

    def test_a_cap_that_binds_is_told(self, parts):
        pytest.importorskip("lightgbm")
        train, valid, test = parts
        few = {"few": tr.BoostedTrees(rounds=2, patience=5), "enough": tr.BoostedTrees(rounds=60, patience=5)}
        result = tr.contest(train, test, valid, few)
        assert list(result.warnings) == [
            "few was still rising when it reached its number of rounds: more might do better."
        ]

    @pytest.mark.parametrize("kind", ["LightGBM", "XGBoost"])
    def test_time_ends_boosting(self, kind, parts):
        pytest.importorskip(kind.lower())
        train, valid, test = parts
        with deadline(0.0):
            for watched in (valid, None):
                fitted = tr.BoostedTrees(engine=kind.lower(), rounds=500).fit_queries(train, watched)
                assert fitted.n_iter_ == 1
                assert np.isfinite(fitted.predict_grouped(test)).all()

    def test_a_setting_that_ran_out_of_time_is_told_and_not_kept(self, parts, tmp_path):
        """A share of 1 ns: everybody's default ends at once, usable, and no further round begins."""
        train, valid, test = parts
        result = tr.contest(train, test, valid, ["ListNet", "RankSVM"], seconds=1e-9, state=tmp_path)
        assert [result.entrant(name).tried for name in ("ListNet", "RankSVM")] == [1, 1]
        assert "ListNet: 1 of its settings ran out of time, its share of the seconds." in result.warnings
        assert result.cut_short == "2 of 14 settings tried, 2 stopped before they were done"
        assert list(tmp_path.glob("*.json")) == []
        whole = tr.contest(train, test, valid, ["ListNet", "RankSVM"], budget=0, state=tmp_path)
        assert whole.warnings == ()
        assert len(list(tmp_path.glob("*.json"))) == 2

    @pytest.mark.parametrize("kind", ["LightGBM", "XGBoost"])
    def test_early_stopping_honours_the_weights_of_queries(self, kind):
        """Validation queries of two opinions: whose weight is large decides which round is kept."""
        pytest.importorskip(kind.lower())
        data = made(60)
        train, valid = data[:30], data[30:]
        ranker = tr.BoostedTrees(engine=kind.lower(), rounds=30, patience=30)
        for weight in (np.where(np.arange(30) < 15, 1.0, 1e-9), np.where(np.arange(30) < 15, 1e-9, 1.0)):
            fitted = ranker.fit_queries(train, replace(valid, query_weight=weight))
            mean = tr.evaluate(fitted, replace(valid, query_weight=weight), ["ndcg@10"]).mean["ndcg@10"]
            assert fitted.trace_["valid"].max() == pytest.approx(mean, abs=1e-6)
            assert fitted.n_iter_ == int(np.argmax(fitted.trace_["valid"])) + 1

    def test_fusion_takes_part(self, parts):
        train, valid, test = parts
        result = tr.contest(
            train, test, valid, QUICK[:2], budget=0, fusion=["rrf", "combsum"], baseline="fusion by CombSUM"
        )
        fused = result.entrant("fusion by reciprocal rank")
        ranks = np.zeros(test.n_docs)
        for name in QUICK[:2]:
            for q in range(test.n_queries):
                rows = slice(test.ptr[q], test.ptr[q + 1])
                order = np.argsort(-result.entrant(name).scores[rows], kind="stable")
                for place, doc in enumerate(order, 1):
                    ranks[test.ptr[q] + doc] += 1 / (60 + place)
        np.testing.assert_allclose(fused.scores, ranks, rtol=1e-12)
        assert not fused.rankers
        with pytest.raises(tr.InputError, match="fusion must be one of"):
            tr.contest(train, test, valid, QUICK, fusion=["borda"])

    def test_the_notes_say_what_is_judged(self, parts, result):
        train, valid, test = parts
        assert "about these fitted models" in str(result)
        assert "not about the learners" in str(result)
        assert "the largest of all that were tried, and flatters" in str(result)
        assert "fold 1" not in str(result)
        folds = [Fold(train, valid, test[:6]), Fold(train, valid, test[6:])]
        text = str(tr.contest(folds, rankers=["RankSVM"], budget=0))
        assert "not means of fold means; learning curves and certificates about learning are those of fold 1" in text


def test_fits_that_did_not_converge_are_listed():
    data = tr.datasets.make_graded(n_queries=60, n_features=5, noise=1.0, random_state=0)
    rankers = {"short": tr.RankSVM(max_iter=1, tol=1e-12), "whole": tr.RankSVM()}
    contest = tr.contest(data[:30], data[45:], data[30:45], rankers, budget=0)
    told = [note for note in contest.warnings if "did not converge" in note]
    assert told == ["short did not converge: the gap did not reach tol in 1 steps."]
    assert set(told) <= set(contest.notes)
