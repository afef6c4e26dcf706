# What a person does here: `make help` lists it. Every target makes the virtual environment where there is none, so that
# nothing but Python 3.11+ and make has to be there; PYTHON=/path/to/python names the interpreter, VENV the environment:
# make test VENV=.venv-3.13 PYTHON=python3.13

VENV := .venv
BIN := $(VENV)/bin
# Holds the path it was made in: a copy of the checkout makes its own.
STAMP := $(VENV)/installed-in

ifneq ($(shell $(BIN)/python -c '' 2>/dev/null && cat $(STAMP) 2>/dev/null),$(CURDIR))
$(shell rm -f $(STAMP))
endif

# An environment of older bytecode rules, or a user's own pip settings, must not make these commands behave otherwise.
unexport PYTHONDONTWRITEBYTECODE PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USER := 0

.DEFAULT_GOAL := help
.PHONY: help demo test live kind-up kind-down bench lint format cassettes docs docs-check coverage clean distclean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP)  ## record, replay, verify, view: of ext-shell, and of ext-kubernetes without a cluster
	@$(BIN)/python -m docs.demo

test: $(STAMP)  ## all tests; ARGS="-k name" for some
	$(BIN)/python -m pytest -n auto $(ARGS)

live: $(STAMP)  ## the tests on a real cluster (tests/live); ARGS="--kubeconfig FILE" for one of yours
	$(BIN)/python -m pytest tests/live -n 2 $(ARGS)

kind-up:  ## make the kind cluster of kind-config.yaml, for `make live` to use again and again
	kind create cluster --name gevals-extensions --config kind-config.yaml --wait 180s \
		$(if $(KIND_NODE_IMAGE),--image "$(KIND_NODE_IMAGE)")

kind-down:  ## delete it
	kind delete cluster --name gevals-extensions

bench: $(STAMP)  ## speed and memory, measured side by side; ARGS=--peers: with other recorders; also in bench.json
	$(BIN)/python -m tests.bench $(ARGS)

lint: $(STAMP)  ## ruff, mypy, and the contracts of who may import whom
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## rewrite the code in the one format, and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

cassettes: $(STAMP)  ## record the sessions in cassettes/ anew; ARGS=shell/one-shot for one of them
	$(BIN)/python -m cassettes.record $(ARGS)

docs: $(STAMP)  ## generate the manifests and the reference pages from the code
	$(BIN)/python -m docs.generate

docs-check: $(STAMP)  ## fail if a generated file is not what the code says
	$(BIN)/python -m docs.generate --check

coverage: $(STAMP)  ## the tests with lines and branches measured, child processes included
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n auto $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

clean:  ## remove caches, measurements and builds
	rm -rf build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean  ## remove the virtual environment too
	rm -rf $(VENV)

# pip itself first: older ones write console scripts that import `re`, which costs every start of an extension 7 ms.
$(STAMP): pyproject.toml .ci/make-venv
	@echo 'installing into $(VENV) (once, about a minute) …'
	@.ci/make-venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@echo '$(CURDIR)' >$@
