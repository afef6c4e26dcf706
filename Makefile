# `make help` lists the targets. Every target creates the virtual environment if it is missing, so only Python 3.11+ and
# make are required. PYTHON=/path/to/python names the interpreter, VENV the environment:
# make test VENV=.venv-3.13 PYTHON=python3.13

VENV := .venv
BIN := $(VENV)/bin
# Contains the path of its checkout, so that a copy of the checkout creates its own environment.
STAMP := $(VENV)/installed-in

ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && cat $(STAMP) 2>/dev/null),$(CURDIR))
$(shell rm -f $(STAMP))
endif

# The user's settings of Python and pip must not change these commands.
unexport PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USER := 0

.DEFAULT_GOAL := help
.PHONY: help demo test test-with executable test-executable live kind-up kind-down bench lint format cassettes docs docs-check \
	site pictures coverage dist sizes sbom checksums release-notes check-release check-workflows clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## record and replay an eval; record, replay, verify and view sessions; without network
	@$(BIN)/python -m docs.demo

test: $(STAMP)  ## run all tests; ARGS="-k name" runs some
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

executable: $(VENV)/executable-tools  ## build one executable of all programs, and its release asset, in dist/
	$(BIN)/python .ci/build_executable.py --zip $(ARGS)

test-executable: executable  ## build the executable and test it
	GEVALS_EXECUTABLE=dist/gevals-extensions $(BIN)/python -m pytest -n auto --dist worksteal -k executable \
		tests/packaging/test_executable.py tests/packaging/test_first_hour.py

live: $(STAMP)  ## run the tests with a real cluster (tests/live); ARGS="--kubeconfig FILE" names one
	$(BIN)/python -m pytest tests/live -n 2 $(ARGS)

kind-up:  ## create the kind cluster of kind-config.yaml for `make live`
	kind create cluster --name gevals-extensions --config kind-config.yaml --wait 180s \
		$(if $(KIND_NODE_IMAGE),--image "$(KIND_NODE_IMAGE)")

kind-down:  ## delete the kind cluster
	kind delete cluster --name gevals-extensions

bench: $(STAMP)  ## measure speed and memory (also in bench.json); ARGS=--peers compares with other recorders
	$(BIN)/python -m tests.bench $(ARGS)

test-with: $(STAMP)  ## run tests with another version of a package: VENV=.venv-35 WITH='kubernetes<36' ARGS=tests/unit/ext_kubernetes
	@$(BIN)/python -m pip install --quiet '$(WITH)'
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

lint: $(STAMP)  ## run ruff, mypy and import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin extensions recorder
	$(BIN)/lint-imports

format: $(STAMP)  ## format the code, and fix lint errors that ruff can fix
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

cassettes: $(STAMP)  ## record the sessions in cassettes/ again; ARGS=shell/one-shot records one
	$(BIN)/python -m cassettes.record $(ARGS)

docs: $(STAMP)  ## generate manifests and reference pages from the code
	$(BIN)/python -m docs.generate

docs-check: $(STAMP)  ## fail if a generated file is out of date
	$(BIN)/python -m docs.generate --check

site: $(VENV)/site-tools  ## build the documentation site in build/site
	$(BIN)/python -m docs.site

pictures: $(VENV)/site-tools  ## make the pictures of docs/images from real runs (needs chromium)
	$(BIN)/python -m docs.site.pictures

coverage: $(STAMP)  ## run all tests with line and branch coverage, including child processes
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

dist: $(STAMP)  ## build the wheels and sdists of both distributions into dist/
	@$(BIN)/python .ci/release.py dist

sizes: $(STAMP)  ## install each wheel of dist/ into an empty folder and print the sizes
	@$(BIN)/python .ci/release.py sizes

sbom: $(VENV)/release-tools  ## write a bill of materials (CycloneDX) of each wheel of dist/
	@$(BIN)/python .ci/release.py sbom

checksums: $(STAMP)  ## write dist/SHA256SUMS
	@$(BIN)/python .ci/release.py checksums

release-notes: $(STAMP)  ## print the section of CHANGELOG.md of VERSION=1.2.3
	@$(BIN)/python .ci/release.py notes "$(VERSION)"

check-workflows: $(STAMP)  ## check .github/ and action.yml with zizmor and, if it or Go is installed, actionlint
	$(BIN)/zizmor --offline --quiet .github action.yml
	.ci/actionlint $(BIN)

check-release: $(VENV)/release-tools  ## check version, TAG=v1.2.3, CHANGELOG.md and the files in dist/
	@$(BIN)/python .ci/release.py check $(TAG)

clean:  ## delete caches, measurements and builds
	rm -rf build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## also delete the virtual environment
	rm -rf $(VENV)

# pip itself first: console scripts of older versions import `re`, which adds 7 ms to every start of an extension.
$(STAMP): pyproject.toml .ci/make-venv
	@echo 'installing into $(VENV) (once, about a minute) …'
	@.ci/make-venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@echo '$(CURDIR)' >$@

$(VENV)/executable-tools: $(STAMP)
	@$(BIN)/python -m pip install --quiet --group executable
	@touch $@

$(VENV)/site-tools: $(STAMP)
	@$(BIN)/python -m pip install --quiet --group site
	@touch $@

$(VENV)/release-tools: $(STAMP)
	@$(BIN)/python -m pip install --quiet --group release
	@touch $@
