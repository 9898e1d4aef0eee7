# Two commands for people: `make demo` and `make test`. One virtual environment, .venv, serves both.
PYTHON ?= python3
PYTHONS ?= $(PYTHON)
BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# Where Python is told to keep no bytecode, every command and every worker would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test pytest quick lint tables docs docs-outputs package bench cluster-demo drift audit soak clean

demo: .venv/core.stamp
	$(BIN)/suffrage demo

# mypy has one process: it runs beside the tests, not before them.
test: .venv/all.stamp
	$(MAKE) --no-print-directory --jobs 2 lint pytest

# Some tests wait for processes that they start: one worker more than cores fills the time.
pytest: .venv/all.stamp
	$(BIN)/pytest -n 3 --dist worksteal

# For use before each commit: what is fast and needs no server, browser or model.
QUICK = tests/test_docs.py tests/test_glossary.py tests/test_layout.py tests/tracker/statistics tests/tracker/recording \
	tests/tracker/ingest/files tests/tracker/ingest/resolve tests/analyses/numerics/comparing
quick: lint
	$(BIN)/pytest -n 2 --dist worksteal -k 'not postgres and not browser and not mlflow' $(QUICK)

lint: .venv/all.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The tables as queries name them and as new stores have them, after each change of `tracker/schema`.
tables: .venv/all.stamp
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python tests/tracker/queries/sql/make_tables.py

# Every command of README.md and docs/ is run, and its output put into the page.
docs-outputs: .venv/all.stamp
	PYTHONPATH=$(CURDIR) $(BIN)/python tests/docs/regenerate.py

# The site of docs/, in build/site. Every warning is an error, such as a link that leads nowhere; --quiet would hide it.
docs: .venv/all.stamp
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR) $(BIN)/mkdocs build
	@echo "Open build/site/index.html; for the search, run: $(BIN)/python -m http.server --directory build/site"

# The pictures that need a browser, an encoder or many minutes; NAME as in docs/figures.
picture-%: .venv/all.stamp
	PYTHONPATH=$(CURDIR) $(BIN)/python tests/docs/pictures.py $*

bench: .venv/bench.stamp
	$(BIN)/python -m benchmarks

# A Dask scheduler and two workers on this machine, and an analysis on them (docs/how-to/cluster.md).
cluster-demo: .venv/all.stamp
	PYTHONPATH=$(CURDIR) $(BIN)/python -m benchmarks._cluster_demo

# Installs releases of the evaluation harnesses in throw-away environments: takes a network and many minutes.
# HARNESSES='lm-eval lighteval' checks some of them; DRIFT_OPTIONS='--environments FOLDER' keeps the environments.
drift: .venv/all.stamp
	PYTHONPATH=$(CURDIR):$(CURDIR)/tests $(BIN)/python -m drift $(DRIFT_OPTIONS) $(HARNESSES)

# Builds sdist and wheel, installs the wheel with each of PYTHONS into a clean environment and runs the demo there.
package: .venv/package.stamp
	$(BIN)/python tests/package_check.py $(PYTHONS)

# Compares the installed packages with the known vulnerabilities, where an index of them can be reached.
audit: .venv/audit.stamp
	$(BIN)/python tests/audit.py

# Every test, with new examples, and what each has measured. Takes hours: TESTS=tests/tracker/statistics runs a part.
soak: .venv/all.stamp
	$(BIN)/pytest -m 'soak or not soak' -n 2 --dist worksteal --hypothesis-profile random --verify-stores $(TESTS)

clean:
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core.stamp: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

# Turning torch and its like into bytecode takes half a minute, and few of their modules are ever imported.
.venv/all.stamp: .venv/core.stamp
	$(PIP) --no-compile --editable '.[docs,models,test]'
	touch $@

.venv/package.stamp: .venv/core.stamp
	$(PIP) build
	touch $@

.venv/audit.stamp: .venv/all.stamp
	$(PIP) pip-audit
	touch $@

# What ours is measured beside. It names dependencies that what is measured never imports, a tracking service among
# them; those it does import are there already.
.venv/bench.stamp: .venv/all.stamp
	$(PIP) --no-deps benchbench girth duckdb
	$(PIP) inspect-ai
	touch $@
