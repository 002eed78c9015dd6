"""Everything that is checked before a model is loaded: the stack, its plugins and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from rlvr_core.api.errors import StackError, listed
from rlvr_core.api.plugin import Verifier
from rlvr_core.api.rollouts import Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.load import load_stack
from rlvr_core.data.load import describe_split, load_splits
from rlvr_core.plugins.members import ground_truth_model
from rlvr_core.plugins.resolve import ResolvedStack, resolve_stack


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A stack whose plugins are built and whose data is read."""

    resolved: ResolvedStack
    splits: Mapping[str, Sequence[Row]]
    """``train`` and every split that is evaluated; the gate only when it is asked for."""
    data: Mapping[str, Mapping[str, Json]]
    """What the manifest says of each split."""

    @property
    def measured(self) -> list[str]:
        """The splits that are for measuring."""
        return [split for split in self.splits if split != "train"]

    def remarks(self) -> list[str]:
        """Return what is odd about the rows, one sentence each; a run says it at its beginning."""
        train = self.splits.get("train", [])
        trained = {row.prompt for row in train}
        found = []
        for split in self.measured:
            rows = self.splits[split]
            count = sum(row.prompt in trained for row in rows)
            if count:
                found.append(f"{count} of {len(rows)} {split} prompts are trained on too")
        wanted = self.resolved.stack.rollout.prompts_per_step
        if 0 < len(train) < wanted:
            found.append(
                f"train has {len(train)} prompts and a step takes {wanted}: they repeat within it"
            )
        return found

    @property
    def base(self) -> Path:
        """The folder that relative paths of the stack start from."""
        return self.resolved.file.path.parent


def prepare(
    path: Path, overrides: Sequence[str] = (), splits: Sequence[str] | None = None
) -> Prepared:
    """Load a stack, its plugins and its data.

    Args:
        path: The stack file.
        overrides: ``key.path=value`` arguments.
        splits: Only these are read, for an evaluation; by default ``train`` and those of
            ``evaluate.splits``.

    Raises:
        RlvrError: What is wrong, all of it that one look can find.
    """
    resolved = resolve_stack(load_stack(path, overrides))
    data = resolved.stack.data
    wanted = list(splits) if splits else ["train", *resolved.stack.evaluate.splits]
    sources = {split: getattr(data, split) for split in wanted}
    absent = [split for split, source in sources.items() if source is None]
    if absent:
        raise StackError(
            "RLVR-S106",
            f"the stack has no {listed(absent)} data to measure on",
            origin=str(path),
            fix=f"add data.{absent[0]} to the stack",
        )
    models: dict[str, type[BaseModel]] = {
        name: ground_truth_model(loaded.ref)
        for name, loaded in resolved.verifiers.items()
        if isinstance(loaded.plugin, Verifier)
    }
    names = {name: loaded.ref.plugin for name, loaded in resolved.verifiers.items()}
    base = path.parent
    loaded = load_splits(sources, base, models, names)
    return Prepared(
        resolved=resolved,
        splits=loaded,
        data={split: describe_split(sources[split], base, loaded[split]) for split in wanted},
    )
