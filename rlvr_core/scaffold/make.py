"""Write the project of a new plugin."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from rlvr_core.api.errors import StackError
from rlvr_core.api.plugin import API_VERSION, Family
from rlvr_core.plugins.index import PluginIndex

FAMILIES = {
    "verifier": Family.VERIFIERS,
    "sampler": Family.SAMPLERS,
    "advantage": Family.ADVANTAGE,
    "monitor": Family.MONITORS,
}
"""What a plugin is called -> its family."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40


def make_project(name: str, family: str, folder: Path | None = None) -> tuple[Path, list[str]]:
    """Write a project, and return its folder and the names of its files.

    Args:
        name: Of the plugin, as a stack will write it.
        family: A key of `FAMILIES`.
        folder: To be made. Default: ``rlvr-plugin-NAME`` in the current folder.

    Raises:
        StackError: RLVR-S106, the name cannot be one, is taken, or the folder is not empty or
            cannot be written.
    """
    _check_name(name)
    folder = Path(f"rlvr-plugin-{name}") if folder is None else folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StackError(
            "RLVR-S106",
            f"{folder} is there already",
            cause="nothing is overwritten",
            fix="give another folder with --out, or remove this one",
        )
    files = rendered(name, family)
    try:
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    except OSError as error:
        raise StackError(
            "RLVR-S106",
            f"{folder} cannot be written",
            cause=str(error),
            fix="give another folder with --out, or correct the permissions",
        ) from error
    return folder, sorted(files)


def rendered(name: str, family: str) -> dict[str, str]:
    """Return the text of each file of a project by its path."""
    environment = Environment(
        loader=PackageLoader("rlvr_core.scaffold"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Python, TOML and Markdown; the names were checked
    )
    module = f"rlvr_plugin_{name.replace('-', '_')}"
    facts = {
        "name": name,
        "module": module,
        "class_name": "".join(part.capitalize() for part in name.split("-")),
        "distribution": f"rlvr-plugin-{name}",
        "family": family,
        "section": FAMILIES[family].value,
        "group": FAMILIES[family].entry_point_group,
        "api_version": API_VERSION,
    }
    files = {}
    for template in environment.list_templates():
        part, _, path = template.partition("/")
        if part in ("common", family):
            path = path.replace("MODULE", module).removesuffix(".j2")
            files[path] = environment.get_template(template).render(facts)
    return files


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise StackError(
            "RLVR-S106",
            f"{name!r} cannot be the name of a plugin",
            cause=f"a name has small letters, digits and single dashes between them, begins with a "
            f"letter and is at most {_LONGEST} characters long",
            fix="rlvr plugins new my-plugin",
        )
    taken = PluginIndex.scan().named(name)
    if taken:
        raise StackError(
            "RLVR-S106",
            f"the name {name!r} is taken by {taken[0].blame}, which is installed",
            fix="choose another name: a stack finds plugins by it",
        )
