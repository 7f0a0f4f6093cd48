# Everything needed is set up by the first target that needs it; `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint docs bench soak chaos release-check clean

# Another Spark or other packages of the caller must not mix with those of .venv.
unexport SPARK_HOME PYTHONPATH PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON

BIN := .venv/bin
STAMP := .venv/.set-up
SPARK_STAMP := .venv/.set-up-spark
BENCH_STAMP := .venv/.set-up-bench
# Spark uses JAVA_HOME before the PATH, so it must name the Java that was checked.
WITH_JAVA := JAVA_HOME=$$(scripts/ensure-java) && export JAVA_HOME &&

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 22

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@scripts/setup
	@touch $@

# Without it everything works, and Spark starts more slowly.
$(SPARK_STAMP): $(STAMP)
	@echo "Running a first pipeline, so that later ones start sooner"
	@$(WITH_JAVA) $(BIN)/python -m headwater.engine.spark_warm_up || true
	@touch $@

setup: $(STAMP) $(SPARK_STAMP) ## make .venv with the pinned packages, and see to Java 17 or newer
	@$(WITH_JAVA) echo "Set up: $$($(BIN)/python --version), Java in $$JAVA_HOME"

demo: $(SPARK_STAMP) ## run the demonstration on embedded Spark (about a minute)
	@$(WITH_JAVA) $(BIN)/headwater demo

lint: $(STAMP) ## ruff and mypy --strict
	@echo "ruff check" && $(BIN)/ruff check --quiet .
	@echo "ruff format --check" && $(BIN)/ruff format --check --quiet .
	@echo "mypy --strict" && $(BIN)/mypy --strict --no-error-summary

test: lint $(SPARK_STAMP) ## lint, then every test that is not marked slow or soak
	@echo "pytest" && $(WITH_JAVA) $(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow and not soak"

docs: $(STAMP) ## build the site into build/site, strictly and without a network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet && echo "Built build/site/index.html"

# 100,000 generated queries, 10^7 slides, 10^8 triples and an hour on Spark (HEADWATER_SOAK_SECONDS makes it shorter) take
# most of the time; SOAK chooses: make soak SOAK=tests/kernel
SOAK ?= tests
soak: $(SPARK_STAMP) ## the tests marked slow or soak, with many generated examples (about five hours)
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -q -m "slow or soak" --timeout=0 --durations=20 $(SOAK) \
	  || { code=$$?; [ $$code -eq 5 ] && echo "No test is marked slow or soak."; }

# A seed that failed is repeated alone: make chaos SEED=4711 RUNNER=in-process (or mqtt, spark,
# kafka); RUNS has more from there on.
CHAOS_SECONDS ?= 1200
RUNNER ?= all
chaos: $(SPARK_STAMP) ## random faults over random programs on both runners (about 20 minutes; SEED repeats a run)
	@$(WITH_JAVA) $(BIN)/python -m tests.chaos.campaign --runner $(RUNNER) \
	  $(if $(SEED),--seed $(SEED) --runs $(or $(RUNS),1),--seconds $(CHAOS_SECONDS))

$(BENCH_STAMP): $(SPARK_STAMP)
	@echo "Installing what the benchmarks compare with"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --constraint constraints.txt \
	  --no-build-isolation --editable '.[dev,bench]'
	@touch $@

bench: $(BENCH_STAMP) ## run each benchmark: the modules of the folder that have a main function
	@$(WITH_JAVA) for module in $$(grep -l '^def main' benchmarks/[a-z]*.py | sort); do \
	  echo "$$module" && $(BIN)/python -m benchmarks.$$(basename $$module .py) || exit 1; \
	done

release-check: $(STAMP) ## install the pinned packages by checksum; licences and bill of materials into build/release
	@scripts/release-check

clean: ## remove the virtual environment, caches and what runs left behind
	@rm -rf .venv build dist artifacts spark-warehouse metastore_db derby.log \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
