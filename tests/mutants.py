"""Mutants: one line of the library is changed, and a named small test, which passes without the change, must fail.

`make mutants` runs all of them, `python tests/mutants.py watching` those whose file or test has this in its name, and
`--list` prints them. A mutant that survives is a hole in the tests, and so is one whose line is no longer there: the
script says which and ends with 1. Each runs on a copy of the sources in `.cache/mutants`, where compiled kernels stay
as long as no source changes, so nothing here is ever changed. A run that was cut short goes on where it stopped: what
was caught is kept under a hash of all sources and tests, and tried again when one of them has changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
PLACE = TOP / ".cache" / "mutants"
SOURCES, COMPILED, CHANGED = PLACE / "src", PLACE / "compiled", PLACE / "changed"
CAUGHT, SOURCES_HASH = PLACE / "caught.txt", PLACE / "compiled.sha256"


class Mutant(NamedTuple):
    """A file of the library, what stands in it, what stands there instead, and the test that must notice."""

    file: str
    old: str
    new: str
    test: str


WATCH, FAILED = "tests/rankers/test_watching.py", "tests/rankers/test_failed_fit.py"
SILENCE, LAWS, LINEAR = "tests/rankers/test_silence.py", "tests/rankers/test_laws.py", "tests/rankers/test_linear.py"
BOUNDED, CURVES = "tests/solvers/test_bounded.py", "tests/rankers/test_penalties.py -k curve"
PENALTY, BOOSTING = "tests/test_objective.py -k penalty", "tests/solvers/test_boosting.py"
MISTAKES, KERNEL = "tests/certificates/test_mistakes.py", "tests/certificates/test_kernel_mistakes.py"
STREAMS = "tests/certificates/test_streams.py"
DEFINITIONS, TIES = "tests/measures/test_definitions.py", "tests/measures/test_ties.py"
FOLDER = "tests/core/test_cache_folder.py"
CONTRACT, AT_K = "tests/rankers/test_contract.py", "tests/rankers/test_at_k.py"
AB = "tests/clicks/test_ab.py"
JUDGED, JUDGES = "tests/certificates/test_two_judges.py", "tests/judging/test_judge.py"

OTHERS = "tests/interop/test_tree_files.py"
GUESTS = "tests/contests/test_estimators.py"
MUTANTS = [
    # Two judges
    Mutant(
        "certificates/_judged_kernels.py", "m_t < -ROUNDING", "m_t < 0.0", f"{JUDGED} -k rounding",
    ),
    Mutant(
        "certificates/two_judges.py", "False if p < SAMPLE_LEVEL else None", "None",
        f"{JUDGED} -k random_sample",
    ),
    Mutant(
        "certificates/two_judges.py", "(1 - confidence) / claims", "(1 - confidence)", f"{JUDGED} -k says_what"
    ),
    Mutant("judging/favour.py", "gaps[a] - gaps[b]", "gaps[a] + gaps[b]", f"{JUDGES} -k favour_are"),
    Mutant("judging/report.py", "else systems.index(baseline)", "else 0", f"{JUDGES} -k whole_report"),
    Mutant("judging/matching.py", "if unjudged == \"refuse\":", "if False:", f"{JUDGES} -k not_random"),
    Mutant(
        "judging/agreement.py", "[None, :]).astype(np.float64) ** 2", "[None, :] != 0).astype(np.float64)",
        f"{JUDGES} -k agreement",
    ),
    # One watcher
    Mutant(
        "rankers/watching.py", "data.query_weight)", "None)",
        f"{WATCH} -k weights_of_the_validation and (ListNet or AtK)",
    ),
    Mutant("rankers/watching.py", "doc_ids=data.doc_ids", "doc_ids=None", f"{WATCH} -k document_ids"),
    Mutant("rankers/watching.py", "reached > self.reached[", "reached >= self.reached[", f"{WATCH} -k patience"),
    Mutant("rankers/watching.py", ">= self.patience", "> self.patience", f"{WATCH} -k patience"),
    Mutant("rankers/watching.py", "best > worst", "best >= worst", f"{WATCH} -k cannot_choose and ListNet"),
    # A fit that fails, and the doors
    Mutant("rankers/base.py", "new = object.__new__(type(self))", "new = self", f"{FAILED} -k refused_fit and ListNet"),
    Mutant("rankers/base.py", "self.__dict__ is not before", "False", f"{FAILED} -k two_threads and SlamPerceptron"),
    Mutant("rankers/checking.py", "check_grades(grades,", "LARGEST_GRADE, (", f"{WATCH} -k same_words and ListNet"),
    Mutant("rankers/checking.py", "grades, largest, r", "grades, 1e9, r", f"{WATCH} -k same_words and ListNet"),
    Mutant(
        "rankers/checking.py", "grades = data.in_caller_order(data.y)", "grades = data.y",
        f"{WATCH} -k same_words and ListNet",
    ),
    Mutant(
        "rankers/base.py", "columns[rows, j] = ranks(", "columns[:, j] = ranks(",
        f"{LAWS} -k interleaved and ListNet",
    ),
    Mutant("rankers/checking.py", "rows > ONE_LIST", "rows < 0", f"{SILENCE} -k without_qid"),
    Mutant("rankers/checking.py", "known.get(query, length) != length", "False", f"{SILENCE} -k cuts_queries"),
    Mutant(
        "model/functions.py", "X.shape[1] != self.n_features", "X.shape[1] < self.n_features",
        f"{FAILED} -k each_model",
    ),
    Mutant("rankers/kernel.py", "store = store.copy()", "store = store", f"{FAILED} -k held_model and Kernel"),
    # Two classes and the top
    Mutant("measures/_list_kernels.py", "ends[low - 1] == high", "ends[low - 1] < high", f"{SILENCE} -k enumeration"),
    Mutant("measures/_list_kernels.py", "* (last - low) / (high - low)", "", f"{SILENCE} -k enumeration"),
    Mutant("rankers/two_classes.py", "int(data.y.sum())", "data.n_docs", f"{AT_K} -k default_to_the_share"),
    Mutant("rankers/scoring.py", '-1.0 if coding.kind == "grades" else 1.0', "1.0", f"{SILENCE} -k three_classes"),
    Mutant("rankers/at_k.py", "self.k / max(n_positive, 1)", "1.0", f"{SILENCE} -k judged_list"),
    Mutant("rankers/at_k.py", "skipped > played / 2", "skipped > played", f"{SILENCE} -k skipped"),
    # Streams, files, compositions
    Mutant(
        "rankers/stream.py", "before is not None and before != now", "False",
        f"{SILENCE} -k one_measure and Minimax",
    ),
    Mutant("rankers/perceptrons.py", "min(averages.values()) == averages[best]", "False", f"{SILENCE} -k step_sizes"),
    Mutant("rankers/persistence.py", "content.version != VERSION", "False", f"{CONTRACT} -k spoilt"),
    Mutant("rankers/persistence.py", "function.n_features != inputs.n_outputs", "False", f"{CONTRACT} -k spoilt"),
    Mutant("rankers/linear.py", "self.coef_ / steps.eta", "0 * self.coef_", f"{LINEAR} -k starts_at"),
    Mutant("rankers/linear.py", "if not loss.convex:", "if False:", f"{LINEAR} -k goes_on and RankCosine"),
    Mutant("rankers/base.py", 'if not vars(self).get("warm_start") or', "if True or", f"{LINEAR} -k warm_start"),
    # Data
    Mutant(
        "data/grouping.py", "heads[first], order", "np.unique(heads), order",
        "tests/data/test_dataset.py -k first_appearance",
    ),
    Mutant("data/validation.py", "if (heights > LARGEST)", "if (heights < 0)", f"{SILENCE} -k overflow"),
    Mutant(
        "data/dataset.py", "result[self.order] = values", "result[:] = values[self.order]",
        "tests/data/test_dataset.py -k permuting_rows",
    ),
    Mutant("data/_sketch_kernels.py", "LIST_BITS < fresh[j]", "LIST_BITS > fresh[j]", "src/toprank/data/sketch.py"),
    Mutant("data/labels.py", "pos_label is None or pos_label == high", "True", "tests/data/test_labels.py"),
    # Reading LETOR text
    Mutant(
        "data/_letor_kernels.py", "if p + (t - error) == p + (t + error) else np.nan", "if True else np.nan",
        "tests/data/test_letor_numbers.py",
    ),
    Mutant(
        "data/_letor_kernels.py", "(2.0 * h1 if cut else 0.0)", "0.0",
        "tests/data/test_letor_numbers.py -k sure",
    ),
    Mutant(
        "data/_letor_kernels.py", "rising &= index > last", "rising &= index >= last",
        "tests/data/test_letor.py -k named_by_file",
    ),
    Mutant(
        "data/_letor_sink.py", "or name != self._query_names[-1]", "or True",
        "tests/data/test_letor.py -k chunks",
    ),
    Mutant(
        "data/_letor_chunk.py", "starts[1:][twice].min()", "starts[:-1][twice].min()",
        "tests/data/test_letor.py -k named_by_file",
    ),
    Mutant(
        "model/inputs.py", "return _Chain(self.steps)(data)", "return data",
        "tests/cli/test_imports.py -k as_its_ranker",
    ),
    # Measures and evaluation
    Mutant(
        "measures/base.py", "(values[counted] * factors[counted]).sum()", "values[counted].sum()",
        f"{WATCH} -k weights_of and ListNet",
    ),
    Mutant("measures/plan.py", "np.maximum(log[:-1], 1.0)", "log[1:]", f"{DEFINITIONS} -k late_ranks"),
    Mutant(
        "measures/base.py", "np.where(unweighted, 1.0, weights)", "weights",
        "tests/measures/test_tools.py -k blank_queries_with_weights",
    ),
    Mutant(
        "statistics/_statistics.py", "len(p) - np.arange(len(p))", "len(p)",
        "src/toprank/statistics/_statistics.py",
    ),
    Mutant("measures/_rank_kernels.py", "count += s[i] >= lowest", "count += s[i] > lowest", TIES),
    Mutant("measures/_rank_kernels.py", "len(ends) if ties == AVERAGE else 0", "0", TIES),
    Mutant("measures/_rank_kernels.py", "-y[order[r]] if ties == WORST else", "", f"{DEFINITIONS} -k catboost"),
    Mutant("measures/_list_kernels.py", "if gains[low] != gains[high - 1]:", "if False:", TIES),
    Mutant(
        "measures/order.py", "TIE_TOLERANCE = 1e-12", "TIE_TOLERANCE = 0.0",
        "tests/measures/test_list_kernels.py -k tied_documents",
    ),
    Mutant("core/sorting.py", "wrong += middle - i", "wrong += 1", "tests/core/test_sorting.py -k long_lists"),
    Mutant("core/sorting.py", "wrong += i - before_i", "wrong += i", f"{DEFINITIONS} -k auc"),
    Mutant("core/cache_folder.py", "stamp not in file.name or ", "", f"{FOLDER} -k removed"),
    Mutant("core/cache_folder.py", "or not _is_whole", "or _is_whole", f"{FOLDER} -k cut"),
    Mutant("core/cache_folder.py", "(within or not found.st_mode & stat.S_ISVTX)", "within", f"{FOLDER} -k refused"),
    Mutant("serve/service.py", "RunningMean().after(0.5).interval()", "", "tests/serve/test_ready.py -k first_ranking"),
    # Surrogates
    Mutant(
        "surrogates/base.py", "grad * np.repeat(weight, np.diff(ptr))", "grad",
        "tests/test_objective.py tests/surrogates",
    ),
    Mutant("measures/binary.py", "np.ceil(share", "np.floor(share", f"{AT_K} -k pseudo_code and kappa"),
    Mutant(
        "surrogates/_pairwise_kernels.py", "count * (1.0 - t[i])", "count * (2.0 - t[i])",
        "tests/surrogates/test_pairwise.py",
    ),
    Mutant(
        "surrogates/_pairwise_kernels.py", "v_lower, out_lower = t[stop:]", "v_lower, out_lower = t[start:]",
        "tests/surrogates/test_pairwise.py",
    ),
    Mutant(
        "surrogates/_pairwise_kernels.py", "if t_i - t[j] < 1.0 else", "if t_i - t[j] <= 1.0 else",
        "tests/surrogates/test_pairwise.py -k pair_list",
    ),
    Mutant(
        "surrogates/_margin_kernels.py", "v[documents[p]] /= Z", "v[documents[p]] /= 1.0",
        "tests/surrogates/test_slam.py -k definition",
    ),
    Mutant(
        "surrogates/_margin_kernels.py", "(next_place[level[i]] < k)", "(next_place[level[i]] < k - 1)",
        "tests/surrogates/test_slam.py -k definition",
    ),
    Mutant(
        "surrogates/_margin_kernels.py", "gap == largest and worst[h] < i_star", "False",
        "tests/surrogates/test_slam.py -k minimax",
    ),
    Mutant(
        "surrogates/_listwise_kernels.py", "0 < equal < n - 1", "0 < equal",
        "tests/surrogates/test_listwise.py",
    ),
    Mutant(
        "surrogates/transforms.py", "math.log(self.a / 4)", "math.log(self.a / 2)",
        "tests/surrogates/test_transforms.py",
    ),
    # Objective and solvers
    Mutant("penalties.py", "0.5 * self.alpha * float(w @ w)", "self.alpha * float(w @ w)", PENALTY),
    Mutant("objective.py", "w), grad + self.measured_penalty.gradient(w)\n", "w), grad\n", PENALTY),
    Mutant("solvers/bounded.py", "np.where(signs.sign * best < 0, 0.0, best)", "best", BOUNDED),
    Mutant("solvers/bounded.py", "/ self.scale + self.cost", "/ self.scale", BOUNDED),
    Mutant("rankers/signs.py", "np.where(first, column, ramp - 1)", "column", CURVES),
    Mutant("objective.py", "part.place[run.rows]", "NO_PLACES", "tests/test_objective.py -k sampled_orders"),
    Mutant(
        "solvers/bundle.py", "slope @ slope / (2 * alpha))", "slope @ slope / (4 * alpha))",
        "tests/solvers/test_bundle.py",
    ),
    Mutant(
        "solvers/ball.py", "w * (radius / norm)", "w / norm",
        "tests/solvers/test_ball.py src/toprank/solvers/ball.py",
    ),
    Mutant("solvers/stream.py", "self.weights[1] / rounds", "self.weights[1]", f"{AT_K} -k pseudo_code and kappa"),
    Mutant(
        "solvers/_boosting_kernels.py", "high[pairs.level[i]] += 1.0 / out[i]", "high[pairs.level[i]] += out[i]",
        BOOSTING,
    ),
    Mutant(
        "solvers/_boosting_kernels.py", "at_zero[k]] -= stored", "at_zero[k]] += stored",
        f"{BOOSTING} -k sparse_columns",
    ),
    Mutant("solvers/adarank.py", "np.exp(-self.E)", "np.exp(self.E)", f"{BOOSTING} -k paper_rule_is_the_figure"),
    Mutant("solvers/adarank.py", "step_share /= 2", "step_share /= 4", f"{BOOSTING} -k improve_rule_is_its_oracle"),
    Mutant(
        "solvers/adarank.py", "after.mean * ALMOST_ONE > f.mean", "after.mean > f.mean",
        f"{BOOSTING} -k rounding_is_no_gain",
    ),
    Mutant("solvers/adarank.py", "phi.max() * ALMOST_ONE", "phi.max()", f"{BOOSTING} -k rounding_does_not_choose"),
    Mutant("solvers/adarank.py", "alone=set(h) <= {k}", "alone=True", f"{BOOSTING} -k improve_rule_is_its_oracle"),
    # Around the learners
    Mutant("statistics/fusion.py", "(k + 1 + np.arange", "(k + np.arange", "src/toprank/statistics/fusion.py"),
    Mutant(
        "export/folding.py", "inner.offset + float(inner.weights @ chain.b)", "inner.offset",
        "tests/export/test_folding.py",
    ),
    Mutant(
        "export/tree_replicas.py", "(value <= node.last) != (true <= node.last)", "np.bool_(False)",
        "tests/export/test_boosted.py -k scores_as_the_model and ranklib",
    ),
    Mutant(
        "clicks/interleaving.py", "int(flags.sum()) - second", "int(flags.sum())",
        "tests/clicks/test_interleaving.py",
    ),
    Mutant("clicks/ab.py", "worth * spread / 4", "worth * spread / 8", f"{AB} -k expected_to_be_1"),
    Mutant("clicks/ab.py", "center = self.total / self.pairs if", "center = d if", f"{AB} -k definition"),
    Mutant("clicks/ab.py", "math.log(2 / self.alpha)\n        first", "0.1\n        first", f"{AB} -k nothing_is_said"),
    Mutant(
        "clicks/monitor.py", "return self.shown", "return 'first' if self.wins_first > self.wins_second else 'second'",
        "tests/clicks/test_monitor.py -k verdict",
    ),
    Mutant(
        "clicks/smoothing.py", "prior.precision, prior.draw(rng))", "prior.precision)",
        "tests/clicks/test_smoothing.py -k silent",
    ),
    Mutant(
        "clicks/smoothing.py", "np.linalg.slogdet(curvature @ prior.covariance)[1] / 2", "0.0",
        "tests/clicks/test_smoothing.py -k likely",
    ),
    Mutant("report/quantise.py", "self.low + self.step", "self.step", "tests/report/test_quantise.py"),
    Mutant("contests/settings.py", "product(*values", "zip(*values", "tests/contests/test_settings.py"),
    Mutant("cli/__init__.py", "sys.exit(2)", "sys.exit(1)", "tests/cli/test_commands.py -k bad_input"),
    # Certificates
    Mutant(
        "certificates/base.py", "return self.observed >= self.value - slack", "return True",
        "tests/certificates/test_verdicts.py",
    ),
    Mutant("certificates/boosting.py", "0.5 * (1 + phi)", "0.5 * (1 - phi)", "tests/certificates/test_boosting.py"),
    Mutant("certificates/replay.py", "if self.same.verified is False:", "if False:", f"{MISTAKES} -k negated"),
    Mutant("certificates/replay.py", "= min(self._found", "= max(self._found", f"{MISTAKES} -k each_inequality"),
    Mutant("rankers/replay.py", "loss_weight * weight", "loss_weight", f"{MISTAKES} -k steps_that_change and Minimax"),
    Mutant("rankers/replay.py", "if here.verified is False:", "if False:", f"{KERNEL} -k never"),
    Mutant("rankers/kernel_replay.py", "nearly_equal(mine.alpha, own.alpha)", "1", f"{KERNEL} -k processor and alpha"),
    Mutant("rankers/stream_notes.py", "int(noted[Note.ROUNDS]) != rounds", "False", f"{STREAMS} -k notes_nothing"),
    Mutant("rankers/stream_notes.py", "radius2 * heaviest", "radius2", f"{STREAMS} -k definitions"),
    Mutant("rankers/stream_notes.py", "trust if \"ranks every list\" in a.text else a", "a", f"{STREAMS} -k promised"),
    # Trees and estimators of others
    Mutant("interop/catboost_trees.py", '_treatment != "AsTrue"', '_treatment == "AsTrue"', f"{OTHERS} -k CatBoost"),
    Mutant("interop/catboost_trees.py", "rounded_below(above)", "rounded_below(borders)", f"{OTHERS} -k CatBoost"),
    Mutant("interop/trees.py", "np.add.at(gain", "np.add.at(gain * 0", "tests/interop/test_trees.py -k importances"),
    Mutant("interop/lightgbm.py", "watch.best or int(", "int(", "tests/interop/test_trees.py -k patience"),
    Mutant(
        "data/_transform_kernels.py", "mean[j] / count[j]", "mean[j] / (count[j] + 1.0)",
        "tests/interop/test_trees.py -k relative",
    ),
    Mutant("contests/estimators.py", "state_name] = seed", "state_name] = 0", f"{GUESTS} -k seed"),
    Mutant("contests/early_stopping.py", "PATIENCE = 50", "PATIENCE = 5", f"{GUESTS} -k test_lightgbm"),
    Mutant("contests/held.py", "known.verified is False", "known.verified is True", f"{GUESTS} -k caught"),
    Mutant("data/trec.py", "known.get(row, -np.inf)", "known.get(row, 0.0)", f"{GUESTS} -k runs"),
    Mutant("rankers/spellings.py", 'own["patience"] = before', "pass", "tests/rankers/test_spellings.py"),
]  # fmt: skip


def run_tests(test: str, compiled: Path) -> str:
    """Run a few tests on the copy of the sources: "passed", "failed", or why they could not be run."""
    where, _, only = test.partition(" -k ")
    tests = [str(SOURCES / name[4:]) if name.startswith("src/") else name for name in where.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": f"{SOURCES}{os.pathsep}{TOP}", "NUMBA_CACHE_DIR": str(compiled)}
    try:
        done = subprocess.run(
            command + (["-k", only] if only else []),
            cwd=TOP,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "failed (it ran for ever)"
    return {0: "passed", 1: "failed"}.get(done.returncode, f"NOT RUN: pytest ended with {done.returncode}")


@cache
def passes(test: str) -> str:
    """Run tests on the sources as they are: a test that fails anyway catches nothing."""
    return run_tests(test, COMPILED)


def caught(mutant: Mutant) -> str:
    """Return what became of the mutant: "caught", "SURVIVED", or why it could not be tried."""
    file = SOURCES / "toprank" / mutant.file
    original = file.read_text(encoding="utf-8")
    if mutant.old not in original:
        return "GONE: the line is no longer there"
    if passes(mutant.test) != "passed":
        return f"WITHOUT IT: {passes(mutant.test)}"
    compiled = COMPILED
    if "kernel" in original:  # the mutant's kernels are compiled anew, and do not replace those of the sources
        shutil.rmtree(CHANGED, ignore_errors=True)
        compiled = CHANGED
    file.write_text(original.replace(mutant.old, mutant.new, 1), encoding="utf-8")
    try:
        result = run_tests(mutant.test, compiled)
    finally:
        file.write_text(original, encoding="utf-8")
    return {"passed": "SURVIVED"}.get(result, result.replace("failed", "caught"))


@cache
def as_it_is() -> bytes:
    """A hash of all sources and tests."""
    files = sorted(path for folder in ("src", "tests") for path in (TOP / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()


def name_of(mutant: Mutant) -> str:
    """Under which a caught mutant is kept."""
    return hashlib.sha256(as_it_is() + repr(mutant).encode()).hexdigest()


def main(words: list[str]) -> int:
    """Try the mutants and return 0 where all were caught."""
    names = [word for word in words if word != "--list"]
    chosen = [m for m in MUTANTS if not names or any(name in f"{m.file} {m.test}" for name in names)]
    if "--list" in words:
        for mutant in chosen:
            print(f"{mutant.file}: {mutant.old!r} → {mutant.new!r}  [{mutant.test}]")
        return 0
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(TOP / "src", SOURCES, ignore=shutil.ignore_patterns("__pycache__"))
    if not SOURCES_HASH.exists() or SOURCES_HASH.read_bytes() != as_it_is():
        shutil.rmtree(COMPILED, ignore_errors=True)
        SOURCES_HASH.write_bytes(as_it_is())
    COMPILED.mkdir(exist_ok=True)
    bad, known = 0, CAUGHT.read_text("ascii").split() if CAUGHT.exists() else []
    for mutant in chosen:
        what = "caught before" if name_of(mutant) in known else caught(mutant)
        bad += not what.startswith("caught")
        if what.startswith("caught") and what != "caught before":
            with CAUGHT.open("a", encoding="ascii") as file:
                file.write(f"{name_of(mutant)}\n")
        print(f"{what:10} {mutant.file}: {mutant.old} → {mutant.new}", flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} mutants caught")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
