"""The version stamped on verdicts: it changes when anything changes that may change a verdict.

That is the plugin's source, its settings, the versions of what it depends on, the plugin API, the
version of Python, and the same of every verifier that it asks. Where files lie, compiled copies of
them and the order of a hash table are not in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rlvr_core.api.plugin import API_VERSION, Verifier
from rlvr_core.api.verdicts import Json
from rlvr_core.plugins.ref import PluginRef

_CORE = "rlvr-core"
_CORE_PACKAGE = __name__.partition(".")[0]
_BLOCK_BYTES = 1 << 20


def stamped_version(ref: PluginRef) -> str:
    """Return ``<distribution version>+<12 hex digits of a SHA-256>``.

    The class of `ref` must have been imported. An editable install is read where its files are.
    """
    parts = {
        "source": source_digest(ref.value.partition(":")[0].strip()),
        "contract": _folder_digest(Path(sys.modules[f"{_CORE_PACKAGE}.api"].__path__[0])),
        "settings": dict(ref.config),
        "more": _more(ref),
        "dependencies": dependency_versions(ref.distribution),
        "members": [[member.entry.name, stamped_version(member.ref)] for member in ref.members],
        "api": API_VERSION,
        "python": [platform.python_implementation(), *platform.python_version_tuple()[:2]],
    }
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=repr)
    return f"{ref.version}+{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _more(ref: PluginRef) -> Json:
    """Return what the class of `ref` itself counts among the reasons for a verdict."""
    cls = ref.load_class()
    if not issubclass(cls, Verifier) or cls.version_parts is Verifier.version_parts:
        return None
    return cls.version_parts(cls.Config.model_validate(dict(ref.config)))


def source_digest(module: str) -> str:
    """Return a hex SHA-256 of the files of the package that a module belongs to, data included.

    It is the outermost package with files of its own: a namespace that distributions share is not
    hashed with all that lies in it. Of core it is the folder of the module: what lies elsewhere
    there decides no verdict of it.
    """
    names = module.split(".")
    packages = [".".join(names[:length]) for length in range(1, len(names) + 1)]
    if names[0] == _CORE_PACKAGE:
        packages = packages[1:]
    for name in packages:
        package = sys.modules[name]
        if hasattr(package, "__path__") and _file_of(package) is not None:
            return _folder_digest(Path(package.__path__[0]))
    file = _file_of(sys.modules[module])
    return "" if file is None else _digest([(file.name, file)])


def dependency_versions(name: str) -> dict[str, str]:
    """Return the installed version of everything that a distribution declares to need.

    Their own needs count too, since a parser may sit two steps away. Not followed are optional
    extras that nobody asks for, and rlvr-core: its version counts, but what it needs serves its
    other work.
    """
    found: dict[str, str] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(canonicalize_name(name), frozenset())]
    seen = set(waiting)
    while waiting:
        current, extras = waiting.pop()
        try:
            installed = distribution(current)
        except PackageNotFoundError:
            found[current] = ""
            continue
        found[current] = installed.version
        if current == _CORE:
            continue
        for needed in _needs(installed.requires or (), extras):
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    del found[canonicalize_name(name)]
    return found


def _needs(
    requirements: list[str] | tuple[()], extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield (name, extras) of the requirements that hold in this environment."""
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        # The marker of a requirement may ask for one extra; without any it is compared with "".
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _folder_digest(folder: Path) -> str:
    files = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and not _is_by_product(path.relative_to(folder))
    }
    return _digest(sorted(files.items()))


def _is_by_product(path: Path) -> bool:
    is_hidden = any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    return is_hidden or path.suffix in (".pyc", ".pyo")


def _digest(files: list[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        with path.open("rb") as file:
            content = hashlib.sha256()
            while block := file.read(_BLOCK_BYTES):
                content.update(block)
        digest.update(f"{name}\0{content.hexdigest()}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _file_of(module: ModuleType) -> Path | None:
    """Return the file of a module; None for a namespace, and for what is not loaded from a file."""
    file = getattr(module, "__file__", None)
    return Path(file) if file and Path(file).is_file() else None
