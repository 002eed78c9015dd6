# One visible line a target. PYTHON chooses the interpreter that makes .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
READY := .venv/.ready

.PHONY: setup check test demo docs clean

setup: $(READY)

$(READY): pyproject.toml $(wildcard plugins/*/pyproject.toml) $(wildcard requirements/*.txt)
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -r requirements/dev.txt -c requirements/constraints-cpu.txt
	touch $@

check: setup
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m mypy

test: setup
	.venv/bin/python -m pytest

demo: setup
	.venv/bin/rlvr demo

docs: setup
	.venv/bin/python docs/generate.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
