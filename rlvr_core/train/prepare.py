"""Everything that is checked before a model is loaded: the stack, its plugins and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from rlvr_core.api.plugin import Verifier
from rlvr_core.api.rollouts import Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.load import load_stack
from rlvr_core.data.load import describe_split, load_splits
from rlvr_core.plugins.resolve import ResolvedStack, resolve_stack


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A stack whose plugins are built and whose data is read."""

    resolved: ResolvedStack
    splits: Mapping[str, Sequence[Row]]
    """``train`` and every split that is evaluated; the gate is not opened."""
    data: Mapping[str, Mapping[str, Json]]
    """What the manifest says of each split."""

    @property
    def base(self) -> Path:
        """The folder that relative paths of the stack start from."""
        return self.resolved.file.path.parent


def prepare(path: Path, overrides: Sequence[str] = ()) -> Prepared:
    """Load a stack, its plugins and its data.

    Raises:
        RlvrError: What is wrong, all of it that one look can find.
    """
    resolved = resolve_stack(load_stack(path, overrides))
    data = resolved.stack.data
    wanted = ["train", *resolved.stack.evaluate.splits]
    sources = {split: getattr(data, split) for split in wanted}
    models: dict[str, type[BaseModel]] = {
        name: loaded.plugin.GroundTruth
        for name, loaded in resolved.verifiers.items()
        if isinstance(loaded.plugin, Verifier)
    }
    names = {name: loaded.ref.plugin for name, loaded in resolved.verifiers.items()}
    base = path.parent
    splits = load_splits(sources, base, models, names)
    return Prepared(
        resolved=resolved,
        splits=splits,
        data={split: describe_split(sources[split], base, splits[split]) for split in wanted},
    )
