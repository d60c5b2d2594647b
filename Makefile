# Two commands are enough: `make demo` and `make test`. Both make .venv when it is not there.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# The first Python that is new enough and can make virtual environments; PYTHON=... chooses another.
GOOD := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c "$(GOOD)" >/dev/null 2>&1; then echo $$p; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs docs-test bench clean torture hashes audit

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: $(STAMP) ## make .venv and install vhe with what development needs

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "vhe needs Python 3.11 or newer with its venv module: none of python3, python3.13, python3.12, python3.11 is that. Install one, or name one: make setup PYTHON=/path/to/python" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing vhe and its dependencies in $(VENV) (some minutes the first time)"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## learn the network of See Also references of the installed packages (no download)
	@$(BIN)/vhe demo

test: lint ## lint, then run the fast tests (slow ones: .venv/bin/python -m pytest -m slow)
	@sh tests/browser.sh
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q  # the tensors are tiny: a second thread only waits

lint: $(STAMP) ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check --select S --ignore S101,S310,S603,S607 src  # the rules of Bandit
	@$(BIN)/mypy

format: $(STAMP) ## mend style where that can be done by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## speed as ratios, on the embedded network
	@$(BIN)/vhe bench

torture: $(STAMP) ## an hour of kills, full disks, damaged and mutated files; writes docs/reliability.md
	@VHE_TORTURE=1 OMP_NUM_THREADS=1 nice -n 19 $(BIN)/python -m pytest -q -s tests/torture
	@$(BIN)/python tests/torture/report.py

hashes: $(STAMP) ## write requirements-release.txt: every package of a release with its checksum
	@$(BIN)/python docs/release_hashes.py

audit: $(STAMP) ## ask for known vulnerabilities of the pinned versions (needs a connection)
	@$(BIN)/python -m pip install --quiet pip-audit
	@$(BIN)/python -m pip_audit --disable-pip --no-deps -r constraints.txt

docs: $(VENV)/.docs ## build the manual into site/index.html
	@$(BIN)/python docs/check_links.py
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs site
	@echo "the manual is in site/index.html"

$(VENV)/.docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

docs-test: $(STAMP) ## run every command and program of the documents, the long ones too (minutes)
	@VHE_DOCS_LONG=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/test_docs.py

clean: ## remove build products and caches; .venv stays
	@rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
