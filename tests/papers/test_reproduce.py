from __future__ import annotations

import pytest

import toprank as tr
from toprank.papers import reproduce


def test_papers_share_a_folder_without_overwriting_each_other(tmp_path):
    for paper, figure in (("direct-optimization", "fig1"), ("precision-at-top", "counterexample")):
        ((_, files),) = reproduce.reproduce(paper, figure, out=tmp_path)
        assert {file.parent for file in files} == {tmp_path / paper}
    names = [set(reproduce.figures(paper)) for paper in reproduce.papers()]
    assert any(a & b for i, a in enumerate(names) for b in names[:i])  # why each paper needs a folder of its own


def test_unknown_names_are_answered_with_known_ones(tmp_path):
    with pytest.raises(tr.InputError, match="did you mean 'direct-optimization'"):
        list(reproduce.reproduce("direct-optimisation", out=tmp_path))
    with pytest.raises(tr.InputError, match=r"has no exhibit 'tabel2' \(did you mean 'table2'"):
        list(reproduce.reproduce("direct-optimization", "tabel2", out=tmp_path))
    with pytest.raises(tr.InputError, match="makes its own data"):
        list(reproduce.reproduce("direct-optimization", "fig1", out=tmp_path, data="somewhere"))
