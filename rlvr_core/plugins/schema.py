"""The JSON Schema of a stack file, with the settings of every installed plugin.

Which plugins exist is known at run time only, so the schema is built then. Editors complete
third-party keys with it.
"""

from __future__ import annotations

from typing import Any

from rlvr_core.api.errors import RlvrError
from rlvr_core.api.plugin import Family, Plugin
from rlvr_core.api.verdicts import Json
from rlvr_core.config.models import PluginEntry, Stack
from rlvr_core.config.rules import VERIFIER_KEYS
from rlvr_core.plugins.index import InstalledPlugin, PluginIndex
from rlvr_core.plugins.loader import Wanted, load_classes


def stack_schema(index: PluginIndex) -> tuple[dict[str, Json], list[RlvrError]]:
    """Return the schema, and the errors of plugins that could not be loaded.

    A plugin without a class is in the schema by its name, with any settings.
    """
    schema: dict[str, Json] = Stack.model_json_schema()
    definitions: dict[str, Json] = schema["$defs"]
    entry_schema = definitions.pop("PluginEntry")
    errors: list[RlvrError] = []
    for family in Family:
        settings = {}
        for plugin in index.of_family(family):
            cls = _loaded(plugin, errors)
            settings[plugin.name] = _settings(plugin.name, cls, family, entry_schema, definitions)
        schema["properties"][family.value]["items"] = {"$ref": f"#/$defs/{family.value}"}
        definitions[family.value] = _entry(settings)
    schema["properties"]["control"] = {"anyOf": [definitions["verifiers"], {"type": "null"}]}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema, errors


def _loaded(plugin: InstalledPlugin, errors: list[RlvrError]) -> type[Plugin] | None:
    try:
        [cls] = load_classes([Wanted(plugin, plugin.ref(plugin.name, {}), "the schema")])
    except RlvrError as error:
        errors.append(error)
        return None
    return cls


def _settings(
    name: str,
    cls: type[Plugin] | None,
    family: Family,
    entry_schema: dict[str, Json],
    definitions: dict[str, Json],
) -> dict[str, Json]:
    words = ("plugin", *(VERIFIER_KEYS if family is Family.VERIFIERS else ()))
    core = {word: entry_schema["properties"][word] for word in words}
    if cls is None:
        return {"type": ["object", "null"], "properties": core}
    own: dict[str, Any] = cls.Config.model_json_schema(ref_template=f"#/$defs/{name}.{{model}}")
    for inner, definition in own.pop("$defs", {}).items():
        definitions[f"{name}.{inner}"] = definition
    own["properties"] = {**own.get("properties", {}), **core}
    return own if own.get("required") else {"anyOf": [own, {"type": "null"}]}


def _entry(settings: dict[str, Json]) -> dict[str, Json]:
    """Return the schema of one entry: a name, or one name with settings."""
    pattern = PluginEntry.model_json_schema()["properties"]["name"]["pattern"]
    renamed = {"type": "object", "required": ["plugin"]}
    return {
        "anyOf": [
            {"enum": list(settings)},
            {"type": "string", "pattern": pattern},
            {
                "type": "object",
                "properties": settings,
                "additionalProperties": renamed,
                "minProperties": 1,
                "maxProperties": 1,
            },
        ]
    }
