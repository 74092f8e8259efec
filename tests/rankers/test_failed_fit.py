"""A fit that fails, is refused or is interrupted leaves the ranker exactly as it was; a model knows its width."""

import inspect
import pickle
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import toprank as tr
from toprank import rankers
from toprank.model.functions import KernelFunction, LinearFunction, StumpFunction

ALL = [getattr(rankers, name) for name in rankers.__all__]
STREAMS = [kind for kind in ALL if hasattr(kind, "partial_fit")]
SOURCES = str(Path(tr.__file__).parent)


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=6, n_docs=(4, 7), n_features=3, n_grades=2, random_state=0)
    return made


@pytest.fixture(scope="module")
def wide():
    return tr.datasets.make_graded(n_queries=6, n_docs=(4, 7), n_features=40, n_grades=2, random_state=1)


def small(kind):
    """The ranker with few rounds, so that it can be fitted many times."""
    names = kind._get_param_names()
    few = {"rounds": 3, "epochs": 2, "max_iter": 4, "C": 0.1, "every": 1}
    return kind(**{name: value for name, value in few.items() if name in names})


def snapshot(ranker):
    return pickle.dumps(ranker.__dict__)


def interrupted(call, at):
    """Run `call`, raising KeyboardInterrupt in the at-th Python call inside toprank; return how many there were."""
    count = 0

    def tracer(frame, event, argument):
        nonlocal count
        code = frame.f_code
        generates = code.co_flags & inspect.CO_GENERATOR  # what is raised while one is closed is swallowed
        if event in ("call", "return") and not generates and code.co_filename.startswith(SOURCES):
            count += 1
            if count == at:
                sys.setprofile(None)
                raise KeyboardInterrupt
        return None

    sys.setprofile(tracer)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
class TestEveryRanker:
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
    def test_a_refused_fit_changes_nothing(self, kind, data, wide, storage):
        ranker = small(kind).fit(data.X, data.y, data.qid)
        before, held = snapshot(ranker), ranker.function_
        X = storage(wide.X)
        with pytest.raises(tr.InputError):  # found before learning
            ranker.fit(X, np.full(wide.n_docs, np.nan), wide.qid)
        with pytest.raises(tr.InputError):  # found by the learner: nothing can be learned from one grade
            ranker.fit(X, np.zeros(wide.n_docs), wide.qid)
        assert snapshot(ranker) == before
        with pytest.raises(ValueError, match="expecting 3 features"):
            ranker.predict(X)
        with pytest.raises(tr.InputError, match="expecting 3 features"):
            ranker.function_.scores(X)
        assert ranker.function_ is held

    def test_a_refused_setting_changes_nothing(self, kind, data, wide):
        ranker = small(kind).fit(data.X, data.y, data.qid)
        ranker.set_params(missing="no such rule")
        before = snapshot(ranker)
        with pytest.raises(tr.InputError, match="missing must be"):
            ranker.fit(wide.X, wide.y, wide.qid)
        assert snapshot(ranker) == before

    def test_an_interrupted_fit_changes_nothing(self, kind, data, wide):
        ranker = small(kind).fit(data.X, data.y, data.qid)
        before = snapshot(ranker)
        expected = small(kind).fit_queries(wide).predict(wide)
        spare = pickle.loads(pickle.dumps(ranker))
        for _ in range(2):  # the second time it looks nothing up anew, as those that are interrupted
            calls = interrupted(lambda: spare.fit_queries(wide), None)
        for at in sorted({*np.linspace(1, calls - 5, 12).astype(int).tolist(), *range(calls - 12, calls - 5)}):
            with pytest.raises(KeyboardInterrupt):
                interrupted(lambda: ranker.fit_queries(wide), at)
            assert snapshot(ranker) == before
        ranker.fit_queries(wide)  # and it can still learn
        assert ranker.predict(wide).tobytes() == expected.tobytes()

    def test_a_failed_first_fit_leaves_it_unfitted(self, kind, data):
        ranker = small(kind)
        with pytest.raises(tr.InputError):
            ranker.fit(data.X, np.zeros(data.n_docs), data.qid)
        assert not [name for name in vars(ranker) if name.endswith("_")]
        with pytest.raises(ValueError, match="not fitted"):
            ranker.predict(data.X)


@pytest.mark.parametrize("kind", STREAMS)
class TestEveryStream:
    @pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
    def test_a_refused_list_changes_nothing(self, kind, data, wide, storage):
        ranker = small(kind).partial_fit(storage(data.X), data.y, data.qid)
        before = snapshot(ranker)
        y = data.y.copy()
        y[-1] = np.nan
        for X, grades in ((storage(wide.X[: data.n_docs]), data.y), (storage(data.X), y)):
            with pytest.raises(ValueError, match=r"features|nan"):
                ranker.partial_fit(X, grades, data.qid)
            assert snapshot(ranker) == before

    def test_an_interrupted_list_changes_nothing(self, kind, data):
        ranker = small(kind).partial_fit(data.X, data.y, data.qid)
        before = snapshot(ranker)
        spare = pickle.loads(pickle.dumps(ranker))
        for _ in range(2):  # the second time it looks nothing up anew, as those that are interrupted
            calls = interrupted(lambda: spare.partial_fit(data.X, data.y, data.qid), None)
        for at in sorted(set(np.linspace(1, calls - 5, 12).astype(int).tolist())):
            with pytest.raises(KeyboardInterrupt):
                interrupted(lambda: ranker.partial_fit(data.X, data.y, data.qid), at)
            assert snapshot(ranker) == before

    def test_a_held_model_never_changes(self, kind, data):
        ranker = small(kind)
        held, then = [], []
        for y, q in ((y, q) for y in (data.y, 1 - data.y) for q in range(data.n_queries)):
            a, b = data.ptr[q : q + 2]
            ranker.partial_fit(data.X[a:b], y[a:b])
            held.append(ranker.function_)
            then.append(ranker.function_.scores(data.X).tobytes())
        assert [model.scores(data.X).tobytes() for model in held] == then
        assert len(set(then)) > 1

    def test_two_threads_are_told(self, kind, data):
        """Whoever is overtaken says so; the ranker is what the other one made of it."""
        ranker = small(kind).partial_fit(data.X, data.y, data.qid)
        inside, finished = threading.Event(), threading.Event()
        seen = []

        def slow():
            try:
                with ranker._learning_copy() as new:
                    new.n_queries_in_ = -1
                    inside.set()
                    finished.wait(10)
            except tr.InputError as error:
                seen.append(str(error))

        thread = threading.Thread(target=slow)
        thread.start()
        inside.wait(10)
        ranker.partial_fit(data.X, data.y, data.qid)
        finished.set()
        thread.join()
        assert seen
        assert "another thread" in seen[0]
        assert ranker.n_queries_in_ > 0


def test_each_model_refuses_rows_of_another_width():
    models = [
        LinearFunction(np.ones(3)),
        StumpFunction(3, np.array([2]), np.array([0.5]), np.array([1.0])),
        KernelFunction(np.ones((1, 3)), np.ones(1), "rbf"),
    ]
    for model in models:
        for width in (1, 2, 4, 10**6):
            for X in (sparse.csr_array((2, width)), np.zeros((2, min(width, 1000)))):
                with pytest.raises(tr.InputError, match="expecting 3 features"):
                    model.scores(X)
        assert model.scores(np.zeros((2, 3))).shape == (2,)
