"""Find the answer that a completion claims: boxes first, then explicit markers, last one wins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rlvr_plugin_math_sympy.marks import without_comments, without_unseen

Mode = Literal["strict", "flexible"]

MAX_COMPLETION_CHARACTERS = 200_000
MAX_BOXES = 50
MAX_CLAIM_CHARACTERS = 2_000
MAX_MARKERS = 50


@dataclass(frozen=True, slots=True)
class Answer:
    """The claimed answer.

    Attributes:
        parts: One text, or several that together form one set-valued answer.
    """

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The claim as one text, for people."""
        return ", ".join(self.parts)


_REASONING = r"(?:think|thinking|thought|reasoning|reason|analysis|reflection|scratchpad)"
_REASONING_OPEN = re.compile(rf"<{_REASONING}>|\[THINK\]|<\|begin_of_thought\|>|◁think▷", re.I)
_REASONING_CLOSE = re.compile(rf"</{_REASONING}>|\[/THINK\]|<\|end_of_thought\|>|◁/think▷", re.I)

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BARE_TOKEN = re.compile(
    r"-?\\[dt]?frac\s*(?:\{[^{}]*\}|\d)\s*(?:\{[^{}]*\}|\d)|-?\\sqrt\s*(?:\{[^{}]*\}|\d)"
    r"|-?\\?[A-Za-z]+|-?\d[\d.,]*\d|-?\d|[^\s{}$\\]"
)
_SENTENCE_END = re.compile(r"[.!?](?=[\s\"'*)]|$)|[。！？\n]")
_JOINED = re.compile(
    r"[\s$,;\\()\[\]*]*(?:,|;|、|，|or|and|and/or|或者?|和|以及)[\s$,;\\()\[\]*]*", re.I
)
_CORRECTION = re.compile(
    r"\b(?:wait|but|however|actually|instead|correct\w*|rather|oops|sorry|mistake|wrong|should be"
    r"|revis\w+|no)\b|不对|更正|改为|应该是|而是|错",
    re.I,
)
_NEGATED_BOX = re.compile(
    r"(?:\b(?:not|never|isn't|cannot be|can't be|n't)(?: equal(?: to)?)?"
    r"|不是|不等于|并非|不为|不选)[\s$:=(]*$",
    re.I,
)


def find_answer(completion: str, mode: Mode = "strict") -> Answer | None:
    """Return the answer that `completion` claims, or None when it claims none."""
    written = completion[-MAX_COMPLETION_CHARACTERS:]
    text = after_reasoning(without_comments(written, left_open=False))
    if text is None:
        return None
    text = without_unseen(without_comments(text, left_open=True))
    boxes, unclosed = _boxes(text)
    if boxes:
        return _from_boxes(text, boxes)
    if unclosed and mode == "strict":
        return None
    claim, negated = _last_claim(text)
    if claim is not None or negated or mode == "strict":
        return None if claim is None else Answer((claim,))
    number = _last_number(text)
    return None if number is None else Answer((number,))


def after_reasoning(text: str) -> str | None:
    """Return the text after the last closed reasoning block; None when a block is left open."""
    if not ("<" in text or "[" in text or "◁" in text):
        return text
    end = 0
    for match in _REASONING_CLOSE.finditer(text):
        end = match.end()
    rest = text[end:]
    return None if _REASONING_OPEN.search(rest) else rest


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: str


def _boxes(text: str) -> tuple[list[_Box], bool]:
    """Return the last balanced boxes, outermost only, and whether a box is left open."""
    starts = list(_BOX.finditer(text))
    closings = _closings(text) if starts else {}
    found: list[_Box] = []
    unclosed = False
    for match in starts:
        if found and match.start() < found[-1].end:
            continue
        if text[match.end() : match.end() + 1] == "{":
            close = closings.get(match.end())
            if close is None:
                unclosed = True
                continue
            found.append(_Box(match.start(), close + 1, text[match.end() + 1 : close]))
            continue
        token = _BARE_TOKEN.match(text, match.end())
        if token is not None:
            found.append(_Box(match.start(), token.end(), token[0]))
    return found[-MAX_BOXES:], unclosed


def _closings(text: str) -> dict[int, int]:
    """Return the position of the matching close for each opening brace; escaped ones are text."""
    stack: list[int] = []
    pairs: dict[int, int] = {}
    for match in re.finditer(r"\\.|[{}]", text, re.S):
        if match[0] == "{":
            stack.append(match.start())
        elif match[0] == "}" and stack:
            pairs[stack.pop()] = match.start()
    return pairs


