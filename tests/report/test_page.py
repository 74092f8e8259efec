"""The file itself, read without a browser: what it holds, what it says it leaves out, and that nothing escapes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toprank as tr
from tests.report.contests import NASTY, held
from toprank.certificates.base import Assumption, Certificate
from toprank.contests.base import Contest
from toprank.contests.from_reports import of_runs
from toprank.errors import InputError
from toprank.report import page as pages
from toprank.report import sections, view
from toprank.report.headline import headline
from toprank.report.page import write_report


class Reader(HTMLParser):
    """Notes every element and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self.shown: list[str] = []
        self._silent: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._silent = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._silent = None

    def handle_data(self, data: str) -> None:
        if self._silent:
            self.inside[self._silent] = self.inside.get(self._silent, "") + data
        else:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.shown))


def blocks(path: Path) -> tuple[dict[str, Any], bytes, list[Any]]:
    """Undo the packing with other tools than the page's: header, planes of bytes, rankings."""
    inside = Reader(path.read_text(encoding="utf-8")).inside
    raw = zlib.decompress(base64.b64decode(inside["numbers"]), wbits=-15)
    size = int.from_bytes(raw[:4], "little")
    rankings = zlib.decompress(base64.b64decode(inside["rankings"]), wbits=-15)
    return json.loads(raw[4 : 4 + size]), raw[4 + size :], json.loads(rankings)


def value(header: dict[str, Any], planes: bytes, measure: int, system: int, query: int) -> float:
    one = next(v for v in header["values"] if v["measure"] == measure)
    systems, queries = len(header["systems"]), len(header["ids"])
    code = sum(
        planes[one["at"] + i * systems * queries + query * systems + system] * 256**i for i in range(one["width"])
    )
    return float(one["table"][code]) if one["table"] else one["low"] + one["step"] * code


@pytest.mark.parametrize("which", ["small", "large"])
def test_the_embedded_values_are_those_of_the_reports(which: str, request: pytest.FixtureRequest) -> None:
    contest: Contest = request.getfixturevalue(f"{which}_contest")
    header, planes, _ = blocks(request.getfixturevalue(f"{which}_page"))
    assert header["measures"] == list(contest.comparison.measures)
    assert [v["measure"] for v in header["values"]] == [0, 1, 2, 3]
    rng = np.random.default_rng(0)
    for _ in range(500):
        m, s = rng.integers(4), rng.integers(len(contest.entrants))
        q = rng.integers(contest.data.n_queries)
        exact = contest.entrants[s].report.per_query[header["measures"][m]][q]
        assert f"{value(header, planes, m, s, q):.4f}" == f"{exact:.4f}"
    assert header["docs"] == contest.data.lengths.tolist()
    assert header["relevant"] == [int((one.y > 0).sum()) for one in contest.data]


def test_the_embedded_comparison(small_contest: Contest, small_page: Path) -> None:
    header, _, _ = blocks(small_page)
    for row, d in zip(header["pairs"], small_contest.comparison.differences, strict=True):
        assert [header["measures"][row[0]], header["systems"][row[1]], header["systems"][row[2]]] == [
            d.measure,
            d.a,
            d.b,
        ]
        assert [f"{x:.4f}" for x in row[3:7]] == [f"{x:.4f}" for x in (d.difference, *d.interval, d.p_holm)]
        assert row[7:] == [d.wins, d.ties, d.losses, d.direction if d.shown else 0]


