PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Many tests wait for other processes: on two cores a third worker finds work.
WORKERS ?= 3

DEMO := runs/demo

.PHONY: setup engines everything demo serve-demo docs test test-ci test-all lint bench

setup: $(VENV)/.installed

engines: $(VENV)/.engines

# All that tests and docs need, in one go: quicker than one extra after the other.
everything: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt mlflow-skinny \
		--editable ".[dev,docs,ray,submitit,tensorboard]"
	touch $(VENV)/.package
	touch $(VENV)/.installed
	touch $(VENV)/.engines $(VENV)/.docs

# What the package itself needs: no extra.
$(VENV)/.package: pyproject.toml constraints.txt
	@echo "Installing graphfcl and what it needs into $(VENV); this takes some minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed: $(VENV)/.package
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(VENV)/.engines: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[ray,submitit]"
	touch $@

# The paper's widths of the encoder; the defaults are wider and take longer.
demo: $(VENV)/.package
	$(BIN)/graphfcl run --set hidden=32 --set size=16 --out $(DEMO) $(if $(wildcard $(DEMO)/checkpoint.safetensors),--resume)
	@echo
	@echo "The picture of this run: $(CURDIR)/$(DEMO)/accuracy.png"
	@echo "What to try next:"
	@echo "  $(BIN)/graphfcl methods                                        # what there is besides HAG-Meta"
	@echo "  $(BIN)/graphfcl run --method anchor --out runs/anchor          # another method on the same sessions"
	@echo "  $(BIN)/graphfcl fit --graph debian --model models/debian       # a classifier to use and to teach"
	@echo "  $(BIN)/graphfcl predict --model models/debian --out runs/predictions.csv"
	@echo "  make serve-demo                                              # the same in the browser"

serve-demo: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[serve]"
	$(BIN)/python -m scripts.demo_model runs/serve-demo
	$(BIN)/graphfcl serve --model runs/serve-demo

docs: $(VENV)/.docs
	$(BIN)/python -m scripts.site

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	touch $@

# Tests start hundreds of processes: each would compile the package again where the environment forbids bytecode.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

test: engines
	$(PYTEST) -m "not long"

test-ci: engines $(VENV)/.docs
	$(PYTEST) -m "not soak"

test-all: engines $(VENV)/.docs
	$(PYTEST)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: engines
	$(BIN)/python -m benchmarks
