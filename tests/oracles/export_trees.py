"""What the engines do with exported trees, node by node and straight from their sources.

A row is a list of values; None is a missing one.

- Elasticsearch and OpenSearch: `NaiveAdditiveDecisionTree.java` and `XGBoostJsonParser.java` of the plugins.
- Solr: `MultipleAdditiveTreesModel.java`.
- Vespa: `if` is lazy, comparisons with NaN are false.
"""

import json
import math
import re
from xml.etree import ElementTree

from .export import single


def plugin(text, names, row, version="missing"):
    """Version "zero": a feature that does not match is 0; "right": NaN, and NaN goes right; "missing": by `missing`."""
    model = json.loads(text)["model"]["model"]
    assert model["type"] == "model/xgboost+json"
    absent = 0.0 if version == "zero" else math.nan
    values = {name: absent if value is None else single(value) for name, value in zip(names, row, strict=True)}
    total = 0.0
    for node in json.loads(model["definition"]):
        while "leaf" not in node:
            assert {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"} == set(node)
            left, right = node["children"]
            assert (left["nodeid"], right["nodeid"]) == (node["yes"], node["no"])
            assert node["missing"] in (node["yes"], node["no"])
            value, threshold = values[node["split"]], single(node["split_condition"])
            if math.isnan(value) and version == "missing":
                node = left if node["missing"] == node["yes"] else right
            else:
                node = left if threshold > value else right
        total = single(total + single(node["leaf"]))
    return total


def solr(text, features_text, names, row):
    """A feature without a value has the defaultValue of the feature store, or 0; every number of a tree is text."""
    model = json.loads(text)
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    default = {f["name"]: f["params"].get("defaultValue", 0.0) for f in json.loads(features_text)}
    assert list(default) == [feature["name"] for feature in model["features"]]
    total = 0.0
    for tree in model["params"]["trees"]:
        node = tree["root"]
        while "feature" in node:
            value = row[names.index(node["feature"])]
            value = single(default[node["feature"]] if value is None else value)
            assert isinstance(node["threshold"], str)
            threshold = single(single(float(node["threshold"])) + single(1e-6))
            node = node["left"] if value <= threshold else node["right"]
        assert isinstance(node["value"], str)
        total = single(total + single(single(float(tree["weight"])) * single(float(node["value"]))))
    return total


def vespa(text, expressions, row):
    """The sum of the lines of the phase, each an `if` of a function and a number."""
    text = re.sub(r"#.*", "", text)
    functions = dict(re.findall(r"function (f_\w+)\(\) \{\s*expression: (.*)\n", text))
    lines = re.search(r"-phase \{\s*expression \{(.*?)\}", text, re.DOTALL)[1].strip().splitlines()

    def number(function):
        expression = functions[function]
        guard = re.fullmatch(r"if \(isNan\((.*)\), (\S+), \1\)", expression)
        value = row[expressions.index(guard[1] if guard else expression)]
        if value is not None:
            return value
        return float(guard[2]) if guard else math.nan

    total = 0.0
    for line in lines:
        python = re.sub(r"(f_\w+) (<|>=)", r"number('\1') \2", line.strip().removeprefix("+ "))
        python = python.replace("if (", "choose(").replace("!(", "not (")
        total += eval(python, {"number": number, "choose": lambda yes, a, b: a if yes else b})  # the text of a test
    return total


def own_json(text, names, row):
    """toprank-stumps: the offset, and for each feature the score at the number of thresholds below the value."""
    file = json.loads(text)
    if file["format"] == "toprank-trees":
        return own_json_trees(file, names, row)
    assert file["format"] == "toprank-stumps"
    total = 0.0
    for feature in file["features"]:
        value = row[names.index(feature["name"])]
        if value is None:
            if file["missing"] == "refuse":
                return math.nan
            value = feature["missing"]
        total += feature["scores"][sum(threshold < value for threshold in feature["thresholds"])]
    return total + file["offset"]


def own_json_trees(file, names, row):
    """toprank-trees: the offset, and the leaf of each tree."""
    total = 0.0
    for root in file["roots"]:
        node = file["nodes"][root]
        while "feature" in node:
            feature = file["features"][node["feature"]]
            value = row[names.index(feature["name"])]
            if value is None and file["missing"] == "refuse":
                return math.nan
            if value is None and file["missing"] == "fill":
                value = feature["missing"]
            low = node.get("missing_low", False) if value is None else value <= node["value"]
            node = file["nodes"][node["low" if low else "high"]]
        total += node["value"]
    return total + file["offset"]


def ranklib(text, row):
    """RankLib's ensembles: float values, thresholds, leaves and sums; an unknown feature is 0."""
    lines = [line.strip() for line in text.split("\n")]
    assert lines[0] == "## LambdaMART"
    values = [0.0 if v is None else single(v) for v in row]
    total = 0.0
    for tree in ElementTree.fromstring("".join(line for line in lines if not line.startswith("##"))):
        assert tree.tag == "tree"
        assert tree.attrib["weight"] == "1.0"
        (node,) = tree
        while node[0].tag == "feature":  # children by their place: feature, threshold, left, right
            feature, threshold, left, right = node
            assert (left.attrib["pos"], right.attrib["pos"]) == ("left", "right")
            node = left if values[int(feature.text) - 1] <= single(float(threshold.text)) else right
        total = single(total + single(float(node[0].text)))
    return total


def nested(tree, row):
    """A tree itself: a leaf, or (feature, threshold, missing goes low, low, high)."""
    while isinstance(tree, tuple):
        feature, threshold, missing_low, low, high = tree
        value = row[feature]
        tree = low if (missing_low if value is None else value <= threshold) else high
    return tree


def score(stumps, row, fill):
    """The model itself: the weights of the thresholds that are passed, added up exactly."""
    values = [fill[j] if value is None else value for j, value in enumerate(row)]
    return math.fsum(weight for feature, threshold, weight in stumps if values[feature] > threshold)
