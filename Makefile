# Every target sets itself up from nothing: a virtual environment in .venv with the pinned versions of constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup demo test bench lint format docs hashes sbom
.DEFAULT_GOAL := test

setup: $(READY)

# torch is named by its exact version, so that a CPU build of it that pip can see is preferred to the newest CUDA one
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "wtal needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0 --constraint constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	touch $@

demo: setup
	$(BIN)/wtal demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# a page that is missing, or a link that leads nowhere, fails it
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test: lint docs
	$(BIN)/pytest

# pinned dependencies with the hashes of the package index, after constraints.txt has changed
hashes: setup
	$(BIN)/python requirements/make.py

# the software bill of materials for a release (CycloneDX): what wtal with these extras consists of
sbom: setup
	$(BIN)/pip install --quiet --disable-pip-version-check cyclonedx-bom --constraint constraints.txt
	mkdir -p build
	for name in train frames; do \
	  { cat requirements/$$name.txt; grep '^torch==' constraints.txt; } | \
	  $(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible -o build/wtal-$$name.cdx.json -; \
	done

bench: setup
	$(BIN)/python -m benchmarks
