# Every target sets up what it needs; nothing has to be installed by hand but Python (3.11 or later) and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TIER   ?= quick
JOBS   ?=
SPECS  := $(filter-out %/discrepancies.yaml,$(sort $(wildcard experiments/*/*.yaml)))
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help all verdict test lint types docs bench clean archive

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

all: $(VENV)/.core ## set up, regenerate every figure (TIER=quick by default) into plots/, write the report
	$(BIN)/fedrepro run $(SPECS) --tier $(TIER) --stand-in --plot $(if $(JOBS),--jobs $(JOBS))
	$(BIN)/fedrepro report

verdict: $(VENV)/.core ## print which claims of the papers held
	$(BIN)/fedrepro verdict --tier paper

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.dev ## check style and formatting
	$(BIN)/ruff check fedrepro tests bench docs
	$(BIN)/ruff format --check fedrepro tests bench docs

types: $(VENV)/.dev ## check types
	$(BIN)/mypy

docs: $(VENV)/.docs ## build the site into site/ (open site/index.html); a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/.core ## measure speed and memory against the aims
	for script in bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean: ## remove finished runs, scratch data and caches (results, plots and the environment stay)
	rm -rf site results/.runs results/.scratch results/.locks .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[deep]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[test,dev,deep,distributed]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[docs,deep]"
	touch $@

archive: ## compress the large CSVs of the paper tier, as the repository keeps them
	find results/paper -name '*.csv' ! -name '*.points.csv' -size +200k -exec gzip -9 -n -f {} +
