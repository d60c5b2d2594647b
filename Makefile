# Two commands are enough: `make demo` and `make test`. Both create .venv if it is missing.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# The first Python 3.11+ that can create virtual environments; PYTHON=... selects another.
GOOD := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c "$(GOOD)" >/dev/null 2>&1; then echo $$p; break; fi; done)

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs docs-test bench clean torture hashes audit \
	coverage mutation sanitize workflows

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

setup: $(STAMP) ## create .venv and install vhe with its development dependencies

# A C compiler is used where there is one: the kernels are built with the package.
$(STAMP): pyproject.toml setup.py constraints.txt $(wildcard src/vhe/native/*.[ch])
	@test -n "$(PYTHON)" || { echo "vhe needs Python 3.11 or newer with its venv module: none of python3, python3.13, python3.12, python3.11 qualifies. Install one, or select one: make setup PYTHON=/path/to/python" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing vhe and its dependencies in $(VENV) (takes some minutes the first time)"
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP) ## fit the See Also network of the installed Python packages (no download)
	@$(BIN)/vhe demo

test: lint ## lint, then run the fast tests (slow ones: .venv/bin/python -m pytest -m slow)
	@sh tests/browser.sh
	@sh tests/postgres.sh
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile  # tiny tensors: one thread each

coverage: $(STAMP) ## run the fast tests and report the lines that none of them runs (minimum: 90 %)
	@$(BIN)/python -m pip install --quiet -c constraints.txt 'coverage>=7.10'
	@OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -q
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report

mutation: $(STAMP) ## change graph/ and pair/ in 200 places and list what no test notices (hours)
	@nice -n 19 $(BIN)/python tests/mutation.py $(MUTATION)

sanitize: $(STAMP) ## run the tests of the C kernels with AddressSanitizer and UBSan (GCC, Linux)
	@sh tests/native/sanitize.sh $(BIN)/python $(EXAMPLES)

workflows: $(STAMP) ## check the workflows in .github
	@$(BIN)/python -m pip install --quiet -c constraints.txt check-jsonschema zizmor
	@$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(BIN)/zizmor --quiet --offline --min-severity medium .github

lint: $(STAMP) ## check style, types and the order of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check --select S --ignore S101,S310,S603,S607 src  # Bandit's rules
	@$(BIN)/mypy
	@layers=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$layers"; exit 1; }

format: $(STAMP) ## fix style automatically
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## measure speed as ratios, on the built-in network
	@$(BIN)/vhe bench

torture: $(STAMP) ## an hour of kills, full disks and damaged files (TORTURE="-k damage": a part)
	@VHE_TORTURE=1 OMP_NUM_THREADS=1 nice -n 19 $(BIN)/python -m pytest -q -s -n0 tests/torture $(TORTURE)
	@$(BIN)/python tests/torture/report.py

hashes: $(STAMP) ## write requirements-release.txt: the packages of a release with their checksums
	@$(BIN)/python docs/release_hashes.py

audit: $(STAMP) ## check the pinned versions for known vulnerabilities (needs network access)
	@$(BIN)/python -m pip install --quiet pip-audit
	@$(BIN)/python -m pip_audit --strict --disable-pip --no-deps -r constraints.txt

docs: $(VENV)/.docs ## build the manual into site/index.html
	@$(BIN)/python docs/check_links.py
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs site
	@echo "the manual is in site/index.html"

$(VENV)/.docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	@touch $@

docs-test: $(STAMP) ## run every command and program of the documentation, including long ones (minutes)
	@VHE_DOCS_LONG=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/test_docs.py

clean: ## remove build products and caches, except .venv
	@rm -rf build dist site .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
