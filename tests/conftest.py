"""What the tests of several folders share."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does, before torch

ROOT = Path(__file__).parents[1]


def _load_helper(name):
    """Make a module of this folder importable by tests, whatever their own folder."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


for helper in ("oracle", "stacks"):
    _load_helper(helper)


@pytest.fixture(scope="session")
def shared_folder():
    """The folder of graded cases and real data beside the repository, or a loud skip."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared with graded cases and real data is not there")
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """Folder of a random model that trains in milliseconds."""
    pytest.importorskip("torch")
    from rlvr_core.testing.tiny_model import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("model") / "tiny")
