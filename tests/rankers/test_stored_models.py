"""Files of format version 1, as the first release that wrote them did: every later one reads them and scores alike.

A new ranker joins with a file of its own; a file that is here is never written again.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from toprank import rankers
from toprank.errors import InputError
from toprank.rankers.persistence import FORMER_RANKERS

STORED = Path(__file__).parent / "stored"
KNOWN = json.loads((STORED / "scores.json").read_text())
X, Y, QID = (np.array(KNOWN[name]) for name in ("X", "y", "qid"))


def test_every_kind_of_ranker_has_a_stored_file():
    stored = {file.stem for file in STORED.iterdir()} - {"scores"}
    assert stored == {*rankers.__all__, *FORMER_RANKERS} == set(KNOWN["scores"])


@pytest.mark.parametrize("name", sorted(KNOWN["scores"]))
def test_a_stored_model_scores_as_it_did(name, tmp_path):
    ranker = tr.load(STORED / f"{name}.json")
    assert type(ranker).__name__ == ("BoostedTrees" if name in FORMER_RANKERS else name)
    np.testing.assert_allclose(ranker.predict(X), KNOWN["scores"][name], rtol=1e-12, atol=1e-14)
    ranker.save(tmp_path / "again.json")
    assert tr.load(tmp_path / "again.json").predict(X).tolist() == ranker.predict(X).tolist()
    if hasattr(ranker, "partial_fit"):  # and it goes on learning
        y = (Y > 0).astype(int) if "AtK" in name or name == "OnePassMiniBatch" else Y
        ranker.partial_fit(X, y, qid=QID)


def changed(tmp_path, **changes):
    content = json.loads((STORED / "SlamPerceptron.json").read_text())
    for place, value in changes.items():
        *path, key = place.split("__")
        node = content
        for step in path:
            node = node[step]
        if value is None:
            del node[key]
        else:
            node[key] = value
    (tmp_path / "model.json").write_text(json.dumps(content))
    return tmp_path / "model.json"


def test_a_parameter_that_came_later_has_its_default(tmp_path):
    assert tr.load(changed(tmp_path, params__patience=None)).patience is None
    assert tr.load(changed(tmp_path, params__epochs=None)).epochs == tr.SlamPerceptron().epochs


def test_files_of_the_future_are_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="version 2; this toprank reads 'toprank-model' version 1"):
        tr.load(changed(tmp_path, version=2))
    with pytest.raises(InputError, match=r"the parameters do not fit SlamPerceptron: .*'momentum'"):
        tr.load(changed(tmp_path, params__momentum=0.9))
    with pytest.raises(InputError, match="unknown ranker 'Oracle'"):
        tr.load(changed(tmp_path, ranker="Oracle"))
    with pytest.raises(InputError, match="unknown field"):
        tr.load(changed(tmp_path, notes="more"))
