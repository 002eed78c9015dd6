# One visible line a target. PYTHON chooses the interpreter that makes .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
READY := .venv/.ready
# Each process that a test starts would compile all of core anew.
unexport PYTHONDONTWRITEBYTECODE
# One more than there are cores: some tests wait.
TEST_PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: setup check test test-vllm test-adapters demo docs clean bench-trl

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
	.venv/bin/python -m pytest -n $(TEST_PROCESSES) --dist loadfile

# The tests of the vLLM engine, in an environment of its own: vLLM wants other versions.
test-vllm: .venv-vllm/.ready
	.venv-vllm/bin/python -m pytest -m vllm tests/vllm

# vLLM brings three packages that cannot be imported beside the CPU build of torch, and needs none.
.venv-vllm/.ready: pyproject.toml requirements/vllm.txt requirements/constraints-vllm.txt
	test -x .venv-vllm/bin/python || $(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install -r requirements/vllm.txt -c requirements/constraints-vllm.txt
	.venv-vllm/bin/python -m pip uninstall -y torchvision torchaudio torchcodec
	touch $@

# The adapters with the real TRL, verifiers and reasoning-gym, each in an environment of its own.
test-adapters: .venv-adapters-trl/.ready .venv-adapters-verifiers/.ready \
		.venv-adapters-reasoning-gym/.ready
	.venv-adapters-trl/bin/python -m pytest -m adapters tests/adapters/test_with_trl.py
	.venv-adapters-verifiers/bin/python -m pytest -m adapters tests/adapters/test_with_verifiers.py
	.venv-adapters-reasoning-gym/bin/python -m pytest -m adapters \
		tests/adapters/test_with_reasoning_gym.py

.venv-adapters-%/.ready: pyproject.toml requirements/adapters-%.txt \
		requirements/constraints-adapters.txt requirements/constraints-cpu.txt
	test -x .venv-adapters-$*/bin/python || $(PYTHON) -m venv .venv-adapters-$*
	.venv-adapters-$*/bin/python -m pip install -r requirements/adapters-$*.txt \
		-c requirements/constraints-cpu.txt -c requirements/constraints-adapters.txt
	touch $@

demo: setup
	.venv/bin/rlvr demo

docs: setup
	.venv/bin/python docs/generate.py

# The race against TRL, in an environment of its own. About an hour on two cores.
bench-trl: .venv-trl/.ready
	.venv-trl/bin/python benchmarks/step_vs_trl.py S same --steps 40 --threads 1
	.venv-trl/bin/python benchmarks/step_vs_trl.py M same --steps 30 --threads 1
	.venv-trl/bin/python benchmarks/step_vs_trl.py demo same --steps 6 --no-plain
	.venv-trl/bin/python benchmarks/step_vs_trl.py demo less --steps 6
	.venv-trl/bin/python benchmarks/memory.py demo

.venv-trl/.ready: pyproject.toml requirements/trl.txt requirements/constraints-cpu.txt
	test -x .venv-trl/bin/python || $(PYTHON) -m venv .venv-trl
	.venv-trl/bin/python -m pip install -r requirements/trl.txt -c requirements/constraints-cpu.txt
	touch $@

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
