"""Scores of saved boosters, node by node, from what the packages document of their files."""

import json
import math
import struct


def single(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def lightgbm(text, row):
    """LightGBM's text: x <= threshold goes left in double precision; None is a missing value."""
    total = 0.0
    for block in text.split("end of trees")[0].split("Tree=")[1:]:
        fields = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        leaves = [float(v) for v in fields["leaf_value"].split()]
        node = 0 if len(leaves) > 1 else -1
        while node >= 0:
            value = row[int(fields["split_feature"].split()[node])]
            kind = int(fields["decision_type"].split()[node])
            missing_type, default_left = (kind // 4) % 4, kind // 2 % 2
            if value is None and missing_type == 2:
                left = default_left
            else:
                left = (0.0 if value is None else value) <= float(fields["threshold"].split()[node])
            node = int(fields["left_child" if left else "right_child"].split()[node])
        total += leaves[-node - 1]
    return total


def xgboost(text, row):
    """XGBoost's JSON: the value as a float < the condition goes left, sums in single precision."""
    learner = json.loads(text)["learner"]
    total = single(float(learner["learner_model_param"]["base_score"].strip("[]")))
    for tree in learner["gradient_booster"]["model"]["trees"]:
        node = 0
        while tree["left_children"][node] != -1:
            value = row[tree["split_indices"][node]]
            if value is None:
                left = tree["default_left"][node]
            else:
                left = single(value) < single(tree["split_conditions"][node])
            node = tree["left_children" if left else "right_children"][node]
        total = single(total + single(tree["split_conditions"][node]))
    return total
