"""What the adapters for Prime Intellect's library ``verifiers`` share.

That is tasksets whose scoring needs the model's reply only. Tasks score themselves since the
library's interface ``v1``; rubrics went with the one before.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rlvr_core.api.errors import EnvironmentFault, exception_text
from rlvr_core.api.verdicts import Json

_HOOKS_WITH_A_RUNTIME = ("setup", "finalize", "stage_verifier")


def load_library() -> Any:
    """Import ``verifiers.v1``.

    Raises:
        EnvironmentFault: RLVR-E101, it is not installed.
    """
    try:
        import verifiers.v1 as library
    except ImportError as error:
        raise EnvironmentFault(
            "RLVR-E101",
            "tasks of the library verifiers need it installed",
            cause=str(error),
            fix='pip install "rlvr-core[verifiers]"',
        ) from error
    return library


def load_taskset(name: str, settings: Mapping[str, Json]) -> Any:
    """Return an installed taskset.

    Args:
        name: Of its package, as the library's own commands take it.
        settings: Of the taskset's configuration.

    Raises:
        EnvironmentFault: RLVR-E101, the library is not installed.
        ValueError: There is no such taskset, or it does not take these settings.
    """
    load_library()
    from verifiers.v1.utils.loaders import taskset_class, taskset_config_type

    try:
        config = taskset_config_type(name).model_validate({**settings, "id": name})
        return taskset_class(name)(config)
    except Exception as exc:
        raise ValueError(f"the taskset {name!r} cannot be used: {exception_text(exc)}") from exc


def task_class(taskset: Any) -> Any:
    """Return the class of the tasks of a taskset."""
    library = load_library()
    from verifiers.v1.utils.generic import concrete_type

    return concrete_type(type(taskset), library.Task) or library.Task


def why_not(task: Any) -> str | None:
    """Say why a task's scoring needs more than a reply; None when it does not."""
    library = load_library()
    cls = type(task)
    if task.NEEDS_CONTAINER:
        return "it needs a container"
    if cls.toolsets(task.config):
        return "the model is given tools"
    own = [
        name
        for name in _HOOKS_WITH_A_RUNTIME
        if getattr(cls, name, None) is not getattr(library.Task, name, None)
    ]
    if own:
        return f"it prepares the runtime of the model ({', '.join(own)})"
    scorers = [*task.hooks("reward"), *(judge.score for judge in task.plugged_judges())]
    if not scorers:
        return "it has no reward"
    for scorer in scorers:
        runtime = inspect.signature(scorer).parameters.get("runtime")
        if runtime is not None and runtime.default is runtime.empty:
            return f"its reward {scorer.__name__} looks into the runtime of the model"
    return None
