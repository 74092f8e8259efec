"""What a learned fusion knows of a document, number by number from the definitions."""

import math


def features(runs, query, document, kinds, scale):
    """The features of one document: {name: {query: {document: score}}}."""
    row = []
    for run in runs.values():
        listed = run.get(query, {})
        for kind in kinds:
            if kind == "presence":
                row.append(1.0 if document in listed else 0.0)
            elif kind == "reciprocal_rank":
                order = sorted(listed, key=lambda d: -listed[d])  # documents of equal score keep their order
                row.append(61 / (61 + order.index(document)) if document in listed else 0.0)
            elif scale == "minmax":
                low, high = min(listed.values(), default=0), max(listed.values(), default=0)
                inside = document in listed and high > low
                row.append((listed[document] - low) / (high - low) if inside else 0.0)
            else:
                mean = sum(listed.values()) / len(listed) if listed else 0.0
                spread = math.sqrt(sum((s - mean) ** 2 for s in listed.values()) / len(listed)) if listed else 0.0
                least = min(listed.values(), default=mean)
                row.append((listed.get(document, least) - mean) / spread if spread else 0.0)
    return row
