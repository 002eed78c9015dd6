"""Hostile text between fences that it cannot contain."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

OPENING, CLOSING = "⟦", "⟧"
TAG_DIGITS = 8

_IMITATED = str.maketrans({OPENING: "[", CLOSING: "]"})
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
# What chat templates are made of: a server may read it as the end of a turn although it stands in
# the middle of one. A space after the bracket takes that away and is plain to the reader.
_TEMPLATE = re.compile(
    r"<(?=[|｜])|<(?=/?(?:s|bos|eos|pad|unk|mask|cls|sep|start_of_turn|end_of_turn|im_start|im_end"
    r"|start_header_id|end_header_id)[>|])|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS)\])"
    r"|<(?=</?SYS>>)",
    re.I,
)


def cleaned(text: str) -> str:
    """Return text in which nothing looks like a fence or a chat template, and UTF-8 can carry.

    Fence brackets become plain ones, marks of chat templates get a space after their bracket,
    control characters (line feed and tab excepted) become spaces, lone surrogates U+FFFD.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_IMITATED)
    text = _SURROGATES.sub("\ufffd", _UNWRITABLE.sub(" ", text))
    return _TEMPLATE.sub(lambda found: f"{found[0]} ", text)


def tag_for(texts: Sequence[str]) -> str:
    """Return the tag of the fences around `texts`: hex digits that none of them holds.

    It is a hash of the texts themselves. So whoever writes one of them cannot know it, since it
    changes with every letter, and yet the same row gets the same prompt, and the same verdict, in
    every process and after every resume. A random tag would give neither.
    """
    joined = _joined(texts)
    digest = hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
    while digest[:TAG_DIGITS] in joined:
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest[:TAG_DIGITS]


def _joined(texts: Sequence[str]) -> str:
    return "\0".join(texts)


def block(name: str, text: str, tag: str) -> str:
    """Return a text between its fences."""
    return f"{OPENING}{name} {tag}{CLOSING}\n{text}\n{OPENING}end of {name} {tag}{CLOSING}"
