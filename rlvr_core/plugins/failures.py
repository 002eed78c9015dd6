"""Turn what goes wrong with plugins into errors that name the party at fault."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rlvr_core.api.errors import (
    PluginDependencyError,
    PluginError,
    RlvrError,
    exception_text,
)

if TYPE_CHECKING:
    from rlvr_core.plugins.ref import PluginRef
    from rlvr_core.plugins.resolve import LoadedPlugin


def is_out_of_memory(exc: BaseException) -> bool:
    """Tell whether an exception is Python's or torch's word for memory that ran out."""
    if isinstance(exc, MemoryError) or type(exc).__name__ == "OutOfMemoryError":
        return True
    return isinstance(exc, RuntimeError) and "can't allocate memory" in str(exc)


def combined(errors: Sequence[RlvrError], what: str) -> RlvrError:
    """Return one error that says everything the given ones say; of one, itself.

    Args:
        errors: At least one error. The class and the code are those of the first.
        what: What they are about, in the plural, for the headline.
    """
    if len(errors) == 1:
        return errors[0]
    lines = [f"{len(errors)} {what}:"]
    lines += [error.render().removeprefix("error").replace("\n", "\n  ") for error in errors]
    return type(errors[0])(errors[0].code, "\n  ".join(lines))


def import_failure(ref: PluginRef, exc: BaseException, origin: str | None = None) -> PluginError:
    """Return the error to raise for an exception that importing `ref` raised.

    A module that belongs to the plugin itself and is not there means that the plugin is wrongly
    packaged; any other missing module is a dependency that is not installed.

    Args:
        ref: The plugin.
        exc: What was raised.
        origin: Who asked for it, for the message.
    """
    where = ref.needed_by(origin)
    cause = exception_text(exc)
    message = f"plugin {ref.plugin!r} could not be imported"
    if isinstance(exc, ModuleNotFoundError) and exc.name and not _is_own(ref, exc.name):
        return PluginDependencyError(
            "RLVR-P102",
            f"{message}: the module {exc.name!r}, which it needs, is not installed",
            origin=where,
            cause=cause,
            fix=_dependency_fix(ref, exc.name),
            report=ref.report_url,
        )
    if isinstance(exc, ModuleNotFoundError):
        fix = f"the package is incomplete; try: pip install --force-reinstall {ref.distribution}"
    elif isinstance(exc, SystemExit):
        fix = "a module may not end the process when it is imported; report it to its author"
    else:
        fix = f"upgrade it: pip install --upgrade {ref.distribution}; or report it to its author"
    return PluginError(
        "RLVR-P102", message, origin=where, cause=cause, fix=fix, report=ref.report_url
    )


def hook_failure(loaded: LoadedPlugin, what: str, cause: str) -> PluginError:
    """Return the error to raise for a plugin of a stack that failed while it was called.

    Args:
        loaded: The plugin.
        what: Which of its methods did what, as in ``rlvr_verify raised``.
        cause: The text of what it raised, or what is wrong with what it returned.
    """
    return PluginError(
        "RLVR-P106",
        f"plugin {loaded.name!r}: {what}",
        origin=f"{loaded.ref.blame}, named by {loaded.origin}",
        cause=cause,
        fix=f"upgrade {loaded.ref.distribution}, or take {loaded.name!r} out of the stack",
        report=loaded.ref.report_url,
    )


def _is_own(ref: PluginRef, module: str) -> bool:
    return module.partition(".")[0] == ref.value.partition(":")[0].partition(".")[0]


def _dependency_fix(ref: PluginRef, module: str) -> str:
    top = module.partition(".")[0]
    if ref.distribution == "rlvr-core":
        return f"{top!r} comes with an optional part of rlvr: pip install 'rlvr-core[train]'"
    if "." in module and find_spec(top) is not None:
        return f"{top!r} is installed but has no {module!r}; try: pip install --upgrade {top}"
    return (
        f"pip install {ref.distribution!r} again, with its dependencies; "
        f"if that does not bring {top!r}: pip install {top}"
    )
