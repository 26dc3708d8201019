# Everything runs from here; `make demo` and `make test` need make and Python 3.11 or newer, nothing else.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools
RESOLVE := $(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11
APT := apt-get -qq -o Acquire::Retries=3
ROLES := agent: watch:operations stream:pipelines dash:dashboards
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs bench chaos lock lock-images release clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## Real Kafka clusters, probes, Spark, Delta and a page (ARGS="--for 5m --fault hang --json")
	@$(BIN)/fleetgauge demo $(ARGS)

test: $(READY) $(TOOLS) ## All tests: unit, spark, kafka, browser, end to end (ARGS="tests/unit"; "-m thorough": the longest)
	@$(BIN)/pytest $(ARGS)

check: $(READY) $(TOOLS) ## Format, lint, types, import contracts, what is generated, what deploys
	@$(BIN)/ruff format --check --quiet . || { echo "make check: run 'make format'" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@output=$$($(BIN)/lint-imports) || { echo "$$output" >&2; exit 1; }
	@$(BIN)/python -m tests.generated_docs --check
	@$(BIN)/python -m tests.promises --check
	@$(BIN)/python -m tests.plain_names
	@$(BIN)/python -m tests.prometheus_rule --check
	@$(BIN)/sphinx-build -q --nitpicky --fail-on-warning --builder dummy docs $(VENV)/docs
	@$(BIN)/hadolint infra/docker/Dockerfile
	@$(BIN)/pytest -q tests/deployment

format: $(READY) ## Put the code and what is generated in shape
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/python -m tests.generated_docs
	@$(BIN)/python -m tests.promises
	@$(BIN)/python -m tests.prometheus_rule

docs: $(READY) ## The documentation as a site, in docs/_build/html
	@$(BIN)/sphinx-build -q --nitpicky --fail-on-warning --builder html docs docs/_build/html

bench: $(READY) ## We and a peer on the same data in the same run (ARGS="NAME --json")
	@$(BIN)/python -m tests.benchmarks $(ARGS)

chaos: $(READY) ## What breaks processes and takes minutes (ARGS="NAME"; without it, the names)
	@$(BIN)/python -m tests.chaos $(ARGS)

lock: $(READY) ## Resolve every dependency again and write the locks
	@$(RESOLVE) --extra all --group dev pyproject.toml --upgrade -o locks/python.txt
	@$(RESOLVE) --no-annotate --upgrade --group pyproject.toml:s3 -o locks/s3.txt
	@$(MAKE) lock-images
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		pipelines/fleetgauge_pipelines/io/spark-jars.toml pipelines/fleetgauge_pipelines/io/spark-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/kafka-jars.toml infra/fleetgauge_local/kafka-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/exporter-jars.toml infra/fleetgauge_local/exporter-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/mirror-jars.toml infra/fleetgauge_local/mirror-jars.lock.toml

# An image gets what its process needs, at the very versions of the one lock.
lock-images: $(READY) ## Write each image's lock from locks/python.txt
	@for role in $(ROLES); do name=$${role%%:*}; extra=$${role#*:}; \
		$(RESOLVE) --no-annotate --upgrade -c locks/python.txt $${extra:+--extra $$extra} pyproject.toml -o locks/$$name.txt || exit; done
	@$(RESOLVE) --no-annotate --upgrade -c locks/python.txt --group pyproject.toml:build -o locks/build.txt

release: $(READY) ## Wheel, sdist, SBOM and licences in dist/, each tried in a clean environment; uploads nothing
	@$(BIN)/python -m tests.distribution.release dist

clean: ## Remove the environment and the caches of tools
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist

# With --json stdout belongs to the command, so set-up speaks on stderr.
$(READY): pyproject.toml locks/uv.txt locks/python.txt
	@infra/environment.sh "$(PYTHON)" $(VENV) >&2
	@touch $@

# Only tests need these: an S3 server in an environment of its own; Debian's packages, where we may install them; else those tests are skipped and say so.
# Their packages would start servers, so what is run is taken out of them.
$(TOOLS): $(READY) locks/s3.txt
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/s3 >&2 \
		&& $(BIN)/uv pip install --quiet --python $(VENV)/s3/bin/python --require-hashes -r locks/s3.txt >&2 \
		|| echo "no S3 server for tests: check the network; the tests that need it are skipped" >&2
	@command -v chromium >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "installing chromium for the browser tests" >&2; $(APT) update >&2 && $(APT) install -y chromium >&2; }
	@command -v bindfs >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "installing bindfs for the test of slow disks" >&2; $(APT) update >&2 && $(APT) install -y bindfs >&2; }
	@command -v prometheus-alertmanager >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "fetching Alertmanager for the tests of pages" >&2; mkdir -p $(VENV)/debian && cd $(VENV)/debian \
		&& $(APT) update >&2 && $(APT) download prometheus-alertmanager >&2 \
		&& dpkg -x prometheus-alertmanager_*.deb . && rm prometheus-alertmanager_*.deb; }
	@command -v promtool >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "fetching promtool for the tests of alerts" >&2; mkdir -p $(VENV)/debian && cd $(VENV)/debian \
		&& $(APT) update >&2 && $(APT) download prometheus >&2 && dpkg -x prometheus_*.deb . && rm prometheus_*.deb; }
	@touch $@
