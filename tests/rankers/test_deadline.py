"""A time limit ends every ranker with what it has: the learners of a stream after the pass they are in."""

import pytest

import toprank as tr
from toprank import rankers
from toprank.solvers.deadline import deadline

DATA = tr.datasets.make_graded(n_queries=12, n_features=4, random_state=0)
TWO = tr.QueryDataset.from_arrays(DATA.X, (DATA.y > 1).astype(int), DATA.qid)
FIELDS = {name: set(getattr(rankers, name).__dataclass_fields__) for name in rankers.__all__}
IN_PASSES = [name for name, fields in FIELDS.items() if "epochs" in fields and "max_iter" not in fields]


@pytest.mark.parametrize("name", IN_PASSES)
def test_no_second_pass_begins_after_the_time_is_up(name):
    data = TWO if "AtK" in name or name == "OnePassMiniBatch" else DATA
    kind = getattr(rankers, name)

    def weights(**params):
        ranker = kind(**params).fit_queries(data)
        return ranker.predict(data).tolist()

    with deadline(0.0):
        stopped = weights(epochs=3)
    assert stopped == weights(epochs=1) != weights(epochs=3)
