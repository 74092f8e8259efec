"""BM25 straight from its formula, one word and one document at a time."""

import math


def bm25(query: list[str], documents: list[list[str]], everywhere: list[list[str]], k1: float, b: float) -> list[float]:
    """Score `documents` (the words of one field); `everywhere` has all words of each, to count documents by."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in set(query):
            n = sum(word in words for words in everywhere)
            if n == 0:
                continue
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            tf = document.count(word)
            norm = k1 * (1 - b + b * (len(document) / mean if mean else 0))
            score += idf * tf * (k1 + 1) / (tf + norm) if tf else 0.0
        scores.append(score)
    return scores


def best(scores: list[float], k: int) -> list[int]:
    """Return the k best places above 0, best first, the earlier of equals first."""
    return sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: (-scores[i], i))[:k]
