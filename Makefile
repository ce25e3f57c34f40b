# Two commands on a fresh machine with Python 3.11+: make demo, make test.
PYTHON ?= $(shell for python in python3 python python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
OLD_VENV ?= .venv-old
NEIGHBOURS ?= .venv-neighbours

# Every session that a test starts would compile the plugin anew, for about a second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test quick neighbours lint docs old bench clean

help:
	@echo "make demo   set everything up and run the baseline agent on the demo split"
	@echo "make test   set everything up and run the tests"
	@echo "make quick  the inner loop: unit tests, no engine, nothing slow"
	@echo "make neighbours  run sessions beside the plugins that people have"
	@echo "make lint   check style, types and layers"
	@echo "make docs   build the documentation site; a broken link is an error"
	@echo "make old    run the golden tests with the oldest supported pandas, numpy, scikit-learn"
	@echo "make bench  run the benchmarks, in their short forms"
	@echo "make clean  remove what the other commands have made"

demo: $(VENV)/.demo
	$(BIN)/pytest --mle-agent=baseline --mle-split=demo

test: $(VENV)/.test
	$(BIN)/pytest -n $(WORKERS) $(ARGS)

quick: $(VENV)/.test
	$(BIN)/pytest -n $(WORKERS) -m "not slow and not docker" $(ARGS)

neighbours: $(VENV)/.test $(NEIGHBOURS)/.ready
	MLEBENCH_NEIGHBOURS=$(abspath $(NEIGHBOURS))/bin/python $(BIN)/pytest -n $(WORKERS) tests/neighbours

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

old: $(OLD_VENV)/.old
	$(OLD_VENV)/bin/pytest -n $(WORKERS) tests/golden tests/unit/test_csv.py \
		tests/unit/preparing/test_floats.py tests/unit/preparing/test_csv_text.py \
		tests/unit/preparing/test_csv_rows.py tests/unit/preparing/test_json_text.py \
		tests/unit/grading/test_align_sharing.py

bench: $(VENV)/.test
	for benchmark in benchmarks/*.py; do \
		short=$$(grep -o -m 1 -e --short $$benchmark); \
		$(BIN)/python $$benchmark $$short || exit 1; \
	done

clean:
	rm -rf $(VENV) $(OLD_VENV) $(NEIGHBOURS) mle-runs build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@ $(VENV)/.demo

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	touch $@ $(VENV)/.test $(VENV)/.demo

$(OLD_VENV)/.old: pyproject.toml
	$(PYTHON) -m venv $(OLD_VENV)
	$(OLD_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' \
		'pandas==2.2.*' 'numpy==1.26.*' 'scikit-learn==1.4.*' 'scipy==1.11.*' \
		'orjson==3.10.0' 'isal==1.7.0'
	touch $@

# An environment of its own that sees the other one's packages, with all the neighbours in it.
$(NEIGHBOURS)/.ready: $(VENV)/.test
	$(BIN)/python -m venv $(NEIGHBOURS)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$($(NEIGHBOURS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ours.pth
	$(NEIGHBOURS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[neighbours]'
	touch $@
