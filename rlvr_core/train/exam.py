"""Measuring a checkpoint without training: what ``rlvr eval`` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlvr_core.api.errors import StackError
from rlvr_core.api.rollouts import Row
from rlvr_core.api.verdicts import Json
from rlvr_core.models.source import loading, resolve_model
from rlvr_core.records import layout
from rlvr_core.rollout.tokens import PromptTokenizer
from rlvr_core.train import checkpoint
from rlvr_core.train.build import load_model, open_runtime
from rlvr_core.train.engines import require_engine
from rlvr_core.train.measuring import measure_split
from rlvr_core.train.prepare import Prepared
from rlvr_core.train.processes import make_accelerator
from rlvr_core.train.progress import Reporter
from rlvr_core.train.prompt_check import check_prompts


def examine(
    prepared: Prepared, given: Path | None, splits: Sequence[str], reporter: Reporter
) -> list[dict[str, Json]]:
    """Measure a model on splits of the stack's data, and write nothing.

    Args:
        prepared: The stack, with the rows of the splits.
        given: A checkpoint, a run folder (its newest checkpoint) or another model folder; None for
            the stack's own model as it is.
        splits: To measure on.
        reporter: Told of progress, on the main process.

    Returns:
        One record a split, in the form of ``evals.jsonl``.

    Raises:
        RunFolderError: RLVR-T102, the run has no complete checkpoint; RLVR-T108, it is damaged.
        RlvrError: What is wrong with the stack, its data, the model or a plugin.
    """
    stack = prepared.resolved.stack
    accelerator = make_accelerator(stack)
    require_engine(stack, accelerator)
    initial = resolve_model(stack.model, reporter.phase, prepared.base)
    folder = initial if given is None else _model_folder(given)
    progress = None
    if isinstance(folder, Path) and (folder / layout.CHECKPOINT_STATE).is_file():
        progress = checkpoint.load_progress(folder)
        checkpoint.require_undamaged(folder)
    reporter.phase(loading(folder))
    loaded = load_model(folder)
    tokenizer = PromptTokenizer(loaded.tokenizer, stack.rollout.prompt_format)
    check_prompts(prepared, tokenizer, loaded.model.config)
    records = []
    with open_runtime(prepared.resolved, loaded, [], accelerator, initial) as runtime:
        if progress:
            runtime.engine.push(runtime.policy.model, progress.weights_version)
        for split in splits:
            rows: Sequence[Row] = prepared.splits[split]
            reporter.phase(f"evaluating {split}: {len(rows)} prompts")
            record = measure_split(
                runtime,
                split,
                rows,
                step=progress.step if progress else 0,
                weights_version=progress.weights_version if progress else 0,
            ).record
            # That name is of a file in a run folder; nothing was written here.
            record["file"] = None
            records.append(record)
            if accelerator.is_main_process:
                reporter.evaluation(record)
    return records


def _model_folder(given: Path) -> Path:
    """Return the folder with the weights: of a run, that of its newest complete checkpoint."""
    if not given.is_dir():
        beside = sorted(path.name for path in given.parent.glob("[0-9]*") if path.is_dir())
        raise StackError(
            "RLVR-S106",
            f"there is no checkpoint {str(given)!r}",
            cause=f"beside it stand: {', '.join(beside)}" if beside else None,
            fix="give a run folder, or one of the folders in its checkpoints/",
        )
    return checkpoint.newest(given) if (given / layout.MANIFEST).is_file() else given
