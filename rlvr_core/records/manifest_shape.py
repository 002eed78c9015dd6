"""What the entries of a manifest must look like for a run to be read or continued."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rlvr_core.api.verdicts import Json

_Pair = Annotated[list[Json], Field(min_length=2, max_length=2)]
"""Before and now."""


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True)


class _Plugin(_Shape):
    name: str
    distribution: str = ""
    digest: str = ""


class _Ended(_Shape):
    at: str


class _Resume(_Shape):
    at_step: int
    changed: dict[str, _Pair] = {}
    surroundings: dict[str, _Pair] = {}


class _Budget(_Shape):
    steps: int | None = None


class _Manifest(_Shape):
    """The entries that are read again; each may be absent, and others say what they like."""

    run: str = ""
    status: str = ""
    stack_file: Annotated[str, Field(pattern=r"^stack(\.\d+)?\.yaml$")] = "stack.yaml"
    rlvr_core: str = ""
    model: str = ""
    initial_weights: str = ""
    stack_sha256: str = ""
    control: _Plugin | None = None
    ended: _Ended | None = None
    plugins: list[_Plugin] = []
    resumes: list[_Resume] = []
    budget: _Budget = _Budget()
    data: dict[str, dict[str, Json]] = {}
    hardware: dict[str, Json] = {}
    computation: dict[str, Json] = {}


def shape_problem(manifest: Json) -> str | None:
    """Return what is wrong with the shape of a manifest, in one line; None when nothing is."""
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