def _from_boxes(text: str, boxes: list[_Box]) -> Answer | None:
    claimed = [
        box for box in boxes if not _NEGATED_BOX.search(text[max(0, box.start - 40) : box.start])
    ]
    if not claimed:
        return None
    group = [claimed[-1]]
    for box in reversed(claimed[:-1]):
        between = text[box.end : group[0].start]
        same_sentence = not _SENTENCE_END.search(between) and not _CORRECTION.search(between)
        if not (same_sentence or _JOINED.fullmatch(between)):
            break
        group.insert(0, box)
    if not _inner(group[-1].content).strip():
        return None
    parts = [_inner(box.content).strip() for box in group]
    return Answer(tuple(dict.fromkeys(part for part in parts if part)))


def _inner(content: str) -> str:
    """Return what the innermost last box of `content` holds, or `content` itself."""
    for _ in range(5):
        inner, _unclosed = _boxes(content)
        if not inner:
            break
        content = inner[-1].content
    return content


_ADVERB = (
    r"(?:\s*\b(?:then|thus|therefore|hence|indeed|simply|just|exactly|clearly|now|definitely"
    r"|certainly|approximately|about|roughly)\b)?"
)
_ENGLISH = (
    r"\b(?:final\s+)?answers?\**\s*(?:\([^()\n]{1,20}\)\s*)?"
    r"(?:(?:to|for|of)\s+[^\n.!?:=$]{1,60}?\s*(?=\b(?:is|are|was)\b|[:：]))?"
    r"(?:(?:is|are|was|would\s+be|should\s+be|must\s+be|will\s+be|equals|becomes|=)(?![\w'’])"
    + _ADVERB + r"\s*\**\s*[:：]?|\**\s*[:：])"
)  # fmt: skip
_OPTION = (
    r"\b(?:correct|right|best)\s+(?:option|choice)\s+(?:is|would\s+be|=)\s*\**\s*:?"
    r"\s*(?=\(?[A-J]\b)"
)
_HEADING = (
    r"^[ \t]*[#*]+[ \t]*(?:the[ \t]+)?(?:final[ \t]+)?answer[ \t]*\**[ \t]*$"
    r"|^[ \t]*(?:the[ \t]+)?final[ \t]+answer[ \t]*$"
)
_CHINESE = (
    r"答案\**\s*(?:应该是|应该为|应当是|应是|应为|就是|是|为|等于|选)\s*[:：]?|答案\**\s*[:：]|【答案】\s*[:：]?"
    r"|正确的?(?:选项|选择)\s*(?:应该|应当|应)?(?:是|为)\s*[:：]?\s*(?=[A-H\uff21-\uff28(（])"
    r"|(?:故选|因此选|所以选|应选|本题选|选择|选项?为|(?<!不)选)\s*[:：]?\s*(?=[A-H\uff21-\uff28(（])"
)
_MARKER = re.compile(
    rf"(?P<gsm>####)|<answer>|(?:{_ENGLISH})|(?:{_OPTION})|(?:{_HEADING})|(?:{_CHINESE})",
    re.I | re.M,
)
_NO_CLAIM = re.compile(
    r"(?:in)?correct|right|wrong|(?:un)?clear|helpful|unknown|verified|valid|reasonable|obvious"
    r"|complete|final|as follows|below|above|given|found|needed|required",
    re.I,
)
_NEGATION = re.compile(
    r"\**\s*(?:(?:definitely|certainly|probably|clearly|surely|obviously)\s+)?"
    r"(?:not\b|never\b|neither\b|anything but\b|不|并非|非(?!负))",
    re.I,
)
_NEGATED_MARKER = re.compile(
    r"\banswers?\s+(?:is|are|was|would|should|could|can|must|will)?\s*(?:n't|not|never|cannot|n’t)"
    r"|\banswers?\s+(?:isn|can|won|wasn|aren|couldn|wouldn)['’]t|\banswers?\s+cannot"
    r"|答案\s*(?:绝对|一定|肯定|应该)?(?:不是|不为|不等于|不可能|并非|并不)|不选",
    re.I,
)
_CLAIM_END = re.compile(
    r"\n|</answer>|[。！？；]|(?<!\bapprox)(?<!\bvs)(?<!\.)[.!?](?=[\s\"'*$)]*(?:\s|$))"
    r"|,?\s+(?:because|since|which|where|whereas|as we|so that|but|hence|after|when"
    r"|assuming|by the)\b"
    r"|,\s*(?:not|so|as|and not|rather|instead|though|although|I\s+(?:think|believe|guess|hope))\b"
    r"|\s+(?:rather than|instead of|and not)\b"
    r"|[，,]\s*(?=[\u4e00-\u9fff])(?!\s*(?:或|和|以及))|\s+#|\s+//|<\|"
)
_REMARK = re.compile(
    r"(?<=\S)\s+\((?=[^()]*[A-Za-z]{2,}\s+[^()]*\w)[^()]*\)|(?<=\S)（(?=[^（）]{2,})[^（）]*）"
)


