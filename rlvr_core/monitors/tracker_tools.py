"""The experiment trackers that Accelerate knows, and how a run of each is begun and continued."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from rlvr_core.api import RunInfo

PACKAGES: dict[str, tuple[str, ...]] = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "comet_ml": ("comet_ml",),
    "aim": ("aim",),
    "clearml": ("clearml",),
    "dvclive": ("dvclive",),
    "swanlab": ("swanlab",),
    "trackio": ("trackio",),
}
"""Tool to the modules of which it needs one."""


class AccelerateTool:
    """One of Accelerate's trackers, begun. Implements `Tool`."""

    def __init__(self, tracker: Any, run_id: str | None) -> None:
        self.run_id = run_id
        self._tracker = tracker

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Send the numbers of a step."""
        self._tracker.log(dict(values), step=step)

    def finish(self) -> None:
        """End the run in order."""
        self._tracker.finish()


def new_run_id(to: str) -> str | None:
    """Return an id for a new run; None where the tool gives one, or has none."""
    return secrets.token_hex(8) if to == "wandb" else None


def open_tool(
    to: str, project: str, settings: Mapping[str, Any], run: RunInfo, run_id: str | None
) -> AccelerateTool:
    """Begin a run in a tool, or continue the one of that id where the tool can.

    Args:
        to: A key of `PACKAGES`.
        project: Project or experiment.
        settings: Further arguments of Accelerate's tracker class; they win over what is set here.
        run: Facts of the run; its folder is where files go.
        run_id: The tool's name of the run, as `new_run_id` or an earlier tool gave it.
    """
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    name = run.folder.name
    resumes = run.manifest.get("resumes") or []
    arguments: dict[str, Any] = {}
    first = project
    if to == "tensorboard":
        first = "tensorboard"  # the folder's name
        if resumes:
            # What an earlier attempt wrote of the steps that are made again is hidden.
            arguments["purge_step"] = resumes[-1]["at_step"] + 1
    elif to == "wandb":
        arguments |= {"name": name, "id": run_id, "resume": "allow", "dir": str(run.folder)}
    elif to == "mlflow":
        arguments |= {"run_id": run_id} if run_id else {"run_name": name}
    cls = LOGGER_TYPE_TO_CLASS[to]
    places = [first, run.folder] if cls.requires_logging_directory else [first]
    tracker = cls(*places, **{**arguments, **settings})
    tracker.start()
    if to == "mlflow":
        run_id = tracker.tracker.info.run_id
    if to != "tensorboard" and not resumes:
        # TensorBoard would make a run of its own of it, and stack.yaml stands beside its files.
        tracker.store_init_configuration(_facts(run))
    return AccelerateTool(tracker, run_id)


def _facts(run: RunInfo) -> dict[str, Any]:
    """Return what tells this run from others."""
    budget = run.manifest.get("budget") or {}
    return {
        "run": run.folder.name,
        "seed": run.seed,
        "model": run.manifest.get("model"),
        "rlvr_core": run.manifest.get("rlvr_core"),
        **{key: value for key, value in budget.items() if isinstance(value, int | float | str)},
    }
