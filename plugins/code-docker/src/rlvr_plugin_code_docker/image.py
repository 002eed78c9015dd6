"""Makes a sandbox image without any image registry.

An image is one layer with a Python interpreter and its standard library. It is put together here,
with sorted names and fixed owners, and handed to the daemon as an archive.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from rlvr_core.api import EnvironmentFault
from rlvr_plugin_code_docker.containers import ContainerBackend, daemon_address

BUILD_LIMIT_S = 600.0
CHECK_MEMORY_BYTES = 512 << 20
_LEFT_OUT = frozenset(
    [
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "idlelib",
        "idle_test",
        "tkinter",
        "turtledemo",
        "ensurepip",
        "lib2to3",
        "__pycache__",
        "pydoc_data",
    ]
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageMaker:
    """Makes images in one daemon.

    Args:
        backend: ``docker`` or ``podman``.
    """

    def __init__(self, backend: str) -> None:
        import docker

        self._backend = backend
        try:
            self._client: Any = docker.DockerClient(
                daemon_address(backend), version="auto", timeout=BUILD_LIMIT_S
            )
        except docker.errors.DockerException as error:
            raise EnvironmentFault(
                "RLVR-E101",
                f"the {backend} daemon does not answer at {daemon_address(backend)}",
                cause=str(error),
                fix=f"start the {backend} daemon",
            ) from None

    def from_host(self, tag: str) -> str:
        """Make an image of this machine's Python; return its id."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            copy_python(root)
            return self._load(root, tag)

    def from_debootstrap(self, tag: str, suite: str, mirror: str | None) -> str:
        """Make an image of a minimal Debian with Python; return its id. Needs root.

        Raises:
            EnvironmentFault: RLVR-E101, debootstrap is missing or failed.
        """
        found = shutil.which("debootstrap")
        if found is None:
            raise EnvironmentFault(
                "RLVR-E101",
                "debootstrap is not installed",
                fix="install it (apt install debootstrap), or use --from host",
            )
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            command = [found, "--variant=minbase", "--include=python3", suite, str(root)]
            ended = subprocess.run(  # noqa: S603 - our own command
                [*command, *([mirror] if mirror else [])],
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode:
                said = (ended.stdout + ended.stderr).strip()[-500:]
                raise EnvironmentFault("RLVR-E101", "debootstrap failed", cause=said)
            for part in ("var/cache/apt", "var/lib/apt/lists", "var/log", "dev", "proc", "sys"):
                shutil.rmtree(root / part, ignore_errors=True)
            return self._load(root, tag)

    def named(self, image: str) -> str:
        """Return the id of an image that the daemon already has.

        Raises:
            EnvironmentFault: RLVR-E101, it has no such image.
        """
        import docker

        try:
            return str(self._client.images.get(image).id)
        except docker.errors.DockerException as error:
            raise EnvironmentFault(
                "RLVR-E101", f"the daemon has no image {image!r}", cause=str(error)
            ) from None

    def check(self, image: str) -> None:
        """Make a container of the image, as the verifier does, and wait for its supervisor.

        Raises:
            EnvironmentFault: RLVR-E101, it does not come up.
        """
        backend = ContainerBackend(self._backend, image, CHECK_MEMORY_BYTES)
        try:
            backend.take().close()
        finally:
            backend.close()

    def _load(self, root: Path, tag: str) -> str:
        with tempfile.TemporaryFile() as archive:
            write_archive(root, tag, archive)
            archive.seek(0)
            self._client.images.load(archive)
        return self.named(tag)


def write_archive(root: Path, tag: str, archive: BinaryIO) -> None:
    """Write an image archive of the files below `root`, the same bytes for the same files."""
    with tempfile.TemporaryFile() as layer:
        _write_layer(root, layer)
        layer.seek(0)
        digest = hashlib.file_digest(layer, "sha256").hexdigest()
        settings = {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["python3"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created_by": "rlvr-code-docker build-image"}],
        }
        config = json.dumps(settings, sort_keys=True).encode()
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        manifest = [{"Config": name, "RepoTags": [f"{tag}:latest"], "Layers": ["layer.tar"]}]
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for member, content in (
                (name, config),
                ("manifest.json", json.dumps(manifest).encode()),
            ):
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
            info = tarfile.TarInfo("layer.tar")
            info.size = layer.seek(0, os.SEEK_END)
            layer.seek(0)
            tar.addfile(info, layer)


def copy_python(root: Path) -> None:
    """Copy this machine's interpreter, its standard library and what they load into `root`."""
    base = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = root / "usr/local/lib" / version
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True)
    shutil.copyfile(base, programs / version)
    (programs / version).chmod(0o755)
    (programs / "python3").symlink_to(version)
    source = Path(sysconfig.get_path("stdlib", vars=_base_paths()))
    shutil.copytree(source, library, symlinks=False, ignore=_left_out)
    for path in library.rglob("*.py"):
        _compile(path, library)
    loaded = {base, *(str(one) for one in source.rglob("lib-dynload/*.so"))}
    for needed in _libraries(sorted(loaded)):
        target = root / needed.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(needed, target)
        target.chmod(0o755)
    for name in ("tmp", "etc"):
        (root / name).mkdir(exist_ok=True)
    (root / "etc/passwd").write_text("nobody:x:65534:65534:nobody:/tmp:/nonexistent\n")
    # Docker gives the mount the rights of the folder that it hides.
    (root / "tmp").chmod(0o1777)
    for path in root.rglob("*"):
        os.utime(path, (0, 0), follow_symlinks=False)


def _base_paths() -> dict[str, str]:
    return {"installed_base": sys.base_prefix, "base": sys.base_prefix}


def _left_out(folder: str, names: list[str]) -> set[str]:
    configured = {name for name in names if name.startswith("config-") and not name.endswith(".py")}
    return {name for name in names if name in _LEFT_OUT} | configured


def _compile(path: Path, library: Path) -> None:
    """Compile a module so that its bytecode holds whatever time the file gets."""
    shown = f"/usr/local/lib/{library.name}/{path.relative_to(library)}"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    # A few files of the library are no valid Python on purpose.
    py_compile.compile(str(path), dfile=shown, doraise=False, quiet=2, invalidation_mode=mode)


def _libraries(binaries: list[str]) -> Iterator[str]:
    """Yield the shared libraries that programs need, the loader among them."""
    listing = subprocess.run(  # noqa: S603 - our own files
        ["ldd", *binaries],  # noqa: S607 - from the caller's PATH
        capture_output=True,
        text=True,
        check=False,
    )
    yield from sorted(set(re.findall(r"(?:=>\s|^\s*)(/\S+) \(0x", listing.stdout, re.M)))


def _write_layer(root: Path, layer: BinaryIO) -> None:
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            tar.add(path, path.relative_to(root).as_posix(), recursive=False, filter=_fixed)


def _fixed(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Give a file of the layer an owner that does not depend on who makes it."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = int(info.mtime)
    return info
