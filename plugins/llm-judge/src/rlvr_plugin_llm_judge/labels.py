"""What ``calibrate`` is given: the settings of a judge, and labelled answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlvr_core.api import DataError, Json, Message, Prompt, StackError, read_json
from rlvr_core.api.plugin import RESERVED_CONFIG_KEYS, normalised
from rlvr_plugin_llm_judge.rubric import Criterion
from rlvr_plugin_llm_judge.verifier import Settings, Truth

PLUGIN = "llm-judge"
_SHOWN_PROBLEMS = 10


class _Turn(BaseModel):
    role: str
    content: str


class Labelled(BaseModel):
    """One line of the file of labelled answers; more keys may stand there."""

    model_config = ConfigDict(frozen=True)

    completion: str
    expected: float = Field(ge=0, le=1, allow_inf_nan=False)
    """The score that is right. At the pass mark or above it, the answer should pass."""
    prompt: str | tuple[_Turn, ...] = ""
    ground_truth: Truth = Truth()
    criteria: dict[str, bool | int] | None = None
    """The right mark of each criterion."""

    def as_prompt(self) -> Prompt:
        """Return the prompt as verifiers see it."""
        if isinstance(self.prompt, str):
            return self.prompt
        return tuple(Message(turn.role, turn.content) for turn in self.prompt)


def read_settings(path: Path, name: str | None) -> Settings:
    """Return the settings of the judge in a stack file, or in a file that holds nothing else.

    What is being calibrated needs no calibration, so that the one it names is left out.

    Args:
        path: YAML or JSON.
        name: Of the verifier, where a stack has several judges.

    Raises:
        StackError: RLVR-S101 or RLVR-S102, the file holds no settings of a judge.
    """
    try:
        written = yaml.safe_load(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise StackError("RLVR-S101", f"{path} cannot be read", cause=str(error)) from error
    if isinstance(written, dict) and "verifiers" in written:
        written = _of_the_stack(path, written["verifiers"], name)
    if not isinstance(written, dict):
        raise _not_allowed(path, "the settings of a judge are a mapping of keys to values")
    kept = {
        key: value
        for key, value in written.items()
        if key not in RESERVED_CONFIG_KEYS and key != "calibration"
    }
    try:
        return Settings.model_validate(kept)
    except ValidationError as error:
        raise _not_allowed(path, "\n".join(_problems(error))) from None


def read_labelled(path: Path, rubric: Sequence[Criterion]) -> list[Labelled]:
    """Return the labelled answers of a file of JSON lines.

    Raises:
        DataError: RLVR-D101 or RLVR-D102, it cannot be read or some lines cannot be used.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("RLVR-D101", f"{path} could not be read", cause=str(error)) from error
    rows, problems = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = Labelled.model_validate(read_json(line))
            problems += [f"line {number}: {problem}" for problem in _odd_marks(row, rubric)]
            rows.append(row)
        except ValidationError as error:
            problems += [f"line {number}: {problem}" for problem in _problems(error)]
        except ValueError as error:
            problems.append(f"line {number}: not JSON: {error}")
    if not rows and not problems:
        problems.append("it holds no rows")
    if problems:
        shown = problems[:_SHOWN_PROBLEMS]
        more = [f"… and {len(problems) - len(shown)} more"] if len(problems) > len(shown) else []
        raise DataError(
            "RLVR-D102",
            f"labelled rows of {path} are not usable",
            cause="\n".join([*shown, *more]),
            fix='a row is {"prompt": "…", "completion": "…", "ground_truth": {…}, "expected": 0 or '
            '1}, with "criteria" for a rubric of several',
        )
    return rows


def _of_the_stack(path: Path, verifiers: Any, name: str | None) -> Any:
    """Return the settings of the only judge in a stack, or of the one that is called `name`."""
    entries = verifiers if isinstance(verifiers, list) else []
    named = [pair for entry in entries if isinstance(entry, dict) for pair in entry.items()]
    judges = {
        str(key): value
        for key, value in named
        if isinstance(value, dict) and normalised(str(value.get("plugin", key))) == PLUGIN
    }
    if name is not None:
        judges = {key: value for key, value in judges.items() if key == name}
    if len(judges) != 1:
        found = f"it has {', '.join(judges)}" if judges else "it has none"
        asked = f" called {name!r}" if name is not None else ""
        raise _not_allowed(
            path, f"one judge{asked} was looked for, and {found}; --verifier says which"
        )
    return next(iter(judges.values()))


def _odd_marks(row: Labelled, rubric: Sequence[Criterion]) -> list[str]:
    levels = {criterion.name: criterion.levels for criterion in rubric}
    found = []
    for name, mark in (row.criteria or {}).items():
        if name not in levels:
            found.append(f"criteria.{name}: the rubric has no such criterion")
        elif not 0 <= mark <= levels[name]:
            allowed = "true or false" if levels[name] == 1 else f"0 to {levels[name]}"
            found.append(f"criteria.{name}: must be {allowed}")
    return found


def _problems(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _not_allowed(path: Path, cause: Json) -> StackError:
    return StackError("RLVR-S102", f"{path} holds no settings of a judge", cause=cause)
