"""What a stranger relies on: names that exist, docstrings that run, an import that stays light."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import toprank as tr

HEAVY = ("sklearn", "numba", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "rich", "lightgbm", "torch")


def loaded_by(code: str) -> set[str]:
    command = f"import sys, json\n{code}\nprint(json.dumps(sorted({{m.partition('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_nothing_heavy():
    assert not loaded_by("import toprank") & {*HEAVY, "numpy"}


def test_reading_and_evaluating_do_not_load_scikit_learn(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("1 qid:1 1:2\n0 qid:1 1:1\n")
    code = f"import toprank as tr; d = tr.read_letor({str(file)!r}); print(tr.evaluate(d.X[:, 0], d, ['ndcg@10']))"
    # scipy is not in this list: numba loads part of it with its first kernel.
    assert not loaded_by(code) & {"sklearn", "pandas", "polars", "matplotlib"}


@pytest.mark.parametrize("name", sorted(tr.__all__))
def test_every_public_name_loads_and_explains_itself(name):
    thing = getattr(tr, name)
    if name == "__version__":
        assert thing
        return
    assert thing.__doc__
    assert name in dir(tr)


def test_no_module_hides_a_function_of_its_name():
    # Importing toprank.x sets the attribute x of the package: a function of that name would be lost.
    home = Path(tr.__file__).parent
    modules = {path.stem for path in home.glob("*.py")} | {path.name for path in home.iterdir() if path.is_dir()}
    assert all(isinstance(getattr(tr, name), ModuleType) for name in modules & set(tr.__all__))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Slamm'"):
        _ = tr.Slamm


def test_star_import_gives_every_public_name():
    namespace: dict[str, object] = {}
    exec("from toprank import *", namespace)
    assert set(tr.__all__) <= set(namespace) | {"__version__"}


def test_every_mutant_still_has_its_line():
    """`make mutants` tries them; here only that each one's line stands in its file, once."""
    from tests.mutants import MUTANTS, TOP

    assert len(MUTANTS) >= 40
    for mutant in MUTANTS:
        assert (TOP / "src" / "toprank" / mutant.file).read_text(encoding="utf-8").count(mutant.old) >= 1, mutant
        assert all((TOP / test).exists() for test in mutant.test.partition(" -k ")[0].split()), mutant
