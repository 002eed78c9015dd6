"""Say in plain words what pydantic found wrong."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rlvr_core.api.errors import closest, did_you_mean, shortened, unknown_kind
from rlvr_core.api.verdicts import Json
from rlvr_core.config.positions import Problem
from rlvr_core.config.yaml_source import Path, parse_scalar

_LIMITS = {
    "greater_than": ("must be greater than", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be less than", "lt"),
    "less_than_equal": ("must be at most", "le"),
    "multiple_of": ("must be a multiple of", "multiple_of"),
}
_KINDS = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a string",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
}


def problems_of(
    exc: ValidationError,
    model: type[BaseModel],
    prefix: Path = (),
    extra_keys: Collection[str] = (),
) -> list[Problem]:
    """Return what is wrong, in our words.

    Args:
        exc: What validating `model` raised.
        model: The model.
        prefix: Path of the validated data in the stack.
        extra_keys: Keys that are allowed beside the model's own at its top.
    """
    return [
        Problem(
            (*prefix, *_readable(detail)),
            _message(detail, model, extra_keys),
            is_about_key=detail["type"] in ("extra_forbidden", "missing"),
        )
        for detail in exc.errors(include_url=False)
    ]


def said_of(problems: Iterable[Problem], whole: str = "") -> list[str]:
    """Return one line for each problem: the key it is about, or `whole`, and what is wrong."""
    named = [(".".join(map(str, one.loc)) or whole, one.message) for one in problems]
    return [f"{name}: {message}" if name else message for name, message in named]


def unknown_key(key: str, allowed: Collection[str]) -> str:
    """Return the message for a key that is not one of `allowed`."""
    if not allowed:
        return "unknown key; no keys are allowed here"
    hint = did_you_mean(key, allowed, f"Allowed: {', '.join(allowed)}")
    return f"unknown key{hint}"


def keys_of(model: type[BaseModel]) -> list[str]:
    """Return the keys that `model` reads, in their order."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _message(detail: ErrorDetails, model: type[BaseModel], extra_keys: Collection[str]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        at_top = len(detail["loc"]) == 1
        parent = _model_at(model, detail["loc"][:-1])
        allowed = keys_of(parent) if parent is not None else []
        deeper = _deeper(str(detail["loc"][-1]), parent)
        if deeper:
            return f"unknown key here; did you mean {' or '.join(map(repr, deeper))}?"
        return unknown_key(str(detail["loc"][-1]), [*allowed, *(extra_keys if at_top else ())])
    if kind == "missing":
        return "is required, and missing"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", detail["msg"]))
    if kind == "union_tag_invalid":
        return unknown_kind(context["tag"], context["expected_tags"])
    got = f", got {_shown(detail['input'])}"
    if kind in _LIMITS:
        sentence, key = _LIMITS[kind]
        return f"{sentence} {context[key]:g}{got}"
    if kind in _KINDS:
        return _KINDS[kind] + got + _hint(kind, detail["input"])
    if kind in ("literal_error", "enum"):
        return _choice(context, detail["input"]) + got
    return _length(kind, context) or _sentence(detail["msg"]) + got


def _deeper(key: str, model: type[BaseModel] | None) -> list[str]:
    """Return the sections of `model` that know `key`, each as ``section.key``."""
    fields = model.model_fields if model is not None else {}
    return [
        f"{name}.{key}"
        for name, field in fields.items()
        if isinstance(field.annotation, type)
        and issubclass(field.annotation, BaseModel)
        and key in keys_of(field.annotation)
    ]


def _choice(context: Mapping[str, Any], value: Json) -> str:
    expected = str(context.get("expected", ""))
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    close = closest(str(value), words)
    hint = "" if close is None else f" (did you mean {close!r}?)"
    return f"must be {expected}{hint}"


def _length(kind: str, context: Mapping[str, Any]) -> str:
    least = context.get("min_length")
    if kind == "string_too_short" and least == 1:
        return "must not be empty"
    if kind == "too_short":
        return f"must hold at least {least} {'item' if least == 1 else 'items'}"
    if kind == "too_long":
        return f"may hold at most {context.get('max_length')} items"
    if kind == "string_pattern_mismatch":
        return f"must match the pattern {context.get('pattern')}"
    return ""


def _hint(kind: str, value: Json) -> str:
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if not isinstance(value, str):
        return ""
    if kind.startswith(("int", "float")) and isinstance(parse_scalar(value), int | float):
        return "; remove the quotes"
    if kind.startswith("bool") and value.lower() in ("yes", "no", "on", "off", "y", "n"):
        return " (yes, no, on and off are strings in YAML 1.2)"
    return ""


def _shown(value: Json) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        text = repr(value)
    else:
        text = json.dumps(value, default=repr, ensure_ascii=False)
    return shortened(text, 60)


def _sentence(message: str) -> str:
    return message[:1].lower() + message[1:]


def _readable(detail: ErrorDetails) -> Path:
    # pydantic marks a bad key of a mapping by a last part of its own.
    return detail["loc"][:-1] if detail["loc"][-1:] == ("[key]",) else detail["loc"]


def _model_at(model: type[BaseModel] | None, loc: Path) -> type[BaseModel] | None:
    for part in loc:
        if model is None:
            return None
        if isinstance(part, str):
            named = {field.alias or name: field for name, field in model.model_fields.items()}
            model = _model_in(named[part].annotation) if part in named else model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)
