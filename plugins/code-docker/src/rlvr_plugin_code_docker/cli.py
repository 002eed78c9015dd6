"""The command ``rlvr-code-docker``: makes the sandbox image."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rlvr_core.api import RlvrError
from rlvr_plugin_code_docker.image import ImageMaker


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        maker = ImageMaker(options.backend)
        if options.image:
            image = maker.named(options.image)
        elif options.source == "host":
            image = maker.from_host(options.tag)
        else:
            image = maker.from_debootstrap(options.tag, options.suite, options.mirror)
        maker.check(image)
    except RlvrError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"- code-docker: {{backend: {options.backend}, image: {image}}}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlvr-code-docker")
    verbs = parser.add_subparsers(required=True)
    build = verbs.add_parser(
        "build-image",
        help="make the sandbox image, without an image registry, and print the line for a stack",
    )
    build.add_argument("--backend", choices=["docker", "podman"], default="docker")
    build.add_argument(
        "--from",
        dest="source",
        choices=["host", "debootstrap"],
        default="host",
        help="this machine's Python and what it loads, or a minimal Debian (needs root)",
    )
    build.add_argument(
        "--image", help="make nothing: check an image that the daemon has, and print its id"
    )
    build.add_argument("--tag", default="rlvr-code-sandbox", help="name of the image in the daemon")
    build.add_argument("--suite", default="bookworm", help="for debootstrap")
    build.add_argument("--mirror", help="for debootstrap; its own default otherwise")
    return parser


if __name__ == "__main__":
    sys.exit(main())
