# Everything starts from python3 and make; the rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo engines test nightly minimum lint bench docs fuzz mutants torture clean
.DEFAULT_GOAL := demo

# One stamp per set of extras: an install is repeated only when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP)-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

demo: $(STAMP) ## learn to search the standard library of this Python, write report.html
	$(BIN)/toprank demo --html report.html

test: $(STAMP)-test ## the whole test suite
	$(BIN)/python -m pytest -q -n 2 -m "not slow" $(ARGS)

nightly: $(STAMP)-test ## the slow proofs too, and new random examples
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -q -n 2 $(ARGS)

# The first version that each line of `dependencies` (and Arrow's) allows; the tools of the tests are the newest.
OLDEST := import tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  lines = project["dependencies"] + project["optional-dependencies"]["parquet"]; \
  print("\n".join(line.partition(";")[0].replace(">=", "==") for line in lines))
# The tests of what touches a dependency: frames and files, scikit-learn's contract, model files, the command line.
# The rest is arithmetic; `make minimum ARGS=tests` runs it too, compiled anew.
MINIMUM := tests/core/test_cache_folder.py tests/data tests/test_files.py tests/test_evaluate.py tests/test_compare.py \
  tests/rankers/test_contract.py tests/rankers/test_stored_models.py tests/cli/test_commands.py \
  tests/cli/test_table_options.py tests/cli/test_trec_commands.py
minimum: ## the tests of what touches a dependency, with the oldest ones that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-minimum
	$(PYTHON) -c '$(OLDEST)' > $(VENV)-minimum/oldest.txt
	$(VENV)-minimum/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-minimum/oldest.txt --editable '.[parquet,oracles]' \
	  pytest pytest-xdist hypothesis pandas polars
	NUMBA_CACHE_DIR=$(CURDIR)/.cache/numba-minimum $(VENV)-minimum/bin/python -m pytest -q -n 2 -m "not slow" $(or $(ARGS),$(MINIMUM))

engines: $(STAMP)-test ## fetches search engines by Maven's client into a cache outside the tree, and runs the tests that start them
	-$(BIN)/python -m tests.engines.fetching
	$(BIN)/python -m pytest -q tests/engines $(ARGS)

lint: $(STAMP)-lint ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)-test ## ratio tables against named peers, in one run; writes bench.json
	$(BIN)/python -m benchmarks --json bench.json $(ARGS)

docs: $(STAMP)-docs ## the pages of docs/ as a site in site/, with search and a page per class
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs site

mutants: $(STAMP)-test ## one line of the library changed at a time: a named test must fail
	$(BIN)/python tests/mutants.py $(ARGS)

KILLS ?= 1000
torture: $(STAMP)-test ## kill -9 the server under load so many times: acknowledged, lost, learned twice, bits
	$(BIN)/python -m tests.serve.torture --kills $(KILLS)

SECONDS ?= 300
fuzz: $(STAMP)-test ## coverage-guided fuzzing of every reader, `make fuzz SECONDS=3600` for each of them
	for reader in letor trec model table folder export; do \
	  NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.cache/numba-fuzz $(BIN)/python -m fuzz $$reader --seconds $(SECONDS) || exit 1; done

clean:
	rm -rf $(VENV) $(VENV)-minimum .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist site docs/reference fuzz/found fuzz/grown
