"""The plugin: finds the code, runs the tests in a fresh sandbox, counts those that pass."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    Json,
    Resource,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
)
from rlvr_plugin_code_docker.containers import ContainerBackend
from rlvr_plugin_code_docker.extract import (
    MAX_CODE_CHARACTERS,
    Code,
    find_code,
    imported_modules,
)
from rlvr_plugin_code_docker.preload import PRELOADED
from rlvr_plugin_code_docker.process import ProcessBackend
from rlvr_plugin_code_docker.session import LOST, Ending, Limits, Outcome, run_tests
from rlvr_plugin_code_docker.truth import Test, Truth

PROCESSES = 64
SCRATCH_FILE_BYTES = 64 << 20
_SHOWN = 20
_FAILURES: dict[Ending, tuple[FailureCategory, Stage]] = {
    Ending.WRONG: (FailureCategory.WRONG_ANSWER, Stage.COMPARE),
    Ending.EXCEPTION: (FailureCategory.RUNTIME_ERROR, Stage.EXECUTE),
    Ending.EXITED: (FailureCategory.RUNTIME_ERROR, Stage.EXECUTE),
    Ending.KILLED: (FailureCategory.RUNTIME_ERROR, Stage.EXECUTE),
    Ending.SYNTAX: (FailureCategory.MALFORMED, Stage.PARSE),
    Ending.TIME_LIMIT: (FailureCategory.TIME_LIMIT, Stage.EXECUTE),
    Ending.SILENT: (FailureCategory.TIME_LIMIT, Stage.EXECUTE),
    Ending.TOO_LARGE: (FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE),
    Ending.MEMORY: (FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE),
    Ending.SANDBOX_ENDED: (FailureCategory.RESOURCE_LIMIT, Stage.EXECUTE),
}


class CodeDocker(RowVerifier):
    """Judges Python code by tests that run in a sandbox, made afresh for each answer."""

    api_version: ClassVar[str] = "1.0"
    resource: ClassVar[Resource] = Resource.CPU
    environment = ("DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR")

    class Config(Strict):
        """Settings of the verifier."""

        backend: Literal["docker", "podman", "bubblewrap"] | None = Field(
            default=None,
            description="What makes the sandboxes. Never changed for another one silently.",
        )
        image: str | None = Field(
            default=None,
            pattern=r"^sha256:[0-9a-f]{64}$",
            description="Docker and Podman: id of the sandbox image, as `rlvr-code-docker "
            "build-image` prints it. An id and no name, so that verdicts say what made them.",
        )
        unsafe_local: bool = Field(
            default=False,
            description="Instead of a backend: run answers as plain processes of this user. They "
            "can read and delete what you can.",
        )
        partial_credit: bool = Field(
            default=True,
            description="The score is the share of tests that pass; otherwise 1 for all and 0.",
        )
        test_time_limit_s: float = Field(
            default=3.0, gt=0, le=3600, description="What one test may take."
        )
        time_limit_s: float = Field(
            default=8.0,
            gt=0,
            le=3600,
            description="What all tests of an answer may take. Keep it two seconds below core's "
            "`timeout_s`, which is 10 by default and ends the worker.",
        )
        memory_mb: int = Field(
            default=512,
            ge=64,
            description="Memory, in MiB: of a container together, without swap; under bubblewrap "
            "of each process.",
        )

        @model_validator(mode="after")
        def _names_one_sandbox(self) -> Self:
            if self.unsafe_local == (self.backend is not None):
                raise ValueError(
                    "set `backend` to docker, podman or bubblewrap, or instead `unsafe_local: "
                    "true` to run answers without any sandbox"
                )
            has_image = self.backend in ("docker", "podman")
            if has_image != (self.image is not None):
                raise ValueError(
                    "`image` is needed for docker and podman, and for nothing else; "
                    "`rlvr-code-docker build-image` makes an image and prints the line to set"
                )
            return self

    GroundTruth = Truth
    config: Config

    def __init__(self, config: Any = None, *, name: str = "") -> None:
        super().__init__(config, name=name)
        self._backend = self._new_backend()
        self._limits = self._new_limits()

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion.

        Raises:
            EnvironmentFault: RLVR-E101, the backend cannot make a sandbox.
        """
        truth: Truth = row.ground_truth
        code = find_code(row.completion, truth.wanted())
        is_cut = row.finish_reason is FinishReason.LENGTH
        if code is None:
            failure = FailureCategory.TRUNCATED if is_cut else FailureCategory.NO_ANSWER
            return self.judge(0.0, failure, Stage.EXTRACT)
        if len(code.source) > MAX_CODE_CHARACTERS:
            message = f"the code has more than {MAX_CODE_CHARACTERS:,} characters"
            return self.judge(0.0, FailureCategory.RESOURCE_LIMIT, Stage.EXTRACT, message=message)
        tests = truth.plan()
        return self._verdict(code, tests, self._run(code, truth, tests), is_cut=is_cut)

    def close(self) -> None:
        """End the sandboxes that lie ready."""
        self._backend.close()

    def _run(self, code: Code, truth: Truth, tests: tuple[Test, ...]) -> list[Outcome]:
        modules = imported_modules(f"{truth.context}\n{code.source}")
        preload = [name for name in modules if name in PRELOADED]
        sandbox = self._backend.take()
        is_lost = True
        try:
            outcomes = run_tests(sandbox, code.source, truth.context, preload, tests, self._limits)
            is_lost = any(one.ending in LOST for one in outcomes)
        finally:
            sandbox.close(at_once=is_lost)
        if is_lost:
            # The answer's doing, unless the daemon died: then it is nobody's.
            self._backend.check()
        return outcomes

    def _verdict(
        self, code: Code, tests: tuple[Test, ...], outcomes: list[Outcome], *, is_cut: bool
    ) -> Verdict:
        endings = [one.ending for one in outcomes]
        passed = endings.count(Ending.PASSED)
        shown: dict[str, Json] = {"tests": len(tests), "passed": passed}
        in_process = sum(one.in_process for one in tests)
        if in_process:
            shown["in_process"] = in_process
        if passed == len(tests):
            return self.judge(1.0, **shown)
        shown["endings"] = [
            f"{one.ending.value}: {one.detail}" if one.detail else one.ending.value
            for one in outcomes[:_SHOWN]
        ]
        first = next(ending for ending in endings if ending is not Ending.PASSED)
        failure, stage = _FAILURES[first]
        if first is Ending.SYNTAX and not code.is_fenced:
            failure, stage = FailureCategory.NO_ANSWER, Stage.EXTRACT
        if is_cut and passed == 0:
            failure = FailureCategory.TRUNCATED
        score = passed / len(tests) if self.config.partial_credit else 0.0
        return self.judge(score, failure, stage, **shown)

    def _new_backend(self) -> ContainerBackend | ProcessBackend:
        backend, image = self.config.backend, self.config.image
        if backend in ("docker", "podman") and image is not None:
            return ContainerBackend(backend, image, self.config.memory_mb << 20)
        return ProcessBackend(backend or "local")

    def _new_limits(self) -> Limits:
        resources = {
            "AS": self.config.memory_mb << 20,
            "FSIZE": SCRATCH_FILE_BYTES,
            "NOFILE": 64,
            "CORE": 0,
        }
        if self.config.backend == "bubblewrap":
            # Counted for each sandbox, since each has a user of its own. A container's are counted
            # by its control group.
            resources["NPROC"] = PROCESSES
        return Limits(self.config.test_time_limit_s, self.config.time_limit_s, resources)
