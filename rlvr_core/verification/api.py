"""Judge rows with one installed verifier, without a stack: ``rlvr_core.verify``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from rlvr_core.api.errors import RlvrError, StackError
from rlvr_core.api.plugin import Family
from rlvr_core.api.verdicts import Json, Verdict
from rlvr_core.config.models import OnTimeout, PluginEntry, VerificationSection
from rlvr_core.plugins.index import PluginIndex
from rlvr_core.plugins.ref import PluginRef
from rlvr_core.plugins.resolve import resolve_plugin
from rlvr_core.verification.engine import VerifyEngine, judges_nothing
from rlvr_core.verification.given import GivenRow, parse_rows, refuse


def verify(
    plugin: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    config: Mapping[str, Json] | None = None,
    workers: int | None = None,
    timeout_s: float = 10.0,
    on_timeout: OnTimeout = "mask",
) -> list[Verdict]:
    """Return one verdict a row, in order; see `rlvr_core.verify`."""
    settings = supervision(
        workers=workers, timeout_s=timeout_s, on_timeout=on_timeout, max_error_rate=1.0
    )
    labelled = [(f"row {number}", row) for number, row in enumerate(rows, 1)]
    return verify_labelled(plugin, labelled, config or {}, settings)


def supervision(**given: Any) -> VerificationSection:
    """Return the settings of supervised verification, given by a caller in Python.

    Raises:
        StackError: RLVR-S106, one of them is not allowed.
    """
    try:
        return VerificationSection(**given)
    except ValidationError as exc:
        from rlvr_core.config.wording import problems_of, said_of

        raise StackError(
            "RLVR-S106",
            "these arguments are not allowed",
            cause="\n".join(said_of(problems_of(exc, VerificationSection))),
            fix="give other values, or leave them out",
        ) from None


def verify_labelled(
    plugin: str,
    rows: Sequence[tuple[str, Any]],
    config: Mapping[str, Json],
    settings: VerificationSection,
    *,
    origin: str | None = None,
    problems: Sequence[str] = (),
) -> list[Verdict]:
    """Judge rows that have names of their own.

    Args:
        plugin: Registered name of a verifier.
        rows: Labels and rows, in order.
        config: The plugin's settings; a row's own ``config`` overrides them key by key.
        settings: Workers, deadline and what a row is that passes it twice.
        origin: Where the rows came from, for messages.
        problems: Faults that were found before, reported together with those of the rows.

    Raises:
        DataError: Rows are not usable; all of them in one message (RLVR-D102).
        StackError: No such verifier is installed, or its settings are not allowed.
        PluginError: It cannot be imported or built, or its workers do not start.
    """
    found = list(problems)
    given = parse_rows(rows, found)
    variants = _variants(plugin, config, given, found)
    refuse(found, len(rows) + len(problems), origin)
    if not given:
        return []
    plain_name = next(iter(variants.values())).plugin
    entries = [(ref, _entry(ref)) for ref in variants.values()]
    with VerifyEngine(entries, settings) as engine:
        if not engine.verifiers:
            raise judges_nothing(plain_name, entries[0][0].blame)
        names = [variants[_key(row.config)].name for row in given]
        for name, row in zip(names, given, strict=True):
            engine.submit(name, row.raw)
        # Every row is under way before the first is waited for.
        return [
            replace(engine.judge(name, [row.raw])[0], verifier=plain_name)
            for name, row in zip(names, given, strict=True)
        ]


def _variants(
    plugin: str, config: Mapping[str, Json], rows: Sequence[GivenRow], problems: list[str]
) -> dict[str, PluginRef]:
    """Return an instance of the plugin for each distinct `config` of the rows, plain one first."""
    index = PluginIndex.scan()
    plain = resolve_plugin(Family.VERIFIERS, plugin, config, index=index)
    variants = {_key({}): plain}
    for row in rows:
        key = _key(row.config)
        if key in variants:
            continue
        name = f"{plain.plugin}.{len(variants)}"
        try:
            variants[key] = resolve_plugin(
                Family.VERIFIERS, plugin, {**config, **row.config}, name, index=index
            )
        except RlvrError as exc:
            problems.append(f"{row.label}: config: {exc.cause or exc.message}")
            variants[key] = plain
    return variants


def _entry(ref: PluginRef) -> PluginEntry:
    return PluginEntry.model_validate({"name": ref.name, "plugin": ref.plugin, "config": {}})


def _key(config: Mapping[str, Json]) -> str:
    return json.dumps(config, sort_keys=True, default=str)
