"""Python reward functions: found by name, told apart by their parameters, called with one row."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from rlvr_core.api.errors import described, exception_text, listed
from rlvr_core.api.plugin import VerifyRow
from rlvr_core.api.verdicts import Json
from rlvr_core.verification.contract import ContractError

_OF_A_RUNNING_TRL = frozenset({"completion_ids", "trainer_state", "log_extra", "log_metric"})
"""Arguments that only TRL's trainer has; a function may take them, but must not need them."""


class Convention(StrEnum):
    """How a reward function wants to be called."""

    TRL = "trl"
    """``f(prompts, completions, **columns)`` with lists; returns a list."""
    VERL = "verl"
    """``f(data_source, solution_str, ground_truth, extra_info)``; returns a number or a mapping
    with ``score``."""
    PLAIN = "plain"
    """``f(completion, …)`` with keys of the ground truth by name; returns a number."""


class RewardFunction:
    """A reward function that is called with one row at a time.

    Args:
        place: ``path.py:name`` or ``module:name``.
        convention: How to call it; None: by its parameters.

    Raises:
        ValueError: It cannot be imported, or called so; the text says why.
    """

    def __init__(self, place: str, convention: Convention | None = None) -> None:
        self._function = load_function(place)
        self._parameters = _parameters(self._function, place)
        self.convention = convention or _guess(self._parameters, place)
        self._takes_all = any(one.kind is one.VAR_KEYWORD for one in self._parameters.values())
        self._named = {
            name: one
            for name, one in self._parameters.items()
            if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        }
        self._completion_name = next(iter(self._named), "")
        needed = [name for name in self._required() if name in _OF_A_RUNNING_TRL]
        if needed and self.convention is Convention.TRL:
            raise ValueError(
                f"{place} needs {listed(needed)}, which only TRL's trainer has; give it a default"
            )
        if self.convention is Convention.PLAIN and not self._named:
            raise ValueError(f"{place} takes no completion: its first parameter gets it by name")

    def missing(self, ground_truth: Mapping[str, Json], metadata: Mapping[str, Json]) -> list[str]:
        """Return the parameters that a row says nothing for."""
        if self.convention is Convention.VERL:
            has_truth = "ground_truth" in ground_truth or "answer" in ground_truth
            return [] if has_truth else ["ground_truth"]
        given = {"prompt", "prompts", "completions", "metadata", "finish_reason"}
        if self.convention is Convention.PLAIN:
            given.add(self._completion_name)
        given |= {*metadata, *ground_truth}
        return [name for name in self._required() if name not in given]

    def score(self, row: VerifyRow, ground_truth: Mapping[str, Json]) -> Any:
        """Return what the function says about one row: a score, or None for no verdict.

        Raises:
            ContractError: It returned something that is no answer to one row.
            Exception: Whatever the function raises; a key that it needs and the row has not.
        """
        missing = self.missing(ground_truth, row.metadata)
        if missing:
            raise ValueError(
                f"the row says nothing for {listed(missing)}, which the function needs; "
                f"it has {listed(ground_truth) or 'no ground truth'}"
            )
        result = self._function(**self._arguments(row, ground_truth))
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
        if self.convention is Convention.TRL:
            if hasattr(result, "tolist"):
                result = result.tolist()
            if not isinstance(result, list | tuple) or len(result) != 1:
                raise ContractError(f"expected a list of one reward, got {described(result)}")
            result = result[0]
        elif isinstance(result, Mapping):
            if "score" not in result:
                raise ContractError(f"expected a mapping with 'score', got {described(result)}")
            result = result["score"]
        if hasattr(result, "item"):  # a number of numpy, or a tensor of one
            result = result.item()
        return float(result) if isinstance(result, bool) else result

    def _arguments(self, row: VerifyRow, ground_truth: Mapping[str, Json]) -> dict[str, Any]:
        is_chat = not isinstance(row.prompt, str)
        prompt: str | list[dict[str, str]] = (
            row.prompt if isinstance(row.prompt, str) else [asdict(turn) for turn in row.prompt]
        )
        columns: dict[str, Any] = {**row.metadata, **ground_truth}
        if self.convention is Convention.TRL:
            answer = [{"role": "assistant", "content": row.completion}]
            return self._taken(
                {
                    **{name: [value] for name, value in columns.items()},
                    "prompts": [prompt],
                    "completions": [answer if is_chat else row.completion],
                }
            )
        if self.convention is Convention.VERL:
            truth = ground_truth.get("ground_truth", ground_truth.get("answer"))
            return self._taken(
                {
                    "data_source": columns.get("data_source", ""),
                    "solution_str": row.completion,
                    "ground_truth": truth,
                    "extra_info": ground_truth.get("extra_info", dict(row.metadata)),
                }
            )
        facts = {
            "prompt": prompt,
            "metadata": dict(row.metadata),
            "finish_reason": row.finish_reason.value,
        }
        return self._taken({**facts, **columns, self._completion_name: row.completion})

    def _taken(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self._takes_all:
            return arguments
        return {name: value for name, value in arguments.items() if name in self._named}

    def _required(self) -> list[str]:
        return [name for name, one in self._named.items() if one.default is one.empty]


def load_function(place: str) -> Callable[..., Any]:
    """Import ``path.py:name`` or ``module:name``.

    A path is relative to the folder that the command runs in. The folder of the file is put at the
    end of ``sys.path``, so that it may import its neighbours.

    Raises:
        ValueError: It cannot be imported, or is no function; the text says why.
    """
    module_name, _, name = place.rpartition(":")
    if not module_name or not name.isidentifier():
        raise ValueError("must be written `path.py:function` or `module:function`")
    path = source_path(place)
    if path is not None and not path.is_file():
        raise ValueError(
            f"there is no file {path}; the path starts in the folder that rlvr runs in"
        )
    try:
        module = importlib.import_module(module_name) if path is None else _of_file(path)
    except (Exception, SystemExit) as exc:
        raise ValueError(f"{module_name} cannot be imported: {exception_text(exc)}") from exc
    function: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(function):
        defined = [key for key, one in vars(module).items() if inspect.isfunction(one)]
        raise ValueError(
            f"{module_name} has no function {name!r}; it has {listed(defined) or 'none'}"
        )
    return function


def source_path(place: str) -> Path | None:
    """Return the file of ``path.py:name``, absolute; None for ``module:name``."""
    file = place.rpartition(":")[0]
    return Path(file).expanduser().resolve() if file.endswith(".py") else None


def _of_file(path: Path) -> ModuleType:
    name = f"rlvr_python_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python source")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _parameters(function: Callable[..., Any], place: str) -> Mapping[str, inspect.Parameter]:
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError) as exc:
        raise ValueError(f"{place} does not say what its parameters are: {exc}") from exc
    only_by_position = [name for name, one in found.items() if one.kind is one.POSITIONAL_ONLY]
    if only_by_position:
        raise ValueError(f"{place} takes {listed(only_by_position)} by position only, not by name")
    return found


def _guess(parameters: Mapping[str, inspect.Parameter], place: str) -> Convention:
    if "completions" in parameters:
        return Convention.TRL
    if "solution_str" in parameters:
        return Convention.VERL
    if "completion" in parameters:
        return Convention.PLAIN
    raise ValueError(
        f"{place} has the parameters {listed(parameters) or 'none'}, which do not tell how to call "
        "it; say `signature: trl`, `verl` or `plain`"
    )


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
