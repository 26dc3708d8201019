# Every task has a target here. `make demo` and `make test` require only make and Python 3.11 or newer.
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV := .venv
BIN := $(VENV)/bin
ENVIRONMENT := $(VENV)/.ready
TEST_TOOLS := $(VENV)/.tools
COMPILE_LOCK := $(BIN)/uv pip compile --quiet --no-header --generate-hashes --universal --python-version 3.11
APT_GET := apt-get -qq -o Acquire::Retries=3
IMAGE_EXTRAS := agent: watch:operations,corrections stream:pipelines dash:dashboards
ARGS ?=

# Unpack a Debian package for a command that is missing: command, package, what its tests are about.
define unpack_debian
@command -v $(1) >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
	|| { echo "fetching $(1) for the tests of $(3)" >&2; mkdir -p $(VENV)/debian && cd $(VENV)/debian \
	&& $(APT_GET) update >&2 && $(APT_GET) download $(2) >&2 && dpkg -x $(2)_*.deb . && rm $(2)_*.deb; }
endef

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs bench chaos lock lock-images release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(ENVIRONMENT) ## Run Kafka clusters, probes, the pipeline and the pages (ARGS="--for 5m --fault hang --json")
	@$(BIN)/fleetgauge demo $(ARGS)

test: $(ENVIRONMENT) $(TEST_TOOLS) ## Run all tests (ARGS="tests/unit" runs a part, ARGS="-m thorough" the longest)
	@$(BIN)/pytest $(ARGS)

check: $(ENVIRONMENT) $(TEST_TOOLS) ## Check format, lint, types, imports, names, generated files, promises, documentation and deployment
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

format: $(ENVIRONMENT) ## Format the code and regenerate the generated files
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/python -m tests.generated_docs
	@$(BIN)/python -m tests.promises
	@$(BIN)/python -m tests.prometheus_rule

docs: $(ENVIRONMENT) ## Build the documentation as a site in docs/_build/html
	@$(BIN)/sphinx-build -q --nitpicky --fail-on-warning --builder html docs docs/_build/html

bench: $(ENVIRONMENT) ## Run benchmarks beside their peers (ARGS="NAME --json")
	@$(BIN)/python -m tests.benchmarks $(ARGS)

chaos: $(ENVIRONMENT) ## Run a long test with injected faults (ARGS="NAME"; without it, list the names)
	@$(BIN)/python -m tests.chaos $(ARGS)

lock: $(ENVIRONMENT) ## Resolve all dependencies again and write the locks
	@$(COMPILE_LOCK) --extra all --group dev pyproject.toml --upgrade -o locks/python.txt
	@$(COMPILE_LOCK) --no-annotate --upgrade --group pyproject.toml:s3 -o locks/s3.txt
	@$(MAKE) lock-images
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		pipelines/fleetgauge_pipelines/io/spark-jars.toml pipelines/fleetgauge_pipelines/io/spark-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/kafka-jars.toml infra/fleetgauge_local/kafka-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/exporter-jars.toml infra/fleetgauge_local/exporter-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		infra/fleetgauge_local/mirror-jars.toml infra/fleetgauge_local/mirror-jars.lock.toml
	@$(BIN)/python -m fleetgauge_pipelines.io.jars lock \
		tests/kafka/older-kafka-jars.toml tests/kafka/older-kafka-jars.lock.toml

# An image has only the dependencies of its process, at the versions of locks/python.txt.
lock-images: $(ENVIRONMENT) ## Write the lock of each image from locks/python.txt
	@for role in $(IMAGE_EXTRAS); do name=$${role%%:*}; extras=$$(echo "$${role#*:}" | tr , ' '); \
		$(COMPILE_LOCK) --no-annotate --upgrade -c locks/python.txt $${extras:+$$(printf -- '--extra %s ' $$extras)} pyproject.toml -o locks/$$name.txt || exit; done
	@$(COMPILE_LOCK) --no-annotate --upgrade -c locks/python.txt --group pyproject.toml:build -o locks/build.txt

release: $(ENVIRONMENT) ## Build and test wheel, sdist, SBOM and licences in dist/; uploads nothing
	@$(BIN)/python -m tests.distribution.release dist

clean: ## Remove the environment and the caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist

# With --json stdout is reserved for the command, so the set-up prints to stderr.
$(ENVIRONMENT): pyproject.toml locks/uv.txt locks/python.txt
	@infra/environment.sh "$(PYTHON)" $(VENV) >&2
	@touch $@

# Only tests need these: an S3 server in a separate environment, and Debian packages if root can install them; else tests are skipped.
# Installing those packages would start their servers, so they are only unpacked.
$(TEST_TOOLS): $(ENVIRONMENT) locks/s3.txt
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/s3 >&2 \
		&& $(BIN)/uv pip install --quiet --python $(VENV)/s3/bin/python --require-hashes -r locks/s3.txt >&2 \
		|| echo "no S3 server for tests: check the network; the tests that need it are skipped" >&2
	@command -v chromium >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "installing chromium for the browser tests" >&2; $(APT_GET) update >&2 && $(APT_GET) install -y chromium >&2; }
	@command -v bindfs >/dev/null || test "$$(id -u)" -ne 0 || ! command -v apt-get >/dev/null \
		|| { echo "installing bindfs for the test of slow disks" >&2; $(APT_GET) update >&2 && $(APT_GET) install -y bindfs >&2; }
	$(call unpack_debian,prometheus-alertmanager,prometheus-alertmanager,notifications)
	$(call unpack_debian,promtool,prometheus,alerts)
	$(call unpack_debian,nginx,nginx,pages behind a proxy)
	$(call unpack_debian,tinyproxy,tinyproxy-bin,notifications through a proxy)
	@touch $@
