"""What an SQL engine must give: the terms added by halves, in double precision, and ranks by counting."""

import math


def halves(terms):
    """The sum of the first half and of the second, each in the same way."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return halves(terms[:middle]) + halves(terms[middle:])


def linear(weights, offset, row):
    """None for a missing value without a stand-in."""
    if any(value is None for weight, value in zip(weights, row, strict=True) if weight):
        return None
    terms = [weight * value for weight, value in zip(weights, row, strict=True) if weight]
    return halves([*terms, offset] if offset or not terms else terms)


def prepared(steps, rows):
    """Rows of one query after the signed logarithm, or scaled to their extremes, or by mean and deviation."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    for step in steps:
        for j, column in enumerate(columns):
            if step == "log":
                columns[j] = [math.copysign(math.log1p(abs(x)), x) for x in column]
                continue
            low, high = min(column), max(column)
            if low == high:
                columns[j] = [0.0] * len(column)
            elif step == "minmax":
                columns[j] = [(x - low) / (high - low) for x in column]
            else:
                mean = math.fsum(column) / len(column)
                deviation = math.sqrt(math.fsum((x - mean) ** 2 for x in column) / len(column))
                columns[j] = [(x - mean) / deviation for x in column]
    return [list(row) for row in zip(*columns, strict=True)]


def ranks(scores):
    """1 + how many stand before: more score, or the same and an earlier place; without a score last."""

    def key(i):
        return (scores[i] is None, 0 if scores[i] is None else -scores[i], i)

    return [1 + sum(key(j) < key(i) for j in range(len(scores))) for i in range(len(scores))]
