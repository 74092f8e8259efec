"""The demo: learn to search something every user has, the documentation of the running Python's standard library.

`collect` reads the documents, `index` and `features` make them searchable, `judged` turns first sentences of
docstrings into judged queries, `job` holds the contest against BM25 and `ask` answers a question; `generated` does the
same on generated queries.
"""
