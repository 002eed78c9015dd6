"""What the tests of this plugin share: the plugin class itself, called as core calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rlvr_plugin_code_docker import CodeDocker
from rlvr_plugin_code_docker.process import can_bubblewrap

from rlvr_core.api import FinishReason, Verdict, VerifyBatch, VerifyRow

Judge = Callable[..., Verdict]
SHARED = Path(__file__).parents[4] / "shared"


@pytest.fixture(
    scope="session", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]
)
def sandbox(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the settings that choose the backend."""
    if request.param == "bubblewrap":
        if why := can_bubblewrap():
            pytest.skip(f"bubblewrap does not work here: {why}")
        return {"backend": "bubblewrap"}
    image = os.environ.get("RLVR_CODE_IMAGE")
    assert image, "RLVR_CODE_IMAGE must hold the id that `rlvr-code-docker build-image` prints"
    return {"backend": "docker", "image": image}


@pytest.fixture(scope="session")
def judge(sandbox: dict[str, str]) -> Iterator[Judge]:
    """Return a function that judges one completion against one ground truth."""
    made: dict[str, CodeDocker] = {}

    def judged(
        completion: str,
        ground_truth: dict,
        finish_reason: FinishReason = FinishReason.STOP,
        **config: object,
    ) -> Verdict:
        settings = {**sandbox, **config}
        verifier = made.setdefault(
            repr(sorted(settings.items())), CodeDocker(CodeDocker.Config(**settings))
        )
        row = VerifyRow(
            id="row",
            prompt="",
            completion=completion,
            ground_truth=CodeDocker.GroundTruth.model_validate(ground_truth),
            finish_reason=finish_reason,
        )
        (verdict,) = verifier.rlvr_verify(VerifyBatch(rows=[row]))
        return verdict

    yield judged
    for verifier in made.values():
        verifier.close()


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Return the folder of graded cases and real data beside the repository, or skip loudly."""
    if not SHARED.is_dir():
        pytest.skip("../shared with graded cases and real data is not there")
    return SHARED
