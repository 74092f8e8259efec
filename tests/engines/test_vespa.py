"""Vespa's evaluator of ranking expressions, that of its Java parts, computes what is exported for it.

The parser of schemas and the evaluator of content nodes, which is C++, are not run here.
"""

import re

import numpy as np
import pytest

import toprank as tr
from tests.engines.cases import FOREST, ODD, PLAIN, TreeFunction, collection, learned, logged, models, rows, tree_model
from tests.engines.running import need, run_java


def expressions(profile):
    """The functions of a rank profile in their order, its constants, and the sum of its phase, as name and text."""
    found = [(f"constant({name})", value) for name, value in re.findall(r"^ *(w_\w+): (.*)$", profile, re.MULTILINE)]
    found += re.findall(r"function (\w+)\(\) \{[^\n]*\n\s*expression: (.*)\n", profile)
    phase = re.search(r"(?:first|second)-phase \{\s*expression \{(.*?)\n *\}", profile, re.DOTALL)[1]
    return [*found, ("score", " ".join(phase.split()))]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    need("vespa")
    folder = tmp_path_factory.mktemp("vespa")
    train, test = collection()
    fill = (1.5, 0.0, -3.0)
    native = tree_model(PLAIN, TreeFunction.build(3, FOREST))
    cases = {name: (model, rows()) for name, model in (models(PLAIN, fill) | logged(PLAIN, fill)).items()}
    cases["native trees"] = (native, rows())
    cases |= {f"odd {name}": (model, rows()) for name, model in models(ODD, fill).items()}
    cases |= {name: (tr.export.fold(ranker), test.X) for name, ranker in learned(train).items()}
    made = {}
    for number, (name, (model, X)) in enumerate(cases.items()):
        attributes = [f"attribute(a{j})" for j in range(len(model.names))]
        file = folder / f"{number}.profile"
        tr.export.write(model, file, "vespa", expressions=dict(zip(model.names, attributes, strict=True)))
        parts = expressions(file.read_text(encoding="utf-8"))
        (folder / f"{number}.expressions").write_text("".join(f"{name}\t{text}\n" for name, text in parts))
        lines = ["\t".join("" if x != x else repr(x) for x in row) for row in X.tolist()]
        (folder / f"{number}.rows").write_text("\n".join(["\t".join(attributes), *lines]) + "\n")
        made[name] = (number, file, model, X)
    run_java("vespa", "VespaScores.java", folder)
    return {
        name: (file, model, X, [float(text) for text in (folder / f"{number}.scores").read_text().split()])
        for name, (number, file, model, X) in made.items()
    }


CASES = [
    *models(PLAIN), *logged(PLAIN), "native trees", *(f"odd {name}" for name in models(ODD)), "ListNet", "RankBoost",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_vespa_scores_as_verify_export_says(scored, name):
    file, model, X, scores = scored[name]
    _, replica = tr.export.read(file)
    columns = [model.names.index(feature) for feature in replica.names]
    expected = replica.score_rows(np.ascontiguousarray(X[:, columns]))
    if "log" in name:  # two libraries' logarithms may differ in the last bit
        assert scores == pytest.approx(expected.tolist(), rel=1e-14, abs=1e-14)
    else:
        assert scores == expected.tolist()
    assert scores == pytest.approx(model.predict(X).tolist(), rel=1e-11, abs=1e-11)
    assert len(set(scores)) > 3
