"""Online learners on real streams: MQ2008 and OHSUMED 3.0 from the folder that TOPRANK_DATA names.

    TOPRANK_DATA=… python -m benchmarks.streams

One pass: time-averaged NDCG@10 and AP of the three learners, the step chosen on the first fifth of the stream. Epochs:
test NDCG@10 and MAP after k epochs (mean of five folds), last weights, averaged weights and the better of both, all
chosen by the same measure on the validation part, beside batch ListNet chosen the same way.
"""

from __future__ import annotations

import numpy as np

from toprank._tables import Table

COLLECTIONS = ("mq2008-letor4", "ohsumed-letor3")
ETAS = {"SlamPerceptron": (1e-3, 1e-2, 0.1, 1.0), "MinimaxPerceptron": (1.0,), "OnlineListNet": (1e-3, 1e-2, 0.1, 1.0)}
EPOCHS = (1, 5, 20)


def whole(name: str):
    """All queries of a collection: the parts of its first fold."""
    import toprank as tr

    parts = [tr.datasets.load(name, fold=1, part=part) for part in ("train", "valid", "test")]
    X = np.concatenate([np.asarray(part.X) for part in parts])
    y = np.concatenate([part.y for part in parts])
    ids = np.concatenate([part.qid for part in parts])
    return tr.QueryDataset.from_arrays(X, y, ids)


def one_pass() -> Table:
    from toprank.papers.online_perceptrons import fig2, fig3

    rows = []
    for name in COLLECTIONS:
        data = whole(name)
        for scale in (None, "running"):
            for text, make in (("NDCG@10", fig3), ("AP", fig2)):
                exhibit = make(data, scale=scale)
                rows += [(name, str(scale), text, *row[1:]) for row in exhibit.table.rows]
    columns = ("stream", "scale", "measure", "learner", "η", "last ten averages", "time average")
    return Table(columns, rows, title="One pass")


def epochs() -> Table:
    import toprank as tr

    rows = []
    for name in COLLECTIONS:
        found: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for fold in range(1, 6):
            train, valid, test = (tr.datasets.load(name, fold=fold, part=p) for p in ("train", "valid", "test"))

            def reached(ranker, data, measure):
                return tr.measure(measure).mean(ranker.predict_grouped(data), data.y, data.ptr)

            def keep(label, kept, test=test, found=found):
                pair = tuple(reached(kept[m], test, m) for m in ("ndcg@10", "map"))
                found.setdefault(label, []).append(pair)

            for kind in (tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet):
                for average in (False, True, "auto"):
                    for k in EPOCHS:
                        kept = {}
                        for measure in ("ndcg@10", "map"):
                            tried = [
                                kind(measure, eta=eta, epochs=k, average=average, scale=scale, random_state=0)
                                .fit_queries(train, valid=valid)
                                for eta in ETAS[kind.__name__]
                                for scale in (None, "running")
                            ]  # fmt: skip
                            kept[measure] = max(tried, key=lambda r, m=measure: reached(r, valid, m))
                        how = {False: "last", True: "averaged"}.get(average, "auto")
                        keep((kind.__name__, f"{k} epochs, {how}"), kept)
            batch = [
                tr.ListNet(measure="map", alpha=alpha).fit_queries(train, valid=valid) for alpha in (1e-4, 1e-3, 1e-2)
            ]
            keep(
                ("ListNet", "batch"),
                {m: max(batch, key=lambda r, m=m: reached(r, valid, m)) for m in ("ndcg@10", "map")},
            )
        for (learner, how), pairs in found.items():
            rows.append((name, learner, how, *np.mean(pairs, axis=0).tolist()))
    return Table(("collection", "learner", "how", "test NDCG@10", "test MAP"), rows, title="Epochs, mean of five folds")


if __name__ == "__main__":
    print(one_pass(), epochs(), sep="\n\n")
