"""Read code blocks out of Markdown, and run them the way a reader would."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[a-z]+)(?:: (?P<value>[\w./-]+))? -->\n)?"
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    code: str
    mark: str
    """What the comment above the block says of it; see test_code_blocks.py."""
    value: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def documents() -> list[Path]:
    """Return every page that people read."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/*.md")])


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(
            page=page,
            line=text.count("\n", 0, found.start("language")) + 1,
            language=found["language"],
            code=found["code"],
            mark=found["mark"] or "",
            value=found["value"] or "",
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """An environment in which rlvr and its plugins are installed, for one reader to type into."""

    binaries: Path
    variables: dict[str, str]

    def run(self, command: list[str], folder: Path) -> None:
        """Run a command in `folder`, and fail with its output when it fails."""
        done = subprocess.run(
            command,
            cwd=folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def bash(self, code: str, folder: Path) -> None:
        self.run(["bash", "-euo", "pipefail", "-c", code], folder)

    def python(self, code: str, folder: Path) -> None:
        self.run([str(self.binaries / "python"), "-c", code], folder)


def make_reader(folder: Path, cache: Path, variables: dict[str, str]) -> Reader:
    """Make an environment that sees what the tests see and takes installations of its own."""
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    binaries = folder / "venv" / "bin"
    own = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
    # A .pth file is read for its own lines only, so those of the tests' editable installs go along.
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    Path(own, "tests.pth").write_text("\n".join(dict.fromkeys([str(ROOT), *paths])))
    python = binaries / "python"
    _script(binaries / "rlvr", f'{python} -c "from rlvr_core.cli.main import main; main()" "$@"')
    _script(binaries / "pip", f'{sys.executable} -m pip --python {python} "$@"')
    home = folder / "home"
    home.mkdir()
    return Reader(
        binaries,
        {
            **variables,
            "PATH": f"{binaries}:{variables['PATH']}",
            "PYTHONPATH": "",
            "HOME": str(home),
            "RLVR_CACHE": str(cache),
            "OMP_NUM_THREADS": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the other way round: no isolation
        },
    )


def _script(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\nexec {command}\n")
    path.chmod(0o755)
    assert shutil.which(str(path))
