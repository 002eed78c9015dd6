"""The place where checks are made: one stack on the tiny model, opened as often as they need it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, Self

import torch
from accelerate import Accelerator

from rlvr_core.api.plugin import Family, Verifier
from rlvr_core.plugins.hooks import implementations
from rlvr_core.plugins.resolve import LoadedPlugin, resolve_stack
from rlvr_core.plugins.stages import VERIFY
from rlvr_core.selfcheck.made_up import Material, make_material
from rlvr_core.selfcheck.probe import Probe
from rlvr_core.selfcheck.tiny_stack import tiny_stack
from rlvr_core.train.build import LoadedModel, load_model, open_runtime
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.runtime import Runtime
from rlvr_core.train.session import StepSession
from rlvr_core.verification.engine import VerifyEngine

TRAINED_SO_FAR = 0.02
"""How far, relative to each weight's own spread, the policy is from the reference."""


@dataclass(slots=True, kw_only=True, eq=False)
class Opened:
    """One runtime with plugins of its own, and the session of a step."""

    runtime: Runtime
    session: StepSession


@dataclass(eq=False)
class Bench:
    """A stack on the tiny model. Use it as a context manager.

    Every `open` builds the plugins anew, so that nothing one check did can change another.

    Args:
        prepared: The user's stack and data.
        model: Folder of the tiny model.
        scratch: A folder for runs.
    """

    prepared: Prepared
    model: Path
    scratch: Path
    kept: dict[str, Any] = field(default_factory=dict)
    """What one check found out and others can use."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        engine = self.__dict__.get("verify_engine")  # there once it was asked for
        if engine is not None:
            engine.close()

    @cached_property
    def material(self) -> Material:
        """Made-up rollouts of this stack's rows, which `Material.groups` builds anew each time."""
        with self.open() as opened:
            return make_material(opened.runtime, opened.session)

    @contextmanager
    def open(self, step: int = 1, **train: Any) -> Iterator[Opened]:
        """Open a runtime of the tiny stack.

        Args:
            step: Of the session.
            train: Keys of the stack's ``train`` section to set.
        """
        tiny = self.tiny(**train)
        with open_runtime(
            tiny.resolved,
            LoadedModel(copy.deepcopy(self._policy.model), self._policy.tokenizer),
            tiny.splits["train"],
            Accelerator(mixed_precision="no"),
            self.model,
            self.verify_engine,
        ) as runtime:
            session = StepSession(runtime=runtime, step=step, weights_version=0, prompts_drawn=0)
            yield Opened(runtime=runtime, session=session)

    def tiny(self, **train: Any) -> Prepared:
        """Return the tiny stack with newly constructed plugins; see `open`."""
        tiny = tiny_stack(self.prepared, self.model)
        stack = tiny.resolved.stack
        stack = stack.model_copy(update={"train": stack.train.model_copy(update=train)})
        return replace(tiny, resolved=replace(tiny.resolved, stack=stack))

    def removable(self, hooks: Sequence[str]) -> list[str]:
        """Return the plugins that the user named and a stack can do without.

        Args:
            hooks: Only those that implement one of these, or stand around one.
        """
        resolved = self.prepared.resolved
        named = [*resolved.plugins, *([resolved.control] if resolved.control else [])]
        return [
            loaded.name
            for loaded in named
            if not loaded.is_default and not loaded.answers(VERIFY) and _implements(loaded, hooks)
        ]

    def without(self, names: Sequence[str]) -> Bench:
        """Return a bench of the same stack without some of its plugins.

        Raises:
            RlvrError: The stack cannot do without them.
        """
        file = self.prepared.resolved.file
        lists: dict[str, Any] = {
            family.value: [
                entry for entry in getattr(file.stack, family.value) if entry.name not in names
            ]
            for family in Family
        }
        control = file.stack.control
        if control is not None and control.name in names:
            control = None
        stack = file.stack.model_copy(update={**lists, "control": control})
        resolved = resolve_stack(replace(file, stack=stack))
        # A new one for every check: a run needs a folder in which no run stands.
        scratch = Path(mkdtemp(prefix="without-", dir=self.scratch))
        return Bench(replace(self.prepared, resolved=resolved), self.model, scratch)

    @cached_property
    def verify_engine(self) -> VerifyEngine:
        """The verifier workers that all runtimes share. They start with the first row."""
        tiny = self.tiny()
        plugins = [one for one in tiny.resolved.plugins if isinstance(one.plugin, Verifier)]
        stack = tiny.resolved.stack
        refs = [(one.ref, one.entry) for one in plugins]
        return VerifyEngine(refs, stack.verification, seed=stack.seed)

    @cached_property
    def _policy(self) -> LoadedModel:
        """The tiny model, a little away from the reference: a penalty for leaving it must act."""
        loaded = load_model(self.model)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in loaded.model.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise * parameter.std() * TRAINED_SO_FAR)
        return loaded


def probe_of(runtime: Runtime) -> Probe:
    """Return the probe among the plugins of a runtime."""
    return next(one.plugin for one in runtime.dispatcher.plugins if isinstance(one.plugin, Probe))


def _implements(loaded: LoadedPlugin, hooks: Sequence[str]) -> bool:
    return any(found.hook in hooks for found in implementations(type(loaded.plugin)))
