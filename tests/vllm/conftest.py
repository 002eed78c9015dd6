"""vLLM on a tiny model. Run by ``make test-vllm``, in an environment of its own."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from vllm_pair import Pair  # noqa: E402

from rlvr_core.testing.tiny_model import make_tiny_model  # noqa: E402
from rlvr_core.train.build import load_model  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory):
    """Folder of a tiny model with heads of 32, the least that vLLM computes with on a CPU."""
    return make_tiny_model(tmp_path_factory.mktemp("vllm") / "tiny", hidden=128, positions=8192)


@pytest.fixture
def make_pair(wide_model):
    """Return a function that makes pairs, whose engines end with the test."""
    with contextlib.ExitStack() as opened:

        def make(model=None, **options):
            pair = Pair(model or load_model(wide_model).model, **options)
            opened.enter_context(contextlib.closing(pair.vllm))
            return pair

        yield make


@pytest.fixture(scope="module")
def pair(wide_model):
    """A pair whose weights go from test to test, updated and pushed as they come."""
    pair = Pair(load_model(wide_model).model)
    with contextlib.closing(pair.vllm):
        yield pair


@pytest.fixture
def environment():
    """The variables of a child process that runs ``rlvr``."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}