def _last_claim(text: str) -> tuple[str | None, bool]:
    """Return the last claim made with a marker, and whether any claim was negated."""
    negated = bool(_NEGATED_MARKER.search(text))
    markers = list(_MARKER.finditer(text))
    for match in reversed(markers[-MAX_MARKERS:]):
        rest = text[match.end() : match.end() + MAX_CLAIM_CHARACTERS]
        if match[0].lower() == "<answer>":
            tagged, closed, _ = re.sub("</answer>", "</answer>", rest, flags=re.I).partition(
                "</answer>"
            )
            if closed:
                return tagged.strip() or None, negated
            continue
        if _NEGATION.match(rest):
            negated = True
            continue
        claim = _claim_text(rest, whole_line=match["gsm"] is not None)
        if claim and not _NO_CLAIM.fullmatch(claim):
            return claim, negated
    return None, negated


_LISTED_OPTIONS = re.compile(
    r"\(?(?P<first>[A-J])[.)](?=\s)(?![^\n]*\b(?:options?|choices?|is|are|was|not|because|since)\b)"
    r"[^\n]*?\s\(?(?!(?P=first))[A-J][.)](?=\s)"
)
"""``A. 3 B. 4``: options after the marker, not a sentence about one of them."""
# "The answer is 4..." trails off at the end of its line; in a box, or before more, 4... goes on.
_TRAILING_OFF = re.compile(r"(?<![\d.])(\d+)\s*(?:\.{3,}|…)$")
# "Final Answer: The largest n is 34": the sentence says it once more.
_TOLD = re.compile(
    r"(?:the|there|so|thus|hence|therefore|it|we|he|she|they)\s[^=]*\b(?:is|are|was|were|equals|has|have)\s",
    re.I,
)
_OPENING_NOISE = re.compile(r"[\s$*:：`]*(?:\\\[|\\\()?[\s$*`]*")


def _claim_text(rest: str, *, whole_line: bool) -> str:
    """Return the claim at the start of `rest`: up to the sentence's end, without remarks."""
    start = _OPENING_NOISE.match(rest)
    skipped = start.end() if start else 0
    lead = "$" if rest[:skipped].count("$") == 1 and _dollar_amount(rest, skipped) else ""
    if whole_line:
        return lead + rest[skipped:].split("\n", 1)[0].strip()
    body = rest[skipped:]
    end = _CLAIM_END.search(body)
    if _LISTED_OPTIONS.match(body):
        return body.split("\n", 1)[0].strip()
    claim = body[: end.start()] if end else body
    claim = _TRAILING_OFF.sub(r"\1", _REMARK.sub("", claim).strip())
    claim = re.sub(r"(?:\$\$?|\\\]|\\\)|\*\*)\s*$", "", claim).strip()
    told = _TOLD.match(claim)
    if told is not None:
        claim, lead = claim[told.end() :].strip(), ""
        if _NEGATION.match(claim):
            return ""
    if claim.count("$") % 2 == 1 and not lead:
        claim = claim.replace("$", "", 1)
    return lead + claim


def _dollar_amount(rest: str, position: int) -> bool:
    """Return whether the dollar before `position` is money: no second one closes it."""
    line = rest[position:].split("\n", 1)[0]
    return "$" not in line


_NUMBER = re.compile(
    r"(?<![\w.])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s*/\s*\d+(?![\d.]))?%?|(?<![\w.])[-−]?\.\d+"
)


def _last_number(text: str) -> str | None:
    last = None
    for match in _NUMBER.finditer(text):
        last = match[0]
    return last
