"""LaTeX that the own parser does not know, read by latex2sympy2_extended."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rlvr_plugin_math_sympy.guards import NotMathsError, nesting

MAX_LATEX_CHARACTERS = 300
MAX_LATEX_NESTING = 8
_COSTLY = re.compile(
    r"\d{7}|\^[^{}]*\^|\^\s*\{[^{}]*\^|\^\s*\{?\s*-?\d{4}|\d{4}\s*!|!\s*!|\\(?:sum|prod|binom)|[()]!"
)
_COMMAND = re.compile(r"\\[A-Za-z]+")


@lru_cache(maxsize=256)
def latex_to_sympy(text: str) -> Any:
    """Return the sympy object that LaTeX `text` spells.

    Raises:
        NotMathsError: when it is no LaTeX, too large, or latex2sympy2_extended cannot read it.
    """
    plain = _COMMAND.search(text) is None or "\\text" in text
    if plain or len(text) > MAX_LATEX_CHARACTERS or nesting(text) > MAX_LATEX_NESTING:
        raise NotMathsError("no LaTeX that may be parsed")
    if _COSTLY.search(text):
        raise NotMathsError("numbers too large for the LaTeX parser")
    import sympy
    from latex2sympy2_extended import latex2sympy

    try:
        found = latex2sympy(text)
        return found.xreplace(
            {symbol: sympy.Symbol(symbol.name, real=True) for symbol in found.free_symbols}
        )
    except Exception as error:
        # The library raises bare Exception for what it cannot read, and anything on hostile text.
        raise NotMathsError("latex2sympy2_extended cannot read it") from error