def test_rankings_of_every_system(small_contest: Contest, small_page: Path) -> None:
    header, _, rankings = blocks(small_page)
    assert sorted(one["query"] for one in rankings) == list(range(60))
    for one in rankings:
        rows = slice(*small_contest.data.ptr[one["query"] : one["query"] + 2])
        y, ids = small_contest.data.y[rows], small_contest.data.doc_ids[rows]
        for entrant, found in zip(small_contest.entrants, one["systems"], strict=True):
            scores = entrant.scores[rows]
            best = sorted(range(len(y)), key=lambda d: -scores[d])[:10]
            assert [one["docs"][i] for i in found["order"]] == [ids[d] for d in best]
            assert [one["grades"][i] for i in found["order"]] == [y[d] for d in best]
            assert found["scores"] == [f"{scores[d]:.4g}" for d in best]
            if entrant.rankers:
                unit = 10.0 ** -found["decimals"]
                for parts, d in zip(found["parts"], best, strict=True):
                    assert unit * sum(parts[1::2] + parts[-1:]) == pytest.approx(scores[d], abs=4 * unit)
            else:
                assert "parts" not in found
    weights = {header["systems"][w["system"]]: w for w in header["weights"]}
    assert set(weights) == {"ListNet", "RankSVM"}
    folds = np.stack([ranker.coef_ for ranker in small_contest.entrant("ListNet").rankers])
    assert weights["ListNet"]["features"] == list(range(8))
    np.testing.assert_allclose(weights["ListNet"]["mean"], folds.mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(weights["ListNet"]["low"], folds.min(axis=0), rtol=1e-3)


def test_why_adds_up_to_the_correlation(small_contest: Contest, small_page: Path) -> None:
    _, _, rankings = blocks(small_page)
    told = 0
    for one in rankings:
        rows = slice(*small_contest.data.ptr[one["query"] : one["query"] + 2])
        y, scores = small_contest.data.y[rows], small_contest.entrants[1].scores[rows]
        if len(set(y)) > 1:
            told += 1
            assert one["why"]["total"][1] == pytest.approx(np.corrcoef(scores, y)[0, 1], abs=6e-4)
            assert sum(one["why"]["shares"][1]) == pytest.approx(one["why"]["total"][1], abs=6e-3)
    assert told > 40


def test_the_size_is_bounded_and_the_page_says_what_it_leaves_out(large_contest: Contest, large_page: Path) -> None:
    assert large_page.stat().st_size < 500_000
    _, _, rankings = blocks(large_page)
    values = [entrant.report.per_query["ndcg@10"] for entrant in large_contest.entrants]
    means = [v.mean() for v in values]
    challenger = 1 + int(np.argmax(means[1:]))
    gaps = np.abs(values[challenger] - values[0])
    chosen = [one["query"] for one in rankings]
    assert 10 < len(chosen) < 1000
    assert gaps[chosen].min() >= np.delete(gaps, chosen).max()
    text = Reader(large_page.read_text(encoding="utf-8")).text
    assert f"the top of every ranking for {len(chosen)} queries" in text
    assert f"those on which system {challenger + 1} and system 1 differ most in ndcg@10" in text


def test_a_contest_that_cannot_fit_is_thinned_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    data = tr.datasets.make_graded(n_queries=3000, n_docs=8, n_features=2, random_state=0)
    reports = {f"s{i}": tr.evaluate(data.y + rng.standard_normal(data.n_docs), data, ["ndcg", "map"]) for i in range(6)}
    entrants = tuple(tr.contests.base.Entrant(name, data.y, report) for name, report in reports.items())
    contest = Contest("Long", data, entrants, tr.compare(reports, n_resamples=100), np.zeros(3000, dtype=np.int64))
    monkeypatch.setattr(pages, "LIMIT", 0)  # only the least room is left
    write_report(contest, tmp_path / "r.html")
    header, planes, _ = blocks(tmp_path / "r.html")
    assert 100 < len(header["ids"]) < 3000
    assert header["queries"] == 3000
    at = {str(q): i for i, q in enumerate(data.query_ids)}
    chosen = [at[q] for q in header["ids"]]
    a, b = header["challenger"], header["baseline"]
    gap = reports[f"s{a}"].per_query["ndcg"] - reports[f"s{b}"].per_query["ndcg"]
    assert {int(gap.argmin()), int(gap.argmax())} <= {int(np.flatnonzero(gap == gap[q])[0]) for q in chosen}
    for i, q in enumerate(chosen[:50]):
        assert f"{value(header, planes, 0, a, i):.4f}" == f"{reports[f's{a}'].per_query['ndcg'][q]:.4f}"
    assert f"{len(chosen):,} of 3,000 queries, evenly spaced" in Reader((tmp_path / "r.html").read_text()).text


def test_names_stay_text(small_page: Path) -> None:
    source = small_page.read_text(encoding="utf-8")
    found = Reader(source)
    tags = [tag for tag, _ in found.tags]
    assert tags.count("script") == 3
    assert not {"img", "link", "iframe", "object"} & set(tags)
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on") or name in ("src", "srcset")]
    assert [attrs["href"] for _, attrs in found.tags if "href" in attrs] == ["#measures"]
    assert found.text.count(NASTY) == 3  # the feature, the note and the certificate, word for word
    assert "://" not in source
    assert "url(" not in source


def test_only_the_pages_own_script_may_run(small_page: Path) -> None:
    found = Reader(small_page.read_text(encoding="utf-8"))
    policy = next(attrs["content"] for tag, attrs in found.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(found.inside["script"].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_every_kind_of_name_can_be_written(tmp_path: Path) -> None:
    contest = held(("ListNet",), n_queries=12, title=f"{NASTY} \ud800 {'long ' * 50}")
    ids = np.array(["\ud800", "x" * 100_000, "$title", "${data}", "\x00\n", *range(7)], dtype=object)
    write_report(replace(contest, data=replace(contest.data, query_ids=ids)), tmp_path / "r.html")
    header, _, _ = blocks(tmp_path / "r.html")
    assert header["ids"][0] == "?"
    assert len(header["ids"][1]) == 120
    assert header["ids"][2:4] == ["$title", "${data}"]


def test_what_the_static_part_says(small_contest: Contest, small_page: Path) -> None:
    text = Reader(small_page.read_text(encoding="utf-8")).text
    best = small_contest.comparison
    for measure in best.measures:
        for name in best.systems:
            low, high = best.interval(name, measure)
            assert f"{best.means[measure][name]:.4f}[{low:.4f}, {high:.4f}]" in text
    assert "is better than order as given" in text
    assert "of the baseline: +" in text
    assert "Not told apart from" in text
    assert "bar: observed, line: bound" in text
    assert "Ties matter in a query where documents with equal scores" in text
    assert "observed 12 ≤ bound 40, 30.0% of the bound. Holds." in text
    assert "✓ checked the data are separable" in text
    assert "○ on trust the stream is what it seems" in text
    assert "fold 1: alpha=0.01fold 2: alpha=0.1" in text
    assert "Convention standard" in text
    assert "valid 0.4 → 0.65; train 0.5 → 0.8 in 3 steps" in text


def _two(gap: float, n: int = 60, **options: Any) -> str:
    base = np.random.default_rng(0).random(n) * 0.5
    data = tr.datasets.make_graded(n_queries=n, n_docs=5, n_features=2, random_state=0)
    first = tr.evaluate(data.y, data, ["map"])
    reports = {name: replace(first, per_query={"map": v}) for name, v in {"a": base + gap, "b": base}.items()}
    reports["c"] = replace(first, per_query={"map": base - 0.2})
    entrants = tuple(tr.contests.base.Entrant(name, data.y, report) for name, report in reports.items())
    contest = Contest("t", data, entrants, tr.compare(reports, **options), np.zeros(n, dtype=np.int64))
    return Reader(pages.render(pages.ContestView.of(contest, "c"))).text


def test_the_headline_says_whether_it_is_shown() -> None:
    """The gain over the baseline (c) first, then who cannot be told apart."""
    assert "a is better than c" in _two(0.1)
    assert "shown at 5%, Holm. 2 of 2 systems are shown to be better than the baseline." in _two(0.1)
    assert "a is shown to be better than each of the 2 others." in _two(0.1)
    assert "Not told apart from a (at 5%, Holm): b." in _two(0.0)
    assert "told apart" not in _two(0.1, baseline="c").split("Means with")[0]
    assert "No gain of b over c is shown" in _two(-0.15, n=5)
    assert "hardly any difference can show here" in _two(0.1, n_resamples=20)
    assert "hardly any difference can show here" not in _two(0.1)
    assert "hardly any difference can show here" not in _two(0.1, alpha=1e-9)
    assert "10,000 flips, half of them tilted towards the tail" in _two(0.1)


def test_a_wrong_baseline_and_a_wrong_place(small_contest: Contest, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="baseline"):
        write_report(small_contest, tmp_path / "r.html", baseline="ListNot")
    with pytest.raises(InputError, match="cannot write"):
        write_report(small_contest, tmp_path / "nowhere" / "r.html")
    with pytest.raises(InputError, match="compare the entrants' reports"):
        write_report(replace(small_contest, entrants=small_contest.entrants[:2]), tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


def test_reports_and_comparisons_are_pages_too(small_contest: Contest, tmp_path: Path) -> None:
    reports = {entrant.name: entrant.report for entrant in small_contest.entrants}
    for what in (reports, tr.compare(reports)):
        tr.write_report(what, tmp_path / "r.html", baseline="order as given", title="Mine")
        header, planes, rankings = blocks(tmp_path / "r.html")
        assert rankings == []
        assert header["docs"] is None
        exact = small_contest.entrants[1].report.per_query["ndcg@10"][3]
        assert f"{value(header, planes, 0, 1, 3):.4f}" == f"{exact:.4f}"
        text = Reader((tmp_path / "r.html").read_text()).text
        assert "no rankings: reports know no documents" in text
        assert "What new queries will see" in text
    with pytest.raises(InputError, match="compare takes reports by name, got int"):
        tr.write_report(3, tmp_path / "x.html")
    with pytest.raises(InputError, match="baseline must be one of"):
        tr.write_report(reports, tmp_path / "x.html", baseline="nobody")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("order", [("theirs", "mine"), ("mine", "theirs")])
def test_the_better_of_two_runs_is_held_against_the_other(order: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    grades = {f"q{i}": {f"d{j}": int(rng.random() < 0.3) for j in range(10)} for i in range(60)}
    gains = {"theirs": 0.2, "mine": 0.8}
    runs = {
        name: {q: {d: rng.random() + gains[name] * y for d, y in docs.items()} for q, docs in grades.items()}
        for name in order
    }
    contest = of_runs(runs, grades, ["ndcg@10"])
    said = headline(view.ContestView.of(contest))
    assert "mine is better than theirs" in said
    assert "Nothing beats" not in said
    assert "the 1 others" not in said
    assert "(at 95%" in said
    assert "Nothing beats mine" in headline(view.ContestView.of(contest, "mine"))  # where it is named


def test_what_a_run_did_not_retrieve_is_nowhere(tmp_path: Path) -> None:
    runs = {
        "one": {"q": {"a": 2.0, "b": 1.0}, "r": {"c": 1.0}},
        "two": {"q": {"b": 2.0, "z": 1.0}, "stray": {"a": 1.0}},
    }
    contest = of_runs(runs, {"q": {"a": 1, "b": 0, "c": 2}, "r": {"c": 1}}, ["ndcg@10"])
    tr.write_report(contest, tmp_path / "r.html")
    header, _, rankings = blocks(tmp_path / "r.html")
    assert (header["ids"], header["docs"], header["relevant"]) == (["q", "r"], [4, 1], [2, 1])
    shown = {
        header["ids"][one["query"]]: [[one["docs"][i] for i in system["order"]] for system in one["systems"]]
        for one in rankings
    }
    order = header["systems"].index("one")
    assert shown["q"][order] == ["a", "b"]
    assert shown["q"][1 - order] == ["b", "z"]
    assert shown["r"][1 - order] == []
    with pytest.raises(InputError, match="no judged query is answered by every run"):
        of_runs({"one": {"q": {"a": 1.0}}, "two": {"r": {"a": 1.0}}}, {"q": {"a": 1}, "r": {"a": 1}}, complete=False)


def test_colours_can_be_told_apart() -> None:
    """WCAG AA: text against what it stands on, in both themes, at least 4.5 to 1."""
    style = files("toprank.report").joinpath("assets", "page.css").read_text(encoding="utf-8")
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in re.findall(r"{[^{}]*--paper: [^{}]*}", style)]
    assert len(themes) == 3
    assert themes[1] == themes[2]

    def rgb(colour: str) -> list[int]:
        return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]

    def light(colour: list[float] | list[int]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: list[float] | list[int], other: list[float] | list[int]) -> float:
        bright, dim = sorted((light(one), light(other)), reverse=True)
        return (bright + 0.05) / (dim + 0.05)

    def washed(theme: dict[str, str], share: float) -> list[float]:
        """The accent laid thinly over the paper, as behind a cell of the matrix or a grade."""
        return [share * m + (1 - share) * p for m, p in zip(rgb(theme["mark"]), rgb(theme["paper"]), strict=True)]

    for theme in themes:
        for text in ("ink", "quiet", "mark", "down"):
            for ground in ("paper", "panel"):
                assert contrast(rgb(theme[text]), rgb(theme[ground])) >= 4.5, (text, ground)
        assert contrast(rgb(theme["mark"]), washed(theme, 0.14)) >= 4.5
        assert contrast(rgb(theme["ink"]), washed(theme, 0.48)) >= 4.5


def test_certificates_that_say_nothing_are_folded_away() -> None:
    said = [
        Certificate("x ≤ A", 40.0, 12.0, "told", vacuous_from=100.0),
        Certificate("x ≤ B", 400.0, 12.0, "silent", vacuous_from=100.0),
        Certificate("x ≤ C", 40.0, 12.0, "elsewhere", (Assumption("it rains", False),)),
        Certificate("x ≤ D", 4.0, 12.0, "broken"),
    ]
    contest = held()
    entrants = tuple(replace(e, certificates=tuple(said)) if e.name == "ListNet" else e for e in contest.entrants)
    html = sections.certificates(view.ContestView.of(replace(contest, entrants=entrants)))
    drawn, folded = html.split("<details>")
    assert "told" in drawn
    assert "broken" in drawn
    assert "2 that say nothing or do not apply here" in folded
    for name in ("silent", "elsewhere"):
        assert name in folded
        assert name not in drawn


def test_numbers_are_written_one_way(small_page: Path) -> None:
    """− is the minus of every number, and no whole number of four digits or more stands without its commas."""
    text = small_page.read_text(encoding="utf-8")
    body = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
    assert not re.findall(r"(?<![\w.)])-\d|\de-\d", body)
    assert not re.findall(r"(?<![\w.,=−/-])\d{4,}(?=[ ,;])", body)
    assert "−" in body
    said = [Certificate("loss on 2679 queries ≤ A", 1.5e-7, -2e-8, "told")]
    html = "".join(sections._certificate(one) for one in said)
    assert "loss on 2,679 queries" in html
    assert "observed −2e−08 ≤ bound 1.5e−07" in html


def test_measures_that_count_fewer_queries_are_told(tmp_path: Path) -> None:
    """AUC has no value on a query of one grade: the page says how many it counts, and no number of it is broken."""
    data = tr.datasets.make_graded(n_queries=20, n_features=3, random_state=0)
    y = data.y.copy()
    y[data.ptr[2] : data.ptr[3]] = 1
    data = tr.QueryDataset.from_arrays(data.X, y, data.qid)
    reports = {f"f{j}": tr.evaluate(data.feature(j), data, ["auc", "map"]) for j in range(3)}
    tr.write_report(reports, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Some measures count fewer queries: auc 19." in text
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"\bnan\b", shown)
