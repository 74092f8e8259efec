"""What the engines do with an exported file, number by number and straight from their documentation and sources.

A row is a list of values; None is a missing one. Single precision is had by packing into four bytes: the product, sum,
difference and quotient of two floats, taken in double precision and rounded once more, are those of float arithmetic.
"""

import json
import math
import re
import struct


def single(x):
    """Round to float32."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def float_dot(weights, values, scalers):
    total = 0.0
    for weight, value, (center, scale) in zip(weights, values, scalers, strict=True):
        value = single(value)
        if (center, scale) != (0.0, 1.0):
            value = single(single(value - single(center)) / single(scale))
        total = single(total + single(single(weight) * value))
    return total


def plugin(text, names, row):
    """Elasticsearch and OpenSearch: an unmatched feature is 0, then normalised."""
    model = json.loads(text)["model"]["model"]
    assert model["type"] == "model/linear"
    norms = model.get("feature_normalizers", {})
    weights = json.loads(model["definition"])
    values = [0.0 if (v := row[names.index(name)]) is None else v for name in weights]
    scalers = []
    for name in weights:
        standard = norms.get(name, {}).get("standard")
        scalers.append((standard["mean"], standard["standard_deviation"]) if standard else (0.0, 1.0))
    return float_dot(weights.values(), values, scalers)


def solr(text, features_text, names, row):
    """Solr: a feature without a value has the defaultValue of the feature store, or 0."""
    model = json.loads(text)
    assert model["class"] == "org.apache.solr.ltr.model.LinearModel"
    default = {f["name"]: f["params"].get("defaultValue", 0.0) for f in json.loads(features_text)}
    weights, values, scalers = [], [], []
    for feature in model["features"]:
        name = feature["name"]
        weight = model["params"]["weights"][name]
        assert isinstance(weight, float)
        value = row[names.index(name)]
        weights.append(weight)
        values.append(default[name] if value is None else value)
        params = feature.get("norm", {"params": {"avg": "0", "std": "1"}})["params"]
        assert all(isinstance(text, str) for text in params.values())
        scalers.append((float(params["avg"]), float(params["std"])))
    return float_dot(weights, values, scalers)


def ranklib(text, row):
    """RankLib: float features, double sums, an unknown feature is 0."""
    lines = text.splitlines()
    kind = lines[0].removeprefix("## ")
    (line,) = [line for line in lines if not line.startswith("##")]
    values = [0.0 if v is None else single(v) for v in row]
    total = 0.0
    for pair in line.split():
        if kind == "RankBoost":
            feature, threshold, weight = pair.split(":")
            total += float(weight) if values[int(feature) - 1] > float(threshold) else 0.0
        else:
            feature, weight = pair.split(":")
            assert kind == "Coordinate Ascent" or kind == "Linear Regression"
            total += float(weight) if feature == "0" else float(weight) * values[int(feature) - 1]
    return total


def vespa(text, expressions, row):
    """Vespa: double precision; `expressions` are the rank features in the order of the row, None is NaN."""
    text = re.sub(r"#.*", "", text)
    constants = dict(re.findall(r"(w_\w+): (\S+)", text))
    functions = dict(re.findall(r"function (f_\w+)\(\) \{\s*expression: (.*)\n", text))
    total = re.search(r"-phase \{\s*expression \{(.*?)\}", text, re.DOTALL)[1]

    def number(expression):
        for feature, value in zip(expressions, row, strict=True):
            if expression == feature:
                return math.nan if value is None else value
        condition, otherwise, _ = re.fullmatch(r"if \(isNan\((.*)\), (\S+), (.*)\)", expression).groups()
        value = number(condition)
        return float(otherwise) if math.isnan(value) else value

    total = re.sub(r"constant\((\w+)\)", lambda m: f"({constants[m[1]]})", total)
    total = re.sub(r"f_\w+", lambda m: f"number({functions[m[0]]!r})", total)
    return eval(" ".join(total.split()), {"number": number})  # the text of a test


def own_json(text, names, row):
    """toprank-linear: offset + sum of weight times value."""
    file = json.loads(text)
    total = file["offset"]
    for feature in file["features"]:
        value = row[names.index(feature["name"])]
        total += feature["weight"] * (feature["missing"] if value is None else value)
    return total


def tau_b(first, second):
    """Kendall's tau with ties, by looking at every pair."""
    agree = tied_first = tied_second = pairs = 0
    for i in range(len(first)):
        for j in range(i):
            pairs += 1
            a = (first[i] > first[j]) - (first[i] < first[j])
            b = (second[i] > second[j]) - (second[i] < second[j])
            agree += a * b
            tied_first += a == 0
            tied_second += b == 0
    if pairs in (tied_first, tied_second):
        return 1.0 if tied_first == tied_second else 0.0
    return agree / math.sqrt((pairs - tied_first) * (pairs - tied_second))


def misplaced(truth, bound, engine):
    """Documents that the engine puts below one whose true score is less, beyond what both bounds allow."""
    order = sorted(range(len(truth)), key=lambda i: -engine[i])
    return sum(any(truth[i] + bound[i] < truth[j] - bound[j] for i in order[:place]) for place, j in enumerate(order))
