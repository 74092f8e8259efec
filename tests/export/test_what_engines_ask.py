"""What the engines' own parsers and arithmetic ask of a file: plain decimals, ranges, safe rescoring, verdicts."""

import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import toprank as tr
from tests.export.models import linear_model, stump_model
from toprank.errors import InputError
from toprank.model.functions import StumpFunction

VESPA_NUMBER = re.compile(r"-?[0-9]+\.[0-9]+|-?[0-9]+")
"""The numbers of Vespa's schema grammar: DOUBLE is ("-")? digits "." digits and INTEGER ("-")? digits."""
LTR = ("elasticsearch", "opensearch")


def linear(weights=(0.25, -1.5, 3e-3), **rest):
    names = ("bm25", "age", "clicks")[: len(weights)]
    return linear_model(names, np.array(weights, dtype=np.float64), source="ListNet", **rest)


def steps(*stumps, width=1, **rest):
    feature, threshold, weight = (np.array(column) for column in zip(*stumps, strict=True))
    model = StumpFunction(width, feature, threshold.astype(float), weight.astype(float))
    return stump_model(tuple("abcdef"[:width]), model, source="RankBoost", **rest)


class TestVespa:
    @given(weight=st.floats(allow_nan=False, allow_infinity=False))
    @example(1e-7)
    @example(-3e22)
    @example(5e-324)
    def test_constants_are_plain_decimals_of_the_schema_grammar(self, tmp_path_factory, weight):
        path = tmp_path_factory.getbasetemp() / "plain.profile"
        tr.export.write(linear((weight, 1.0)), path, "vespa")
        text = path.read_text()
        constants = re.search(r"constants \{(.*?)\}", text, re.DOTALL)[1]
        values = dict(line.strip().split(": ") for line in constants.strip().splitlines())
        assert all(VESPA_NUMBER.fullmatch(value) for value in values.values())
        assert float(values["w_bm25"]) == weight
        assert tr.export.read(path)[1].weights.tolist() == [weight, 1.0]

    def test_a_file_of_its_own_begins_with_rank_profile(self, tmp_path):
        for model in (linear(), steps((0, 1.0, 1.0))):
            tr.export.write(model, tmp_path / "m.profile", "vespa")
            assert (tmp_path / "m.profile").read_text().startswith("rank-profile ")

    @pytest.mark.parametrize("number", ["1e-7", "1E5", "+1.0", ".5", "1.", "1.0e0", "1.0f"])
    def test_verification_refuses_what_the_grammar_refuses(self, tmp_path, number):
        tr.export.write(linear((0.5, 1.0)), tmp_path / "m.profile", "vespa")
        text = (tmp_path / "m.profile").read_text()
        (tmp_path / "m.profile").write_text(text.replace("w_bm25: 0.5", f"w_bm25: {number}"))
        with pytest.raises(InputError, match=r"m\.profile.*" + re.escape(number)):
            tr.export.read(tmp_path / "m.profile")

    def test_nothing_stands_before_the_profile(self, tmp_path):
        tr.export.write(linear(), tmp_path / "m.profile", "vespa")
        (tmp_path / "m.profile").write_text("# mine\n" + (tmp_path / "m.profile").read_text())
        with pytest.raises(InputError, match="begins with rank-profile"):
            tr.export.read(tmp_path / "m.profile", "vespa")

    def test_a_large_forest_has_single_precision_thresholds(self, tmp_path):
        rng = np.random.default_rng(0)
        few = steps(*((0, t, 1.0) for t in rng.normal(size=50)))
        many = steps(*((f, t, 1.0) for f in range(2) for t in rng.normal(size=13_000)), width=2)
        notes = {}
        for name, model in {"few": few, "many": many}.items():
            notes[name] = tr.export.write(model, tmp_path / name, "vespa").notes
            thresholds = [float(t) for t in re.findall(r"< (\S+),", (tmp_path / name).read_text())]
            single = [float(np.float32(t)) == t for t in thresholds]
            assert all(single) if name == "many" else not any(single)
        assert any("25,000 leaves" in note and "float32" in note for note in notes["many"])
        assert not any("25,000 leaves" in note for note in notes["few"])
        X = np.concatenate([many.function.threshold[:400], rng.normal(size=400)]).reshape(-1, 2)
        check = tr.export.verify(many, tmp_path / "many", X.astype(np.float32).astype(float), qid=np.arange(400) // 20)
        assert check.agrees
        assert "thresholds and leaves in float32" in check.rule


class TestNegativeScores:
    @pytest.mark.parametrize("to", LTR)
    def test_normalizers_can_make_scores_negative_with_positive_weights(self, tmp_path, to):
        model = linear((1.0, 2.0), center=np.array([3.0, 0.0]), scale=np.array([1.0, 1.0]))
        export = tr.export.write(model, tmp_path / "m.json", to, normalizers=True, shift=0.0)
        _, replica = tr.export.read(tmp_path / "m.json")
        assert replica.score_rows(np.zeros((1, 2)))[0] < 0
        assert any("scores can be negative" in note for note in export.notes)

    @pytest.mark.parametrize("to", LTR)
    def test_the_shift_is_there_by_default_where_the_lowest_score_is_known(self, tmp_path, to):
        normalized = linear((1.0, 2.0), center=np.array([3.0, 0.0]), scale=np.array([1.0, 1.0]))
        boosted = steps((0, 1.0, -2.0), (0, 2.0, 1.0))
        X = np.array([[0.0, 0.0], [1.5, 0.0], [5.0, 5.0]])
        for model, options in ((normalized, {"normalizers": True}), (boosted, {})):
            export = tr.export.write(model, tmp_path / "m.json", to, **options)
            _, replica = tr.export.read(tmp_path / "m.json")
            assert replica.score_rows(X[:, : replica.n_features]).min() >= 0
            assert not any("can be negative" in note for note in export.notes)
            assert any("is added to every score" in note for note in export.notes)
            assert tr.export.verify(model, tmp_path / "m.json", X[:, : len(model.names)]).agrees

    def test_a_weight_below_zero_asks_for_data(self, tmp_path):
        notes = tr.export.write(linear(), tmp_path / "m.json", "elasticsearch").notes
        (note,) = (note for note in notes if "negative" in note)
        assert "age" in note
        assert "--shift-from" in note
        assert "refused by Lucene" not in note
        assert "window" in note

    def test_the_window_covers_the_page(self, tmp_path):
        export = tr.export.write(linear(), tmp_path / "m.json", "opensearch")
        body = export.rescore
        assert body["rescore"]["window_size"] >= body["from"] + body["size"]
        assert any("window_size" in note and "from + size" in note and "shard" in note for note in export.notes)


class TestVerdict:
    def test_all_documents_tied_by_rounding_is_not_agreement(self, tmp_path):
        # Differences of 1 beside a feature of 1e9: float32 sees none of them.
        model = linear((1.0, 1.0))
        tr.export.write(model, tmp_path / "m.json", "elasticsearch")
        X = np.column_stack([np.full(20, 1e9), np.arange(20.0)])
        check = tr.export.verify(model, tmp_path / "m.json", X)
        assert check.tau == 0.0
        assert check.misplaced == 0
        assert not check.agrees
        assert check.tied_pairs == 20 * 19 // 2
        assert "TIED BY ROUNDING" in str(check)
        assert "agree" not in str(check).lower().replace("disagree", "")

    def test_few_ties_are_told_and_forgiven(self, tmp_path):
        model = linear((1.0, 1.0))
        tr.export.write(model, tmp_path / "m.json", "elasticsearch")
        X = np.column_stack([np.r_[1e8, 1e8, np.arange(18) * 1.3e7], np.r_[1.0, 2.0, np.zeros(18)]])
        check = tr.export.verify(model, tmp_path / "m.json", X)
        assert (check.tied_pairs, check.agrees) == (1, True)
        assert "1 of 190 pairs" in str(check)

    def test_values_on_thresholds_that_change_sides_are_not_agreement(self, tmp_path):
        theta = 1.0 + 2.0**-28 * np.arange(1, 40)
        model = steps(*((0, t, 1.0) for t in theta))
        tr.export.write(model, tmp_path / "m.json", "elasticsearch")
        X = (theta + 2.0**-30)[:, None]
        check = tr.export.verify(model, tmp_path / "m.json", X)
        assert check.tau < 0.9
        assert not check.agrees


class TestSinglePrecision:
    @pytest.mark.parametrize("to", [*LTR, "solr"])
    @pytest.mark.parametrize(("center", "scale", "weight"), [(0.0, 1e-60, 1e50), (0.0, 1e60, 1e-50), (1e60, 1.0, 1.0)])
    def test_normalizers_that_leave_its_range_are_refused(self, tmp_path, to, center, scale, weight):
        model = linear((weight,), center=np.array([center]), scale=np.array([scale]))
        with pytest.raises(InputError, match=r"'bm25'.*float32"):
            tr.export.write(model, tmp_path / "m.json", to, normalizers=True)
        assert not (tmp_path / "m.json").exists()

    def test_a_product_of_weight_and_scale_that_leaves_it_is_refused(self, tmp_path):
        model = linear((1e25,), center=np.zeros(1), scale=np.array([1e25]))
        with pytest.raises(InputError, match=r"'bm25'.*float32"):
            tr.export.write(model, tmp_path / "m.json", "solr", normalizers=True)
        assert tr.export.write(model, tmp_path / "m.json", "solr").files

    def test_a_file_with_a_scale_that_is_no_float32_number_is_refused(self, tmp_path):
        norm = {"a": {"standard": {"mean": 0, "standard_deviation": 1e-60}}}
        body = {"type": "model/linear", "definition": {"a": 1.0}, "feature_normalizers": norm}
        (tmp_path / "m.json").write_text(json.dumps({"model": {"name": "m", "model": body}}))
        with pytest.raises(InputError, match="float32"):
            tr.export.read(tmp_path / "m.json")


class TestRankLib:
    def test_the_command_fills_in_features_at_the_end_of_a_row(self, tmp_path):
        for model in (linear(), steps((0, 1.0, 1.0))):
            export = tr.export.write(model, tmp_path / "m.txt", "ranklib")
            assert any("-missingZero" in note for note in export.notes)

    def test_line_separators_in_names_stay_inside_a_line(self, tmp_path):
        model = linear_model(("a\u2028b", "c\x85d"), np.array([1.0, 2.0]))
        tr.export.write(model, tmp_path / "m.txt", "ranklib")
        assert (tmp_path / "m.txt").read_bytes().isascii()
        assert tr.export.read(tmp_path / "m.txt")[1].weights.tolist() == [1.0, 2.0]


class TestSolr:
    def test_two_models_of_one_stem_keep_their_features(self, tmp_path):
        for name in ("m", "m.json", "m.a", "m.b"):
            tr.export.write(linear(fill=np.full(3, float(len(name)))), tmp_path / name, "solr", name="n", version="1")
        assert len(list(tmp_path.iterdir())) == 8
        for name in ("m", "m.json", "m.a", "m.b"):
            check = tr.export.verify(
                linear(fill=np.full(3, float(len(name)))), tmp_path / name, np.array([[np.nan, 1, 1], [1, np.nan, 1]])
            )
            assert check.agrees

    def test_a_large_model_wants_a_note_on_zookeeper(self, tmp_path):
        large = steps(*((0, t, 1.0) for t in np.linspace(0, 1, 20_000)))
        assert any("ZooKeeper" in note for note in tr.export.write(large, tmp_path / "m.json", "solr").notes)
        assert not any("ZooKeeper" in note for note in tr.export.write(linear(), tmp_path / "m.json", "solr").notes)


class TestPlugin:
    def test_a_feature_set_and_a_store_have_names_of_their_own(self, tmp_path):
        export = tr.export.write(
            linear(), tmp_path / "m.json", "elasticsearch", feature_set="movies", store="films", name="m", version="1"
        )
        assert "_ltr/films/_featureset/movies/_createmodel" in export.notes[0]
        assert export.rescore["rescore"]["query"]["rescore_query"]["sltr"]["store"] == "films"
        plain = tr.export.write(linear(), tmp_path / "m.json", "elasticsearch", feature_set="movies")
        assert "_ltr/_featureset/movies/_createmodel" in plain.notes[0]
        assert "store" not in plain.rescore["rescore"]["query"]["rescore_query"]["sltr"]

    def test_a_validation_block_is_part_of_the_request(self, tmp_path):
        tr.export.write(linear(), tmp_path / "m.json", "elasticsearch")
        body = json.loads((tmp_path / "m.json").read_text())
        body["validation"] = {"params": {"keywords": "rambo"}, "index": "tmdb"}
        (tmp_path / "m.json").write_text(json.dumps(body))
        assert tr.export.verify(linear(), tmp_path / "m.json", np.eye(3)).agrees

    def test_the_order_of_the_sum_is_said(self, tmp_path):
        tr.export.write(linear(), tmp_path / "m.json", "elasticsearch")
        assert "in the order of the feature set" in tr.export.verify(linear(), tmp_path / "m.json", np.eye(3)).rule
