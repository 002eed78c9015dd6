"""Products and quotients of units, such as ``N·m``, ``J/(kg K)`` and ``kg m^{-3}`` (policy U2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from rlvr_plugin_math_sympy.unit_names import known_unit

_LONGEST = 80
_PLAIN = (
    (re.compile(r"\^\s*\{\s*(-?\d)\s*\}"), r"^\1"),
    (re.compile(r"\\text\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\cdot(?![A-Za-z])|\\times(?![A-Za-z])|[*·⋅]"), " "),
    (re.compile(r"\\mu(?![A-Za-z])\s*|µ"), "μ"),
    (re.compile(r"\\Omega(?![A-Za-z])"), "Ω"),
    (re.compile(r"(?<![A-Za-z])([kMGT]\s+(?=Ω)|μ\s+(?=[A-Za-z]))"), lambda match: match[1][0]),
)
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-zμΩ]+)(?:\s*\^\s*(?P<raised>-?\d)|(?P<digit>[2-4])(?!\d))?"
    r"|(?P<mark>[/.()]))"
)


def product_of_units(text: str) -> str | None:
    """Return the one name of a product of units, such as ``kg/m^3``; None if it is none.

    Every factor must be a known unit. Factors are named in the order of the alphabet, those above
    the line first, so that ``m·N`` is ``N m`` and ``kg m^{-3}`` is ``kg/m^3``.
    """
    if len(text) > _LONGEST:
        return None
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    powers = _powers(text.strip().rstrip("."))
    if not powers:
        return None
    above = [_raised(name, power) for name, power in sorted(powers.items()) if power > 0]
    below = [_raised(name, -power) for name, power in sorted(powers.items()) if power < 0]
    return "/".join([".".join(above), *below])


def _raised(name: str, power: int) -> str:
    return name if power == 1 else f"{name}^{power}"


def _powers(text: str) -> Counter[str] | None:
    """Return the power of every unit in a product; None if something in it is no unit."""
    powers: Counter[str] = Counter()
    sign, inside, is_open = 1, 1, False
    for token in _tokens(text):
        if token is None:
            return None
        mark = token["mark"]
        if mark is None:
            name = known_unit(token["name"])
            if name is None:
                return None
            for part in re.split(r"(?=/)", name):  # mph is mi/h
                power = int(token["raised"] or token["digit"] or 1) * sign * inside
                powers[part.removeprefix("/")] += -power if part.startswith("/") else power
            sign = 1
        elif mark == "/":
            sign = -1
        elif mark == "(":
            if is_open:
                return None
            sign, inside, is_open = 1, sign, True
        elif mark == ")":
            if not is_open:
                return None
            inside, is_open = 1, False
    return None if is_open or sign < 0 else Counter({k: v for k, v in powers.items() if v})


def _tokens(text: str) -> Iterator[re.Match[str] | None]:
    """Yield what a product consists of, and None at what cannot be part of one."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        yield match
        if match is None:
            return
        at = match.end()
