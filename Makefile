# Two commands for people, the same ones for CI; each sets up what it needs in an empty clone and installs nothing twice.
#
#   make quickstart   trains, measures and pictures a model on the embedded data: runs/quickstart
#   make test         style, types and all tests
#
# PYTHON=…   the interpreter that makes the environment (default: the first of 3.11 or newer that is found)
# WORKERS=…  test processes (default: 2)

PYTHON ?= $(shell for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$candidate"; break; }; done)
WORKERS ?= 2
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: quickstart test lint clean

quickstart: .venv/installed
	$(BIN)/eyeline quickstart --out runs/quickstart

test: lint
	$(BIN)/python -m pytest -n $(WORKERS)

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo 'eyeline needs Python 3.11 or newer: make PYTHON=/path/to/python3' >&2; exit 1; }
	"$(PYTHON)" -m venv .venv

.venv/installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[plots]'
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch .venv/installed $@
