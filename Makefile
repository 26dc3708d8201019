# Everything runs from here; `make demo` and `make test` need Python 3.11, make and (for now) Java 17.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BROWSER := $(VENV)/.browser
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench chaos lock clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## Real Kafka clusters, probes, Spark, Delta and a page (ARGS="--for 5m --fault hang --json")
	@$(BIN)/fleetgauge demo $(ARGS)

test: $(READY) $(BROWSER) ## All tests: unit, spark, kafka, browser, end to end (ARGS="tests/unit")
	@$(BIN)/pytest $(ARGS)

check: $(READY) ## Format, lint, types, import contracts, generated documents
	@$(BIN)/ruff format --check --quiet . || { echo "make check: run 'make format'" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports | tail -n 1
	@$(BIN)/python -m tests.generated_docs --check

format: $(READY) ## Put the code in shape and write the generated documents
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/python -m tests.generated_docs

bench: $(READY) ## We and a peer on the same data in the same run (ARGS="NAME --json")
	@$(BIN)/python -m tests.benchmarks $(ARGS)

chaos: $(READY) ## What breaks processes and takes minutes (ARGS="NAME"; without it, the names)
	@$(BIN)/python -m tests.chaos $(ARGS)

lock: $(READY) ## Resolve every dependency again and write the locks
	@$(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11 \
		--extra all --group dev pyproject.toml --upgrade -o locks/python.txt
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		pipelines/fleetgauge_pipelines/io/spark-jars.toml pipelines/fleetgauge_pipelines/io/spark-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/kafka-jars.toml infra/fleetgauge_local/kafka-jars.lock.toml

clean: ## Remove the environment and the caches of tools
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist

# With --json stdout belongs to the command, so set-up speaks on stderr.
$(READY): pyproject.toml locks/uv.txt locks/python.txt
	@test -x "$(PYTHON)" || { echo "Python 3.11 is missing: install it, or say PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "making $(VENV) (about a minute the first time)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/uv.txt >&2
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r locks/python.txt >&2
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . >&2
	@touch $@

# Only tests need a browser: Debian's, where we may install it; else those tests are skipped and say so.
$(BROWSER): $(READY)
	@command -v chromium >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "installing chromium for the browser tests" >&2; apt-get -qq update >&2 && apt-get -qq install -y chromium >&2; }
	@touch $@
