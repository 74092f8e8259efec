"""Coverage and width of intervals from two judges, on TREC DL 2021 by resampling and on made judges.

Run as `TOPRANK_DATA=… python benchmarks/judges.py [PART] …`; the parts are named at the end of this file. Each side of
an interval may miss with 5%. Printed per cell: the share of misses on either side (should not exceed .05), and the mean
distance of the truth from the lower bound for people alone, for both judges and by the normal law.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import toprank as tr
from toprank.certificates.judged import judged_difference, judged_interval

HEAD = f"{'':28} {'misses':>14} {'misses':>14} {'slack':>7} {'slack':>7} {'slack':>7}\n" + (
    f"{'':28} {'people':>14} {'both':>14} {'people':>7} {'both':>7} {'normal':>7}"
)


def dl21(measure: str = "ndcg@10", judge: str = "gpt4") -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return a measure of every run by people and by the machine (run × query), and the names of the runs."""
    home = Path(os.environ["TOPRANK_DATA"], "trec-dl21")
    qrels = [tr.read_qrels(home / f"qrels.{who}.txt") for who in ("human", judge)]
    values, names = [], []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(home / "runs.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            run = tr.read_run(path)
            values.append([tr.evaluate_run(run, one, [measure]).per_query[measure] for one in qrels])
            names.append(path.stem)
    h, f = np.array(values).transpose(1, 0, 2)
    return h, f, names


def line(name: str, found: list, truths: list[float]) -> None:
    """Print misses on either side and mean slack."""
    kinds = {
        "people": [x.people for x in found],
        "both": found,
        "normal": [x.approximate for x in found],
    }
    shown, slack = [], []
    for kind, intervals in kinds.items():
        low = np.mean([i.lower > t + 1e-12 for i, t in zip(intervals, truths, strict=True)])
        high = np.mean([i.upper < t - 1e-12 for i, t in zip(intervals, truths, strict=True)])
        if kind != "normal":
            shown.append(f"{low:.3f} {high:.3f}")
        slack.append(np.mean([t - i.lower for i, t in zip(intervals, truths, strict=True)]))
    print(f"{name:28} {shown[0]:>14} {shown[1]:>14} {slack[0]:7.4f} {slack[1]:7.4f} {slack[2]:7.4f}", flush=True)


def on_dl21(repeats: int = 12) -> None:
    """Draw n of the 53 queries for every run; the truth is people's mean on all 53."""
    h, f, names = dl21()
    print(f"DL21, {len(names)} runs, {repeats} draws each, N = {h.shape[1]}, the machine takes part everywhere\n{HEAD}")
    rng = np.random.default_rng(0)
    for n in (10, 20, 30, 40):
        found, truths = [], []
        for a, b in zip(h, f, strict=True):
            for _ in range(repeats):
                order = rng.permutation(len(a))
                own, rest = order[:n], order[n:]
                found.append(judged_interval(a[own], b[own], b[rest], 0.9, with_machine=True))
                truths.append(float(a.mean()))
        line(f"n = {n}", found, truths)


def resampled(repeats: int = 3, size: int = 1000) -> None:
    """Resample the 53 queries to a population; people judge n of it."""
    h, f, _ = dl21()
    rng = np.random.default_rng(1)
    for target in ("these", "new"):
        print(f"DL21 resampled to N = {size}, every third run, {repeats} draws each, target {target}\n{HEAD}")
        for n in (50, 100, 200, 400):
            found, truths = [], []
            for a, b in zip(h[::3], f[::3], strict=True):
                for _ in range(repeats):
                    population = rng.integers(0, len(a), size)
                    x, y = a[population], b[population]
                    found.append(judged_interval(x[:n], y[:n], y[n:], 0.9, target=target, with_machine=True))
                    truths.append(float(x.mean() if target == "these" else a.mean()))
            line(f"n = {n}", found, truths)


def made(repeats: int = 60) -> None:
    """Judges that are good, bad, adversarial and constant, on made queries."""
    judges = {
        "good": lambda h, rng: np.clip(h + 0.1 + rng.normal(scale=0.05, size=h.shape), 0, 1),
        "like gpt4": lambda h, rng: np.clip(h + 0.14 + rng.normal(scale=0.2, size=h.shape), 0, 1),
        "noise": lambda h, rng: rng.random(h.shape),
        "adversarial": lambda h, rng: 1 - h,
        "constant": lambda h, rng: np.full(h.shape, 0.7),
    }
    print(f"made, N = 1000, {repeats} draws each, with the machine\n{HEAD}")
    rng = np.random.default_rng(2)
    for n in (20, 60, 200):
        for name, make in judges.items():
            found, truths = [], []
            for _ in range(repeats):
                h = rng.beta(2, 2, size=1000)
                f = make(h, rng)
                found.append(judged_interval(h[:n], f[:n], f[n:], 0.9, with_machine=True))
                truths.append(float(h.mean()))
            line(f"{name}, n = {n}", found, truths)


def differences(repeats: int = 2) -> None:
    """The difference of neighbouring runs, resampled."""
    h, f, _ = dl21()
    rng = np.random.default_rng(3)
    size = 2000
    print(f"differences of runs three apart, DL21 resampled to N = {size}\n{HEAD}")
    for n in (53, 200, 400, 800):
        found, truths = [], []
        for i in range(0, len(h) - 3, 3):
            for _ in range(repeats):
                q = rng.integers(0, h.shape[1], size)
                a, b, x, y = h[i][q], h[i + 3][q], f[i][q], f[i + 3][q]
                pairs = (a[:n], b[:n]), (x[:n], y[:n]), (x[n:], y[n:])
                found.append(judged_difference(*pairs, 0.9, with_machine=True))
                truths.append(float((a - b).mean()))
        line(f"n = {n}", found, truths)


def learning(repeats: int = 4) -> None:
    """Learn ListNet from ranks in the runs: by people's grades, by the machine's, and by the machine's corrected.

    Five folds of queries; of each training part people judged n queries, at random. The correction gives a document the
    mean of people's grades over the documents of these n queries with the same grade by the machine. NDCG@10 is by
    people's grades on the test queries.
    """
    data, machine = as_queries()
    rng = np.random.default_rng(4)
    ways = ("people", "machine", "corrected", "people, else corrected")
    print(
        f"NDCG@10 by people, 5 folds × {repeats} draws; ± is the standard error over queries of − machine\n{'':8}",
        *ways,
    )
    for n in (5, 10, 20, 42):
        values = {way: np.zeros(data.n_queries) for way in ways}
        for _ in range(repeats):
            fold = rng.permutation(data.n_queries) % 5
            for k in range(5):
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                judged = rng.permutation(train)[:n]
                for way, learned in labelled(data, machine, train, judged).items():
                    model = tr.ListNet().fit_queries(learned)
                    report = tr.evaluate(model, data[test], ["ndcg@10"])
                    values[way][test] += report.per_query["ndcg@10"] / repeats
        told = []
        for way in ways:
            apart = values[way] - values["machine"]
            told.append(
                f"{way} {values[way].mean():.4f} ({apart.mean():+.4f} ± {apart.std(ddof=1) / len(apart) ** 0.5:.4f})"
            )
        print(f"n = {n:3}:", "; ".join(told), flush=True)


def as_queries() -> tuple[tr.QueryDataset, np.ndarray]:
    """Return the judged documents with their places in the runs as features, and the machine's grades."""
    home = Path(os.environ["TOPRANK_DATA"], "trec-dl21")
    people, gpt4 = (tr.read_qrels(home / f"qrels.{who}.txt") for who in ("human", "gpt4"))
    row = {pair: i for i, pair in enumerate(zip(people.qid.tolist(), people.doc_ids.tolist(), strict=True))}
    grades = np.zeros(len(row))
    for q, d, g in zip(gpt4.qid.tolist(), gpt4.doc_ids.tolist(), gpt4.grades.tolist(), strict=True):
        grades[row[q, d]] = g
    columns = []
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(home / "runs.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            run, column = tr.read_run(path), np.zeros(len(row))
            for q, d, rank in zip(run.qid.tolist(), run.doc_ids.tolist(), run.rank.tolist(), strict=True):
                if (q, d) in row:
                    column[row[q, d]] = max(0, 101 - rank) / 100
            columns.append(column)
    data = tr.QueryDataset.from_arrays(np.stack(columns, axis=1), people.grades.astype(float), people.qid)
    return data, data.grouped(grades)


def labelled(
    data: tr.QueryDataset, machine: np.ndarray, train: np.ndarray, judged: np.ndarray
) -> dict[str, tr.QueryDataset]:
    """Return what each way learns from."""
    known = np.isin(data.query_of_rows, judged)
    mean = {g: data.y[known & (machine == g)].mean() if (known & (machine == g)).any() else g for g in range(4)}
    corrected = np.array([mean[int(g)] for g in machine])
    ys = {"machine": machine, "corrected": corrected, "people, else corrected": np.where(known, data.y, corrected)}
    found = {way: replace(data, y=y)[train] for way, y in ys.items()}
    return {"people": data[judged], **found}


if __name__ == "__main__":
    parts = {
        "dl21": on_dl21,
        "resampled": resampled,
        "made": made,
        "differences": differences,
        "learning": learning,
    }
    for part in sys.argv[1:] or parts:
        parts[part]()
