# Every target installs what it needs into .venv; only Python (3.11 or later) and make have to exist.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
TIER   ?= quick
JOBS   ?=
PART   ?=
REPORT ?=
SPECS  := $(filter-out %/discrepancies.yaml,$(sort $(wildcard experiments/*/*.yaml)))
# The specs of the paper tier in the order of their key `queue` (claims decided per hour). Figures with places from 100 on
# are computed last, because each takes a day of one core or more.
QUEUED  = $(shell awk '$$1 == "queue:" && $(1) {print $$2, FILENAME}' $(SPECS) | sort -n | cut -d ' ' -f 2)
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
BYTES  := $(BIN)/python -m compileall -qq -j 0 -x '/tests?/|/plotly/' $(VENV)/lib fedrepro

.DEFAULT_GOAL := help
.PHONY: help all answers check verdict test fuzz mutants lint types docs bench clean archive

help: ## print this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

all: $(VENV)/.core ## compute and draw every figure (TIER=quick by default) and write the report, both to plots/
	$(BIN)/fedrepro run $(SPECS) --tier $(TIER) --stand-in --plot $(if $(JOBS),--jobs $(JOBS))
	$(BIN)/fedrepro report

answers: $(VENV)/.core ## compute the paper tier with one low-priority worker (days); it can be stopped and resumed
	nice $(BIN)/fedrepro run $(call QUEUED,$$2 < 100) --tier paper --plot --jobs 1
	nice $(BIN)/fedrepro run $(call QUEUED,$$2 >= 100) --tier paper --plot --jobs 1
	$(MAKE) archive

check: $(VENV)/.core ## recompute a sample of the kept results and compare them (one minute)
	$(BIN)/fedrepro check

verdict: $(VENV)/.core ## print which claims of the papers hold
	$(BIN)/fedrepro verdict --tier paper

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not fuzz"

fuzz: $(VENV)/.dev ## damage 9,000 specs, data files and results (a quarter with PART=0 to 3); none may be misread
	FUZZ_PART=$(PART) $(BIN)/python -m pytest -n 2 -m fuzz

mutants: $(VENV)/.dev ## apply each bug of tests/mutants to a copy of the code and check that its tests fail
	$(BIN)/python -m tests.mutants

lint: $(VENV)/.dev ## check style and formatting
	$(BIN)/ruff check fedrepro tests bench docs
	$(BIN)/ruff format --check fedrepro tests bench docs

types: $(VENV)/.dev ## check types
	$(BIN)/mypy

docs: $(VENV)/.docs ## build the documentation in site/ (open site/index.html); warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/fedrepro report --tier paper --out site $(REPORT)

bench: $(VENV)/.core ## measure speed and memory, and compare them with the targets
	for script in bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean: ## delete finished runs, scratch data and caches, but not results, plots or .venv
	rm -rf site results/.runs results/.scratch results/.locks results/.settings .pytest_cache .mypy_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[deep,report]"
	-@$(BYTES) # on all cores; pip uses only one
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[test,dev,deep,distributed,report]"
	-@$(BYTES) # on all cores; pip uses only one
	touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e ".[docs,deep,report]"
	-@$(BYTES) # on all cores; pip uses only one
	touch $@

archive: $(VENV)/.core ## compress the large files and the pictures of the paper tier for the repository
	find results/paper -name '*.csv' -size +12k -exec xz -9e -f {} +
	find results/paper -name '*.json' ! -name '*.check.json' -size +8k -exec xz -9e -f {} +
	find results/paper -name '*.check.json' -size +8k -exec xz -9e -f {} +
	$(BIN)/python -m fedrepro.plotting.shrink_png plots/paper
