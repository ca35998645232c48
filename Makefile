# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test fuzz torture lint format bench dist lock docs clean

demo: $(VENV)/.fairpass
	$(BIN)/fairpass demo

# One thread per worker: two workers with two threads each would fight over two cores.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

# The property tests with random examples, for MINUTES=10. It prints the seed of every round; SEED=N repeats one.
fuzz: $(VENV)/.dev
	$(BIN)/python -m scripts.fuzz --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

# Kills, concurrent starts, damaged files, hostile tables, extreme numbers and full disks. SEED=N repeats the trials.
torture: MINUTES ?= 10
torture: SEED := $(or $(SEED),$(shell date +%s))
torture: $(VENV)/.dev
	$(BIN)/python -m tests.torture --minutes $(MINUTES) --seed $(SEED) $(TORTURE)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# A wheel and an sdist in dist/.
dist: $(VENV)/.dev
	$(BIN)/python -m build --outdir dist .

# The exact files of every dependency with their hashes, and the list of their licences.
lock: $(VENV)/.dev
	$(BIN)/python -m scripts.lock
	$(BIN)/python -m scripts.licences

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Stamps make a second call install nothing. torch is installed first and alone, so that no other
# requirement is asked to choose a build of it.
$(VENV)/.fairpass: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Setting up $(VENV) (about two minutes, once) ..."
	$(PIP) torch
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.fairpass
	$(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.fairpass
	$(PIP) -e ".[docs]"
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis site dist
