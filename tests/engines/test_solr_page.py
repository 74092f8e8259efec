"""docs/from-solr-logs.md, every command, against a Solr node."""

import random
from pathlib import Path

import pytest

from tests.engines.running import solr
from tests.search_engine import WORDS, judgements
from tests.test_docs import ROOT, SHELL, assert_same, blocks, in_shell


@pytest.mark.skipif(not SHELL, reason="bash, curl and jq are not all here")
def test_the_way_from_logs_to_a_ranker_in_solr_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, judged = judgements()
    Path("queries.tsv").write_text("".join(f"{q}\t{words}\n" for q, words in names.items()))
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, docs in judged.items() for d, g in docs.items()))
    rng = random.Random(1)
    documents = [
        {
            "id": f"p{number}",
            "title": " ".join(["garden", *rng.sample(WORDS[1:], 2)]),
            "body": " ".join(rng.choices(WORDS, k=8)),
            "age_days": 10 * rng.random(),
            **({"click_rate": rng.random()} if number % 7 else {}),
        }
        for number in range(10, 60)
    ]
    checked = 0
    with solr() as node:
        node.must("POST", "products/update?commit=true", documents)
        address = f"{node.address}/products"
        monkeypatch.setenv("SOLR", address)
        found = blocks(ROOT / "docs" / "from-solr-logs.md")
        for (kind, text), (next_kind, wanted) in zip(found, [*found, ("", "")][1:], strict=True):
            if kind == "bash":
                # Every block is a shell of its own, and calls of toprank are made in this process.
                printed = in_shell("\n".join(
                    line.replace('"$SOLR"', address) if line.startswith("toprank ") else line
                    for line in text.replace("\\\n", " ").splitlines()
                ))  # fmt: skip
                if next_kind == "text":
                    assert_same(printed.split(), wanted.split())
                    checked += 1
    assert checked == 3
    assert "ndcg@10" in Path("promise.txt").read_text()
