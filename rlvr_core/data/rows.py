"""From one raw record to a `Row`, or to everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from rlvr_core.api.errors import PluginError, did_you_mean, listed
from rlvr_core.api.plugin import ROUTING_KEY
from rlvr_core.api.rollouts import Message, Prompt, Row
from rlvr_core.api.verdicts import Json
from rlvr_core.config.wording import keys_of, problems_of
from rlvr_core.data.read import Record, faults_of
from rlvr_core.data.route import Routes

KEYS = ("id", "prompt", "verifier", "metadata")
ROLES = ("system", "user", "assistant")

_FUNCTION_KEY = re.compile(r"(^|_)(fn|func|function|lambda|callable)$", re.IGNORECASE)
_CHECK_KEY = re.compile(r"(^|_)(check|checker|predicate|condition|verify)$", re.IGNORECASE)
_PLAIN_NAME = re.compile(r"[\w.:-]*")
_SOURCE = re.compile(
    r"\blambda\b[^:\n]*:|^\s*(async\s+)?def\s+\w+\s*\(|^\s*(import|from)\s+\w|\b(exec|eval)\s*\(",
    re.MULTILINE,
)


class RowReader:
    """Turns records into rows, and remembers the ids it has seen."""

    def __init__(self, split: str, routes: Routes | None) -> None:
        """Without `routes`, rows are checked for their form only and keep the type as written."""
        self._split = split
        self._routes = routes
        self._place_of_id: dict[str, str] = {}

    def read(self, record: Record) -> tuple[Row | None, list[str]]:
        """Return the row, or None and every problem of the record."""
        if record.problem is not None:
            return None, [record.problem]
        value = record.value
        if not isinstance(value, dict):
            hint = "; write one object a line" if isinstance(value, list) else ""
            return None, [f"must be an object with a prompt and a verifier{hint}"]
        problems = list(faults_of(value)) or list(_form_problems(value))
        row_id = value.get("id", f"{self._split}-{record.line}")
        problems += self._id_problems(row_id, record.where)
        verifier, ground_truth, more = self._route(value.get("verifier"))
        problems += more
        if problems:
            return None, problems
        return Row(
            id=str(row_id),
            prompt=_prompt(value["prompt"]),
            verifier=verifier,
            ground_truth=ground_truth,
            metadata=value.get("metadata") or {},
        ), []

    def _id_problems(self, row_id: Json, where: str) -> Iterator[str]:
        if isinstance(row_id, bool) or not isinstance(row_id, str | int) or row_id == "":
            yield "id must be a string that is not empty"
            return
        first = self._place_of_id.setdefault(str(row_id), where)
        if first != where:
            yield f"the id {str(row_id)!r} already stands in {first}"

    def _route(self, block: Json) -> tuple[str, dict[str, Json], list[str]]:
        """Return the verifier's instance name, the ground truth, and the problems of both."""
        if not isinstance(block, dict) or not isinstance(block.get(ROUTING_KEY), str):
            return "", {}, []
        written = block[ROUTING_KEY]
        truth = {key: value for key, value in block.items() if key != ROUTING_KEY}
        problems = list(_source_problems(truth, "verifier"))
        if self._routes is None:
            return written, _renamed(truth, None), problems
        name, problem = self._routes.find(written)
        if problem:
            return "", {}, [*problems, problem]
        model = self._routes.models[name]
        truth = _renamed(truth, model)
        # A key that is refused for what it holds would be reported again as unknown.
        return name, truth, problems or _truth_problems(truth, model, name)


def _form_problems(value: Mapping[str, Json]) -> Iterator[str]:
    for key in value:
        if key not in KEYS:
            guess = did_you_mean(key, KEYS)
            yield f"unknown key {key!r}{guess or '; what is known about a row goes into metadata'}"
    if value.get("prompt") is None:
        yield "has no prompt"
    else:
        yield from _prompt_problems(value["prompt"])
    if value.get("verifier") is None:
        yield 'has no verifier; write "verifier": {"type": …, …}'
    elif not isinstance(value["verifier"], dict):
        yield 'verifier must be an object such as {"type": …, …}'
    elif not isinstance(value["verifier"].get(ROUTING_KEY), str):
        yield "verifier.type must name a verifier"
    if not isinstance(value.get("metadata"), dict | None):
        yield "metadata must be an object"


def _prompt_problems(prompt: Json) -> Iterator[str]:
    if isinstance(prompt, str):
        if not prompt.strip():
            yield "prompt is empty"
        return
    if not isinstance(prompt, list):
        yield "prompt must be a string, or a list of {role, content} messages"
        return
    if not prompt:
        yield "prompt is an empty list"
        return
    broken = False
    for index, message in enumerate(prompt):
        for problem in _message_problems(message):
            broken = True
            yield f"prompt[{index}] {problem}"
    if not broken and prompt[-1]["role"] != "user":
        yield f"prompt ends with a turn of the {prompt[-1]['role']}; the last must be the user's"


def _message_problems(message: Json) -> Iterator[str]:
    if not isinstance(message, dict):
        yield "must be an object {role, content}"
        return
    if message.get("role") not in ROLES:
        yield f"has role {message.get('role')!r}; known: {', '.join(ROLES)}"
    if not isinstance(message.get("content"), str):
        yield "content must be a string"
    elif not message["content"].strip():
        yield "content is empty"
    unknown = message.keys() - {"role", "content"}
    if unknown:
        yield f"holds unknown keys: {listed(unknown)}"


def _prompt(prompt: Json) -> Prompt:
    if isinstance(prompt, str):
        return prompt
    return tuple(Message(message["role"], message["content"]) for message in prompt)


def _renamed(truth: dict[str, Json], model: type[BaseModel] | None) -> dict[str, Json]:
    """Accept ``expected_answer`` for ``answer``, as other collections write it."""
    fields = ["answer"] if model is None else keys_of(model)
    is_meant = "answer" in fields and "expected_answer" not in fields
    if not is_meant or "answer" in truth:
        return truth
    return {("answer" if key == "expected_answer" else key): item for key, item in truth.items()}


def _truth_problems(truth: Mapping[str, Json], model: type[BaseModel], name: str) -> list[str]:
    try:
        model.model_validate(truth)
    except ValidationError as error:
        return [
            f"{_path(('verifier', *problem.loc))} {problem.message}"
            for problem in problems_of(error, model)
        ]
    except Exception as error:
        raise PluginError(
            "RLVR-P106",
            f"the ground-truth model of {name!r} raised {type(error).__name__}",
            origin=f"{model.__module__}.{model.__qualname__}",
            cause=str(error),
            fix="a validator of a pydantic model may raise ValueError only",
        ) from error
    return []


def _path(parts: tuple[Any, ...]) -> str:
    text = ".".join(str(part) for part in parts)
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", text)


def _source_problems(value: Json, path: str) -> Iterator[str]:
    """Yield the keys whose text somebody would have to execute as a program."""
    items: list[tuple[str, Json]] = []
    if isinstance(value, dict):
        items = [(f"{path}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    for place, item in items:
        key = place.rpartition(".")[2]
        if isinstance(item, str) and _would_run(key, item):
            yield (
                f"{place} holds source text, which rlvr never executes from data; "
                "write the check as a verifier plugin and give it values here"
            )
        else:
            yield from _source_problems(item, place)


def _would_run(key: str, text: str) -> bool:
    if _FUNCTION_KEY.search(key):
        return not _PLAIN_NAME.fullmatch(text.strip())
    return bool(_CHECK_KEY.search(key) and _SOURCE.search(text))
