# Every target sets up what it needs; nothing has to be installed by hand but Python (3.11 or later) and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TIER   ?= quick
JOBS   ?=
SPECS  := $(filter-out %/discrepancies.yaml,$(sort $(wildcard experiments/*/*.yaml)))
# The paper tier in the order of the specs' key `queue`, by claims decided per hour. Places from 100 on come last: these
# figures take a day of one core and more.
QUEUED  = $(shell awk '$$1 == "queue:" && $(1) {print $$2, FILENAME}' $(SPECS) | sort -n | cut -d ' ' -f 2)
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
BYTES  := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/|/plotly/' $(VENV)/lib

.DEFAULT_GOAL := help
.PHONY: help all answers check verdict test fuzz mutants lint types docs bench clean archive

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

all: $(VENV)/.core ## set up, regenerate every figure (TIER=quick by default) into plots/, write the report
	$(BIN)/fedrepro run $(SPECS) --tier $(TIER) --stand-in --plot $(if $(JOBS),--jobs $(JOBS))
	$(BIN)/fedrepro report

answers: $(VENV)/.core ## compute the paper tier, one worker at low priority: days; stop and go on at any time
	nice $(BIN)/fedrepro run $(call QUEUED,$$2 < 100) --tier paper --plot --jobs 1
	nice $(BIN)/fedrepro run $(call QUEUED,$$2 >= 100) --tier paper --plot --jobs 1
	$(MAKE) archive

check: $(VENV)/.core ## compute a sample of the kept results again and compare: a minute
	$(BIN)/fedrepro check

verdict: $(VENV)/.core ## print which claims of the papers held
	$(BIN)/fedrepro verdict --tier paper

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not fuzz"

fuzz: $(VENV)/.dev ## break 9,000 specs, data files, records and results, and see that none is read wrongly: minutes
	$(BIN)/python -m pytest -n 2 -m fuzz

mutants: $(VENV)/.dev ## plant each bug of tests/mutants in a copy of the tree and see whether its tests fail
	$(BIN)/python -m tests.mutants

lint: $(VENV)/.dev ## check style and formatting
	$(BIN)/ruff check fedrepro tests bench docs
	$(BIN)/ruff format --check fedrepro tests bench docs

types: $(VENV)/.dev ## check types
	$(BIN)/mypy

docs: $(VENV)/.docs ## build the site into site/ (open site/index.html); a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/fedrepro report --tier paper --out site

bench: $(VENV)/.core ## measure speed and memory against the aims
	for script in bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean: ## remove finished runs, scratch data and caches (results, plots and the environment stay)
	rm -rf site results/.runs results/.scratch results/.locks .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[deep,report]"
	-@$(BYTES) # on all cores; pip would use one
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[test,dev,deep,distributed,report]"
	-@$(BYTES) # on all cores; pip would use one
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[docs,deep,report]"
	-@$(BYTES) # on all cores; pip would use one
	touch $@

archive: $(VENV)/.core ## compress the large CSVs and the pictures of the paper tier, as the repository keeps them
	find results/paper -name '*.csv' -size +100k -exec xz -9e -f {} +
	$(BIN)/python -m fedrepro.plotting.shrink_png plots/paper
