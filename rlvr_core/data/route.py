"""Which verifier of the stack a row means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import BaseModel

from rlvr_core.api.errors import did_you_mean, listed
from rlvr_core.api.plugin import normalised


@dataclass(frozen=True, slots=True)
class Routes:
    """The verifiers of a stack, by instance name."""

    models: Mapping[str, type[BaseModel]]
    """Instance name to the plugin's `GroundTruth`."""
    plugin_names: Mapping[str, str] = field(default_factory=dict)
    """Instance name to the plugin's registered name, where the two differ."""

    def find(self, written: str) -> tuple[str, str]:
        """Return the instance that a row's ``verifier.type`` means, and what is wrong, or ``""``.

        An instance's own name comes first, as written, then with ``-``, ``_`` and case folded; then
        the name of its plugin, in the same two ways.
        """
        if written in self.models:
            return written, ""
        plugin_of = {name: self.plugin_names.get(name, name) for name in self.models}
        searches = (
            [name for name in self.models if normalised(name) == normalised(written)],
            [name for name, plugin in plugin_of.items() if plugin == written],
            [name for name, of in plugin_of.items() if normalised(of) == normalised(written)],
        )
        for found in searches:
            if len(found) == 1:
                return found[0], ""
            if found:
                return "", f"verifier.type {written!r} could mean {_or(found)}; name one of them"
        known = listed(self.models) or "none"
        guess = did_you_mean(written, {*self.models, *plugin_of.values()})
        return "", f"no verifier {written!r} in the stack{guess} (known: {known})"


def _or(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in sorted(names))
