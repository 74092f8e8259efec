"""Evaluation, comparison and combination of rankings: reports per query, paired tests, intervals, fusion, power."""
