"""An engine that cannot sample here is refused before anything is loaded or written."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from rlvr_core.api.errors import EnvironmentFault, StackError
from rlvr_core.train.engines import require_engine
from rlvr_core.train.exam import examine
from rlvr_core.train.prepare import prepare
from rlvr_core.train.progress import Silent
from rlvr_core.train.run import train

needs_no_vllm = pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")


@needs_no_vllm
def test_vllm_that_is_not_installed_is_missed_before_the_run_folder_is_made(write_stack, tmp_path):
    prepared = prepare(write_stack(rollout={"engine": "vllm"}))

    with pytest.raises(EnvironmentFault) as refused:
        train(prepared, tmp_path / "run")

    assert refused.value.code == "RLVR-E101"
    assert 'pip install "rlvr-core[vllm]"' in str(refused.value)
    assert not (tmp_path / "run").exists()


@needs_no_vllm
def test_vllm_that_is_not_installed_is_missed_by_an_evaluation(write_stack):
    prepared = prepare(write_stack(rollout={"engine": "vllm"}, evaluate={"splits": ["dev"]}))

    with pytest.raises(EnvironmentFault, match="needs vLLM"):
        examine(prepared, None, ["dev"], Silent())


def test_vllm_beside_other_processes_is_refused(write_stack, monkeypatch):
    monkeypatch.setattr("rlvr_core.train.engines.find_spec", lambda name: object())
    stack = prepare(write_stack(rollout={"engine": "vllm"})).resolved.stack

    with pytest.raises(StackError, match="one process, and there are 2") as refused:
        require_engine(stack, SimpleNamespace(num_processes=2))

    assert refused.value.code == "RLVR-S104"
