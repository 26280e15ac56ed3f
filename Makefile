# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OLDER_SPARK := $(VENV)/spark-4.2
FAST := -m "not clients and not clouds and not java and not prove and not spark" -n 2
DIST_TOOLS := $(VENV)/dist-tools
PYTHONS ?= 3.11 3.12 3.13 3.14

# What is compiled once serves every process that a test starts; it stays out of the tree.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.DEFAULT_GOAL := help
.PHONY: help demo test fast pythons lint types commits hooks prove bench docs dist format clean chromium

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

# It builds the native codec in place, where there is a C compiler.
$(STAMP): pyproject.toml hatch_build.py $(wildcard src/kohort/native/*.[ch])
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Kohort, the tools of its tests and Spark into $(VENV): about 1.2 GB, a minute or two ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[spark,sql,s3,clouds,hdfs,java,fast,metrics,security]" --group tests --group lint
	@touch $@

demo: $(STAMP)  ## run the main job: a broker, real consumer groups, a kill, a restart, and what Spark makes of it
	@$(BIN)/python examples/demo.py

# The oldest Spark that is supported, and the newest one that there are jars for: of the Kafka connector,
# and of Delta, by which it reads what we publish.
$(OLDER_SPARK)/.installed: | $(STAMP)
	@echo "installing Spark 4.2 beside it ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(OLDER_SPARK) pyspark==4.2.0
	@touch $@

# More processes than cores: a third of the tests' time is waiting for clients and timers.
test: lint types commits chromium $(STAMP)  ## ruff, mypy, the rules for commits and every test
	@$(BIN)/python -m pytest -q -m "not prove" -n 3 --durations=30 --durations-min=20

fast: $(STAMP)  ## the tests that need no stock client, no Java and no Spark, in about a minute
	@$(BIN)/python -m pytest -q $(FAST)

# In a loop of a shell over $(PYTHONS): $$python is that $$version, or the loop goes on.
define FIND_PYTHON
python=; \
for try in python$$version "$$HOME"/.pyenv/versions/$$version.*/bin/python; do \
  test "$$($$try -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = $$version \
    && python=$$try && break; \
done; \
test -n "$$python" || { echo "Python $$version: skipped, it is not on this machine"; continue; }
endef

# Each has an environment of its own, of 1.2 GB; what pip has fetched for one serves the others.
pythons:  ## the same on every Python that is claimed, as far as it is on this machine
	@failed=; for version in $(PYTHONS); do \
	  $(FIND_PYTHON); \
	  home=$(VENV)/python-$$version; \
	  test -x $$home/bin/python || $$python -m venv $$home || exit 1; \
	  $$home/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" \
	    && $$home/bin/python -m pip install --quiet --disable-pip-version-check \
	      --editable ".[spark,sql,s3,clouds,hdfs,java,fast,metrics,security]" --group tests || exit 1; \
	  echo "Python $$version: $$($$home/bin/python --version)"; \
	  $$home/bin/python -m pytest -q $(FAST) || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "failed on$$failed"; exit 1; }

lint: $(STAMP)  ## ruff and codespell
	@$(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/codespell src docs README.md CHANGELOG.md

types: $(STAMP)  ## mypy, strict
	@$(BIN)/mypy

commits:  ## the rules for commits, held against the history
	@$(PYTHON) tools/commits.py

hooks:  ## have git hold each commit against them
	@git config core.hooksPath .githooks

prove: $(STAMP) $(OLDER_SPARK)/.installed  ## what takes long: many kills, long fuzzing, fresh seeds, big loads
	@$(BIN)/python -m pytest -q -m prove

docs: $(STAMP)  ## write the generated pages of docs/ anew
	@$(BIN)/python docs/generate.py

bench: $(STAMP)  ## the figures, beside Apache Kafka's where Java and Maven Central are there
	@$(BIN)/python benchmarks/codec.py
	@$(BIN)/python benchmarks/run.py

$(DIST_TOOLS)/.installed: pyproject.toml
	@test -x $(DIST_TOOLS)/bin/python || $(PYTHON) -m venv $(DIST_TOOLS)
	@$(DIST_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(DIST_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --group dist
	@touch $@

dist: $(DIST_TOOLS)/.installed  ## what a package index gets: sdist, wheels and SBOM in dist/, each wheel tried alone
	@found=; for version in $(PYTHONS); do \
	  $(FIND_PYTHON); \
	  found="$$found $$python"; \
	done; \
	$(DIST_TOOLS)/bin/python tools/dist.py $$found

format: $(STAMP)  ## let ruff lay out the code
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --fix --quiet .

chromium:  # the browser in which the tests look at the report, where apt may install it
	@for name in chromium chromium-browser google-chrome; do \
	  command -v $$name >/dev/null && exit 0; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing chromium, in which the tests look at the report ..."; \
	  (timeout 60 apt-get update -qq; DEBIAN_FRONTEND=noninteractive timeout 240 apt-get install \
	    -y -qq --no-install-recommends chromium) >/dev/null 2>&1 || true; \
	fi

clean:  ## remove the virtual environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache src/kohort/native/*.so
