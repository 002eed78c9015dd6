"""How many words in capitals the published checker counts: those of the Penn Treebank's tokens.

There, ``DON'T`` is two words (``DO`` and ``N'T``), ``CANNOT`` is two, and ``WELL-KNOWN`` is one.
"""

from __future__ import annotations

import re

# What stands between tokens or is a token of its own. Commas and colons stay within numbers.
_BETWEEN = re.compile(r"[\s«»“”‘’„`\"?!*;@#$%&\[\](){}<>\u2012-\u2015]+|''|--|\.{2,}|[:,](?![0-9])")
_CLITIC = re.compile(r"(?<=[^'])('S|'M|'D|'LL|'RE|'VE|N'T)$")
_TWO_WORDS = frozenset(
    {"CANNOT", "D'YE", "GIMME", "GONNA", "GOTTA", "LEMME", "MORE'N", "WANNA", "'TIS", "'TWAS"}
)


def capital_tokens(text: str) -> int:
    """Return how many tokens of `text` are in capitals, in Python's sense of `str.isupper`."""
    return sum(_capitals_in(token) for token in _BETWEEN.split(text) if token)


def _capitals_in(token: str) -> int:
    clitic = _CLITIC.search(token)
    if clitic is not None:
        return 1 + token[: clitic.start()].isupper()
    if token.upper() in _TWO_WORDS:
        return 2 * token.isupper()
    return int(token.isupper())
