"""The final answer: where a solution claims it, and whether it is the right one."""

from __future__ import annotations

import re
from fractions import Fraction

from rlvr_plugin_steps.expressions import ExpressionError, Kind, Token, Value, value_of
from rlvr_plugin_steps.lexemes import whole_expression
from rlvr_plugin_steps.plain import plain

MAX_CLAIM_CHARACTERS = 400
MAX_MARKERS = 50

_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{")
_BARE_CLAIM = re.compile(
    r"^[ \t$*]*+(?:\\[\[(])?+[ \t$*]*+(?:\\(?:boxed|fbox)\s?\{.*\}|<answer>.*</answer>|####(?!#).*)"
    r"[ \t$*]*+(?:\\[\])])?+[ \t$*.。]*+$",
    re.I | re.M,
)
_BRACE = re.compile(r"\\.|[{}]", re.S)
_ANSWER = (
    r"\banswers?\b\**(?:[ ]+to[ ]+th(?:e|is)[ ]+(?:question|problem))?"
    r"(?:[ ]*(?:is|are|equals)\b|[ ]*=)?[ ]*\**[ ]*[:：]?"
)
_HAN_ANSWER = (
    r"答案\**[ ]*(?:应该是|应为|就是|是|为|等于)?[ ]*[:：]?|(?:故|因此|所以|应)选[ ]*[:：]?"
)
_MARKER = re.compile(rf"(?<!#)####(?!#)|<answer>|{_ANSWER}|{_HAN_ANSWER}", re.I | re.M)
_GSM_ANSWER = re.compile(r"[ \t]*####[ \t]*[-−$€£¥]*[ ]?\.?\d")
_CLAIMS = re.compile(r"(?:is|are|equals|[:：=]|[是为于选])[ ]*\**[ ]*[:：]?\Z", re.I)
"""How a marker ends that claims what follows it; the mere word "answer" claims nothing."""
_SENTENCE_END = re.compile(
    r"</answer>|[\n。！？；]|[.!?](?=\s|\Z)|,?[ ](?:because|since|rather than|instead of|not)\b",
    re.I,
)
_NEGATION = re.compile(r"[ ]*(?:not\b|never\b|n't|不|并非)", re.I)
_NEGATED_BOX = re.compile(r"(?:\bnot|n't|不是|不为|并非)[ $:：(]*\Z", re.I)

_COMPUTES = re.compile(
    r"[\d)%][ ]?[-+*/^][ ]?[(\d.]|[=≈]"
    r"|\d[ ]?(?:[加减乘除]|(?:plus|minus|times|divided|multiplied)\b)"
)
_WORD = re.compile(r"[^\W\d_]+")
MAX_CLAIM_WORDS = 15
_ONLY_ANSWER = re.compile(
    r"####|\banswers?\b[^.!?]{0,40}?(?:\b(?:is|are|equals)\b|[:：])|答案\s*(?:是|为|应|就|等于|[:：])"
    r"|(?:故|因此|所以|应)选",
    re.I,
)
_EDGES = " \t\n.,;:!?。，；：！？\"'“”‘’*$_#()[]<>"
_LETTER_CHOICE = re.compile(r"\(?([A-J])(?:[).:、]|\Z|(?=[ ]))")


def find_claim(text: str) -> str | None:
    """Return the answer that a solution claims, or None when it claims none.

    The last balanced box counts; without a box the last marker does: ``####``, ``<answer>``,
    ``answer is``, ``Answer:``, 答案是, 故选. A box left open, and "is not", claim nothing.

    Args:
        text: What follows the reasoning, as written.
    """
    boxes = list(_BOX.finditer(text))
    if boxes:
        return _boxed(text, boxes[-1])
    for marker in reversed(list(_MARKER.finditer(text))[-MAX_MARKERS:]):
        claim = _marked(text, marker)
        if claim:
            return claim
    return None


def without_bare_claims(text: str) -> str:
    """Return a solution, as written, without the lines that hold the answer and nothing else."""
    return _BARE_CLAIM.sub(_unless_heading, text)


def _unless_heading(line: re.Match[str]) -> str:
    """``#### 18`` is an answer; ``#### Step 1`` is a heading of Markdown, and says something."""
    is_heading = line[0].lstrip().startswith("####") and not _GSM_ANSWER.match(line[0])
    return line[0] if is_heading else ""


def is_only_a_claim(text: str) -> bool:
    """Return whether a sentence (as `plain` writes it) says the answer and works nothing out."""
    if _COMPUTES.search(text):
        return False
    bare = text.strip(_EDGES)
    if not bare or not any(character.isalpha() for character in bare):
        return True
    return _ONLY_ANSWER.search(text) is not None and len(_WORD.findall(text)) <= MAX_CLAIM_WORDS


def is_same_answer(claim: str, gold: str) -> bool:
    """Return whether a claimed answer is the right one.

    Equal as texts; as exact numbers, whatever unit stands there; as a letter of a choice; or as
    expressions in letters.
    """
    said, right = plain(claim[:MAX_CLAIM_CHARACTERS]), plain(gold)
    if _folded(said) == _folded(right):
        return bool(_folded(right))
    choice = _LETTER_CHOICE.fullmatch(right.strip())
    if choice is not None:
        chosen = _LETTER_CHOICE.match(said.strip())
        return chosen is not None and chosen[1] == choice[1]
    wanted = _number(right)
    if wanted is not None:
        number = _number(said)
        return number is not None and _is_same_number(number, wanted)
    return _is_same_expression(said, right)


def _boxed(text: str, box: re.Match[str]) -> str | None:
    if _NEGATED_BOX.search(text[max(0, box.start() - 20) : box.start()]):
        return None
    depth = 1
    for brace in _BRACE.finditer(text, box.end()):
        depth += (brace[0] == "{") - (brace[0] == "}")
        if depth == 0:
            return text[box.end() : brace.start()].strip() or None
    return None


def _marked(text: str, marker: re.Match[str]) -> str | None:
    rest = text[marker.end() : marker.end() + MAX_CLAIM_CHARACTERS]
    sign = marker[0].strip()
    if sign == "####":
        line = rest.split("\n", 1)[0].strip()
        # In Markdown the same sign makes a heading; an answer is a number, or ends the text.
        ends_text = not text[marker.end() + len(rest.split("\n", 1)[0]) :].strip()
        return line if ends_text or _GSM_ANSWER.match(marker[0] + line) else None
    if sign.casefold() == "<answer>":
        claim, closed, _ = rest.partition("</answer>")
        return claim.strip() if closed else None
    # "**Answer**" alone on its line stands above the answer.
    heads = not rest.split("\n", 1)[0].strip(" *") and "\n" in rest
    if not heads and not _CLAIMS.search(sign):
        return None
    rest = rest.lstrip(" \t\n*$:：" if heads else " \t*$:：")
    if _NEGATION.match(rest):
        return None
    end = _SENTENCE_END.search(rest)
    return (rest[: end.start()] if end else rest).strip(" *$") or None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_EDGES)


