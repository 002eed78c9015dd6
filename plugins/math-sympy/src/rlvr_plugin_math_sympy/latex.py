"""LaTeX that the own parser does not know, read by latex2sympy2_extended."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from rlvr_plugin_math_sympy.guards import NotMathsError, nesting

MAX_LATEX_CHARACTERS = 300
MAX_LATEX_NESTING = 8
_COSTLY = re.compile(r"\d{7}|\^[^{}]*\^|\^\s*\{[^{}]*\^|\^\s*\{?\s*-?\d{4}|\d{4}\s*!|!\s*!|\\(?:sum|prod|binom)|[()]!")
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
    from antlr4.error.Errors import ParseCancellationException, RecognitionException
    from latex2sympy2_extended import latex2sympy

    try:
        return latex2sympy(text)
    except (
        RecognitionException,
        ParseCancellationException,
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise NotMathsError("latex2sympy2_extended cannot read it") from error
    except Exception as error:
        if type(error) is not Exception and "sympy" not in type(error).__module__.lower():
            raise
        raise NotMathsError("latex2sympy2_extended cannot read it") from error
