"""Words after a number that are no unit, because they change it or deny it."""

from __future__ import annotations

import re

MULTIPLIERS = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "quadrillion": 10**15, "dozen": 12, "lakh": 10**5, "crore": 10**7, "thou": 10**3, "doz": 12,
    "gross": 144, "ten": 10, "k": 10**3, "bn": 10**9, "万": 10**4, "亿": 10**8,
}  # fmt: skip

_CHANGING_WORDS = """
    or and not no is are was isn't aren't plus minus times over divided by to if then than
    between from more less fewer mod modulo factorial infinity pi half halves third thirds quarter
    quarters fifth fifths tenth tenths hundredths percent sqrt root sin cos tan log ln exp point
    negative positive but except excluding remainder e i x y z n maybe either neither possibly
    approximately about around unless without never actually wait
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
"""
_CHANGING = frozenset(_CHANGING_WORDS.split())
"""No unit has one of these in it."""
_CHANGING_LAST_WORDS = """
    square cube doubled double halved tripled triple quadrupled quadruple twice
    thrice inverse inverted reciprocal negated opposite complement raised power increased decreased
    reduced added subtracted multiplied rounded truncated factored
    wrong false incorrect untrue invalid impossible mistaken mistake error nonsense denied rejected
    unlikely doubtful most least nope nay none nothing again
"""
_CHANGING_LAST = frozenset(_CHANGING_LAST_WORDS.split())
"""These change or deny a number unless a noun follows: ``4 wrong answers`` has a unit."""
_CHANGING_HAN = re.compile(
    "[不错非没的半负余几十或]|分之|根号|阶乘|倒数|相反|次方|以[上下内外]|左右|^(?:多|打|成|平方|立方)$"
    "|百(?!分点)|千(?![米克瓦])"
)


def changes_number(unit: str) -> bool:
    """Return whether the words after a number change it or deny it, so that they are no unit."""
    words = [word.strip("-'.,") for word in unit.split()]
    # N is a newton, n a variable.
    words = [word.casefold() if len(word) > 1 else word for word in words]
    if not words:
        return False
    # In "4 times" the times are counted.
    rest = words[:-1] if words[-1] == "times" else words
    if _CHANGING.intersection(rest) or words[-1] in _CHANGING_LAST:
        return True
    return words[0] in ("squared", "cubed") or _CHANGING_HAN.search(unit) is not None


_UNCHANGED_PLURALS = """
    people persons men women children feet teeth geese mice lice oxen fish sheep deer dice data
    cattle police staff offspring aircraft salmon trout squid shrimp personnel crew pence fps money
    cash water food gold silver rice salt sugar flour milk juice candy fruit bread
"""
_OTHER_WORDS = """
    total altogether left remaining each apiece overall combined together respectively exactly only
    in all
"""
_COUNTED = frozenset(_UNCHANGED_PLURALS.split())
_ASIDE = frozenset(_OTHER_WORDS.split())
_NO_PLURALS = re.compile(r"(?:ss|us|is|ous|less|always|perhaps|besides|afterwards|sometimes|thus)$")


def names_things(unit: str, number: str) -> bool:
    """Return whether words after a number name what is counted: ``apples``, ``years old``.

    One of them must be a plural, or the number at most one; ``in total`` and the like are remarks.
    Chinese has no plurals, so that any word passes.
    """
    words = [word.strip("-'.,").casefold() for word in re.split(r"[\s/]+", unit)]
    if not unit.isascii() or _AT_MOST_ONE.fullmatch(number.strip()):
        return True
    plural = any(
        word in _COUNTED or (len(word) > 3 and word[-1] == "s" and not _NO_PLURALS.search(word))
        for word in words
    )
    return plural or _ASIDE.issuperset(words)


_AT_MOST_ONE = re.compile(r"[-+]?(?:1(?:\.0+)?|0?\.\d+|0|\\frac\{?\d+\}?\{?\d+\}?|\d+/\d+)")


def leading_multiplier(words: list[str]) -> tuple[int, list[str]]:
    """Return the product of the multipliers that `words` start with, and the words after them."""
    factor, index = 1, 0
    for word in words:
        name = word.casefold() if len(word) > 1 else word
        value = MULTIPLIERS.get(name) or MULTIPLIERS.get(name.removesuffix("s"))
        if value is None:
            break
        factor, index = factor * value, index + 1
    return factor, words[index:]