def _number(text: str) -> Token | None:
    """Return the one number of a short text, such as 18, -1/2, 50% or "x = 18 dollars"."""
    side = text.replace("≈", "=").rpartition("=")[2].strip(" \n.;,:!*")
    tokens = whole_expression(side)
    if tokens is None:
        tokens = whole_expression(_without_words(side))
    if tokens is None:
        return None
    operators = [token.text for token in tokens if token.kind is Kind.OPERATOR]
    numbers = sum(token.kind is Kind.NUMBER for token in tokens)
    # 12 + 30 is no answer to "what is 12 + 30?"; a sign and one fraction bar are.
    if not 1 <= numbers <= 2 or operators.count("/") != numbers - 1 or set(operators) - {"-", "/"}:
        return None
    try:
        value_read = value_of(tokens, percent=False)
    except (ExpressionError, ZeroDivisionError):
        return None
    if not isinstance(value_read, Fraction):
        return None
    percent = any(token.is_percent for token in tokens)
    return Token(Kind.NUMBER, value=value_read, is_percent=percent)


def _without_words(text: str) -> str:
    """Return a number without its unit and what is said around it."""
    text = re.sub(r"\b(?:minus|negative)\b|负", " -", text, flags=re.I)
    return re.sub(r"[ ]?/?[ ]?[^\W\d_]+|\([ ]*\)", " ", text).strip(_EDGES)


def _is_same_number(one: Token, other: Token) -> bool:
    """Return whether two numbers are equal; a percent sign may be missing on one side."""
    if one.value == other.value:
        return True
    if one.is_percent == other.is_percent:
        return False
    percent, plain_one = (one, other) if one.is_percent else (other, one)
    return percent.value / 100 == plain_one.value


def _is_same_expression(said: str, right: str) -> bool:
    one, other = _expressions(said), _expressions(right)
    if not one or not other:
        return False
    # "x = 2y" answers "2y", and the other way round.
    return one == other if len(one) == len(other) else one[-1] == other[-1]


def _expressions(text: str) -> list[Value]:
    """Return what the sides of a text are worth; none if it is not all expressions."""
    values = []
    for side in text.strip(" \n.;,").split("="):
        tokens = whole_expression(side)
        if tokens is None:
            return []
        try:
            values.append(value_of(tokens))
        except (ExpressionError, ZeroDivisionError):
            return []
    return values
