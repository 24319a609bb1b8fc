PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: setup engines demo serve-demo test test-all lint bench

setup: $(VENV)/.installed

engines: $(VENV)/.engines

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(VENV)/.engines: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[ray,submitit]"
	touch $@

demo: setup
	$(BIN)/graphfcl run --out runs/demo $(if $(wildcard runs/demo/checkpoint.safetensors),--resume)

serve-demo: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[serve]"
	$(BIN)/python -m scripts.demo_model runs/serve-demo
	$(BIN)/graphfcl serve --model runs/serve-demo

test: engines
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) -m "not long"

test-all: engines
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: engines
	$(BIN)/python -m benchmarks
