# Every target has a line of help: make help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
AGENT ?=
# Without byte code each of the hundreds of processes that the tests start would compile the product anew.
export PYTHONDONTWRITEBYTECODE :=
# Many tests wait for processes: three at a time keep two cores busy.
QUICK := -n 3 --dist worksteal -m 'not real and not e2e and not bench and not gastown'

.DEFAULT_GOAL := help
.PHONY: help setup tmux run test coverage check format test-real chaos soak e2e e2e-latest e2e-others e2e-gastown record-payloads bench wheel clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' Makefile

setup: tmux $(VENV)/.ready ## virtual environment, dependencies, tmux; quick when all is there

# One stamp: a changed pyproject.toml or pin file sets up anew, anything else costs nothing.
$(VENV)/.ready: pyproject.toml .ci/constraints.txt
	@.ci/python-ok "$(PYTHON)"
	@test -x $(PY) || "$(PYTHON)" -m venv $(VENV)
	@echo "setting up $(VENV) (once)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt --editable '.[dev]'
	@touch $@

tmux:
	@.ci/need-tmux

run: setup ## the main job, shown: spawn, observe, inject, respawn, done, nothing left (AGENT="cmd" runs your own agent)
	@$(PY) -m witness.cli demo $(if $(AGENT),--agent '$(subst ','\'',$(AGENT))')

test: setup ## unit tests and quick tests with real processes and tmux
	@$(PY) -m pytest -q $(QUICK) $(ARGS)

coverage: setup ## the same tests, measured: fails below the floor of pyproject.toml
	@$(PY) -m pytest -q $(QUICK) --cov --cov-report=term $(ARGS)

check: setup ## format, lint, types, layers
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(VENV)/bin/python -c 'from importlinter.cli import lint_imports_command as m; m()'
	@$(PY) docs/build_api.py --check
	@$(PY) docs/build_json.py --check

docs: setup ## docs/api.md from the docstrings, docs/json.md from the schemas
	@$(PY) docs/build_api.py
	@$(PY) docs/build_json.py

format: setup ## put the code into its form
	@$(PY) -m ruff check --fix-only .
	@$(PY) -m ruff format .

test-real: setup ## the slow tests with real tmux and awkward processes
	@$(PY) -m pytest -q -m 'real' $(ARGS)

chaos: setup ## a town of ten polecats under random faults (ARGS="--seed 7 --faults 300"); totals in .cache/chaos.json
	@$(PY) -m tests.chaos $(ARGS)

soak: setup ## thirty busy polecats for 45 minutes: what grows (ARGS="--minutes 5 --polecats 10" for a short one)
	@$(PY) -m tests.chaos.soak $(ARGS)

e2e: setup ## the real Claude Code against a scripted server (installed once, from npm; CLAUDE_VERSION=… takes another)
	@.ci/need-claude
	@. ./.ci/versions; .ci/need-claude "$$CLAUDE_NEWEST"
	@$(PY) -m pytest -q -m 'e2e' $(ARGS)

e2e-latest: setup ## the same with the newest Claude Code that npm has: it reports, and fails nothing
	@latest=$$(npm view @anthropic-ai/claude-code version) && .ci/need-claude "$$latest" \
	  && CLAUDE_VERSION="$$latest" $(PY) -m pytest -q -m 'e2e' $(ARGS) \
	  && echo "e2e-latest: passed with Claude Code $$latest" || echo "e2e-latest: FAILED with Claude Code $$latest: see above"

record-payloads: setup ## record anew what the real clients give to their hooks, into tests/payloads/ (ARGS=codex: one)
	@.ci/need-claude && . ./.ci/versions && .ci/need-claude "$$CLAUDE_NEWEST" && .ci/need-other-clients
	@$(PY) -m tests.payloads.record $(ARGS)

e2e-others: setup ## Codex CLI, Gemini CLI and opencode offline (installs them once, from npm)
	@.ci/need-other-clients
	@$(PY) -m pytest -q tests/e2e/test_other_clients.py $(ARGS)

e2e-gastown: setup ## the real Gas Town (GASTOWN_BIN=DIR holds its gt, bd, dolt and nq; without them it is skipped)
	@GASTOWN_BIN='$(subst ','\'',$(or $(GASTOWN_BIN),$(shell .ci/find-gastown)))' $(PY) -m pytest -q -m 'gastown' $(ARGS)

bench: setup ## measure us and our peers in one run
	@PYTHON=$(PY) .ci/need-peers
	@$(PY) -m tests.bench $(ARGS)

wheel: setup ## build the wheel into dist/
	@$(PY) -m build --wheel --outdir dist .

clean: ## remove what setup and the builds made
	rm -rf $(VENV) dist build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
