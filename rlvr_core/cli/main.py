"""The ``rlvr`` command: every verb by name, its module imported only when the verb runs."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rlvr_core import __version__
from rlvr_core.api.errors import EnvironmentFault, RlvrError, did_you_mean, exception_text
from rlvr_core.cli.interrupts import hearing_interruptions
from rlvr_core.monitors.tracker_outlet import close_all
from rlvr_core.plugins.failures import is_out_of_memory
from rlvr_core.train.sudden_end import end_process

_LAST_RECORDS_S = 5.0
"""How long a command that fails waits for what experiment trackers have not sent yet."""
_LAST_THREADS_S = 5.0
"""How long a command that is over waits for threads of plugins."""
CORE_FAULT_EXIT_CODE = 4
"""Of an exception that is no `RlvrError`: the command ended early, and it is our fault."""

VERBS: dict[str, tuple[str, str]] = {
    "train": ("rlvr_core.cli.train:train", "Train a model on a stack."),
    "eval": ("rlvr_core.cli.eval:evaluate", "Measure a checkpoint on held-out data."),
    "verify": ("rlvr_core.cli.verify:verify", "Judge completions with one verifier."),
    "rescore": ("rlvr_core.cli.rescore:rescore", "Judge the stored rollouts of a run again."),
    "selfcheck": ("rlvr_core.cli.selfcheck:selfcheck", "Check a stack's plugins on a tiny model."),
    "demo": ("rlvr_core.cli.demo:demo", "Train a small model on arithmetic and show the gain."),
    "report": ("rlvr_core.cli.report:report", "Write the report page of a run."),
    "plugins": ("", "List, show, diagnose, check and make plugins."),
    "config": ("", "Check, show and copy stack files."),
    "data": ("", "Make and check data."),
}
"""Verb -> (``module:function``, one line of help); without a function: a group of verbs."""

SUB_VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "plugins": {
        "list": ("rlvr_core.cli.plugins:list_plugins", "List installed plugins, importing none."),
        "show": ("rlvr_core.cli.plugins:show", "Show what is known of one plugin."),
        "doctor": ("rlvr_core.cli.plugins:doctor", "Say what is wrong with the installation."),
        "check": ("rlvr_core.cli.plugin_check:check", "Check one plugin, and count what holds."),
        "new": ("rlvr_core.cli.plugin_new:new", "Make the project of a new plugin."),
    },
    "config": {
        "check": ("rlvr_core.cli.config:check", "Check a stack file and the plugins it names."),
        "show": ("rlvr_core.cli.config:show", "Print a stack with every default written out."),
        "schema": ("rlvr_core.cli.config:schema", "Print the JSON Schema of stack files."),
        "copy": ("rlvr_core.cli.config:copy", "Copy a recipe, to be edited."),
    },
    "data": {
        "make": ("rlvr_core.cli.data:make", "Make data for a task."),
        "check": ("rlvr_core.cli.data:check", "Check data files, or the data of a stack."),
    },
}


class LazyGroup(TyperGroup):
    """A group of verbs that are known by name and built when one of them is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of the tables above."""
        return list(self._table(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a verb; for a help page, one that knows its help line only."""
        target, help_line = self._table(ctx).get(cmd_name, (None, ""))
        if target is None:
            return None
        if not target:
            return _group(cmd_name, help_line)
        if getattr(ctx, "rlvr_is_help", False):
            return _stub(cmd_name, help_line)
        return _command(cmd_name, target, help_line)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help page without importing what the verbs need."""
        ctx.rlvr_is_help = True
        super().format_help(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb; say what was meant when there is none of that name."""
        if args and args[0] not in self._table(ctx) and not args[0].startswith("-"):
            known = self._table(ctx)
            verbs = f"Verbs: {', '.join(known)}"
            ctx.fail(f"no verb {args[0]!r}{did_you_mean(args[0], known, verbs)}")
        return super().resolve_command(ctx, args)

    def _table(self, ctx: Any) -> dict[str, tuple[str, str]]:
        return SUB_VERBS.get(self.name or "", VERBS)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; always ends the process with one of the documented exit codes.

    Args:
        arguments: None: those of this process, which then ends soon whatever threads remain.
    """
    try:
        _run(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        have_trackers_ended = close_all(_LAST_RECORDS_S)
        with suppress(OSError):  # Python tries again at its end, and says it
            sys.stdout.flush()
            sys.stderr.flush()
        if not have_trackers_ended:
            # The library of a tool that hangs would keep Python waiting at its end, too.
            os._exit(code)
        if arguments is None:
            threading.Thread(target=_end_soon, args=(code,), daemon=True).start()
        raise


def _end_soon(exit_code: int) -> None:
    """End the process if Python, at its end, still waits for threads that a plugin has left."""
    time.sleep(_LAST_THREADS_S)
    main_thread = threading.main_thread()
    left = [
        thread.name
        for thread in threading.enumerate()
        if not thread.daemon and thread is not main_thread
    ]
    if left:
        message = (
            f"these threads did not end within {_LAST_THREADS_S:g} s of the command, and were "
            f"ended with it: {', '.join(left)}"
        )
        end_process(message, exit_code, lambda: None)


def _run(arguments: list[str] | None) -> None:
    # Read when torch loads OpenMP. Threads that spin while they wait keep others from a busy core:
    # beside one other job on two cores, sampling was measured six times slower with spinning.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Wherever it stands: people add it to the end of the command that failed.
    wants_traceback = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    try:
        with hearing_interruptions():
            app()(args=given, prog_name="rlvr")
    except RlvrError as error:
        if wants_traceback:
            traceback.print_exception(error)
        _print_error(error, as_json="--json" in given)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has had enough, as `| head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the outermost border: all become an exit code
        if is_out_of_memory(error):
            if wants_traceback:
                traceback.print_exception(error)
            fault = _memory_fault(error)
            _print_error(fault, as_json="--json" in given)
            sys.exit(fault.exit_code)
        traceback.print_exc()
        typer.echo(
            "\nThis is a fault of rlvr itself; please report it with the text above.", err=True
        )
        sys.exit(CORE_FAULT_EXIT_CODE)


def _memory_fault(error: Exception) -> EnvironmentFault:
    return EnvironmentFault(
        "RLVR-E105",
        "memory ran out",
        cause=exception_text(error),
        fix="lower rollout.max_rows (sampling) or train.micro_batch_tokens (learning): they change "
        "nothing that is learnt; or take a smaller model",
    )


def app() -> Any:
    """Return the command ``rlvr``."""
    return _group("rlvr", "Train language models with verifiable rewards.", _root)


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. May stand anywhere.")
    ] = False,
) -> None:
    if version:
        typer.echo(f"rlvr {__version__}")
        raise typer.Exit


def _branch() -> None:
    """Hold verbs; has no options of its own."""


def _group(name: str, help_line: str, callback: Any = _branch) -> Any:
    group = typer.Typer(
        name=name,
        cls=LazyGroup,
        help=help_line,
        no_args_is_help=True,
        invoke_without_command=callback is not _branch,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its markup would take text in square brackets out of help pages
    )
    group.callback()(callback)
    return typer.main.get_group(group)


def _command(name: str, target: str, help_line: str) -> Any:
    module, _, function = target.partition(":")
    return _built(name, getattr(import_module(module), function), help_line)


def _stub(name: str, help_line: str) -> Any:
    return _built(name, _branch, help_line)


def _built(name: str, function: Any, help_line: str) -> Any:
    single = typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    single.command(name, short_help=help_line)(function)
    return typer.main.get_command(single)


def _print_error(error: RlvrError, *, as_json: bool) -> None:
    """Show the error on stderr, and on stdout as JSON for programs that read it there."""
    if as_json:
        typer.echo(json.dumps({"error": error.to_json(), "exit_code": error.exit_code}))
    typer.echo(error.render(), err=True)
