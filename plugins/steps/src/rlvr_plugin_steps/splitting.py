"""Where one step ends and the next begins: numbering, else lines, else sentences."""

from __future__ import annotations

import re

from rlvr_plugin_steps.answers import is_only_a_claim

_LINE = r"^[ \t>]*(?:#{1,6}[ \t]*)?"
_AFTER_SENTENCE = r"(?<=[.!?。!?;；])[ \t]*"
_HAN_NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
_AFTER_NUMBER = r"[ \t]*[.:)、,\-—：，]"
NUMBERINGS = (
    re.compile(
        rf"{_LINE}step[ \t]*\d{{1,3}}\b(?:{_AFTER_NUMBER})?"
        rf"|{_AFTER_SENTENCE}step[ \t]*\d{{1,3}}{_AFTER_NUMBER}",
        re.I | re.M,
    ),
    re.compile(
        rf"{_LINE}(?:第{_HAN_NUMBER}步|步骤[ \t]*{_HAN_NUMBER})(?:{_AFTER_NUMBER})?"
        rf"|{_AFTER_SENTENCE}(?:第{_HAN_NUMBER}步|步骤[ \t]*{_HAN_NUMBER}){_AFTER_NUMBER}",
        re.M,
    ),
    re.compile(rf"{_LINE}(?:\(\d{{1,3}}\)|\d{{1,3}}(?:[.)](?=[ \t\n])|、|\)))", re.M),
    re.compile(r"^[ \t]*[-*•+·](?=[ \t])", re.M),
)
"""Kinds of explicit numbering, outermost first; two marks of a kind make steps."""

_SENTENCE_END = re.compile(
    r"(?<![.!?;])[.!?;]++[\"')\]”’]*+(?=\s)|(?<![!?;])[!?;]++(?=[\u3400-\u9fff])|[。；！？]++[”’」』)]*+"
)
_LAST_WORD = re.compile(r"[\w.]{1,12}\Z")
_ABBREVIATIONS = frozenset(
    [
        "mr", "mrs", "ms", "dr", "prof", "st", "no", "vs", "etc", "approx", "e.g",
        "i.e", "cf", "fig", "eq", "jr", "sr", "inc", "lbs", "lb", "oz", "ft",
    ]
)  # fmt: skip


def split_steps(text: str) -> list[str]:
    """Return the steps of a solution, in order. Steps that say nothing but the answer are left out.

    Args:
        text: A solution in the spelling of `plain`.
    """
    for numbering in NUMBERINGS:
        marks = list(numbering.finditer(text))
        if len(marks) > 1:
            return _numbered(text, marks)
    lines = _lines(text)
    telling = _telling(lines)
    if len(telling) > 1:
        return telling
    return _telling([sentence for line in lines for sentence in _sentences(line)])


def is_content(text: str) -> bool:
    """Return whether there is a letter or a digit."""
    return any(character.isalnum() for character in text)


def _telling(pieces: list[str]) -> list[str]:
    return [piece for piece in map(told_by, pieces) if is_content(piece)]


def told_by(step: str) -> str:
    """Return a step without its number, and without sentences that say nothing but the answer."""
    for numbering in NUMBERINGS[:-1]:
        mark = numbering.match(step)
        if mark is not None:
            step = step[mark.end() :]
            break
    return "\n".join(map(_line_without_claims, step.split("\n"))).strip()


def _line_without_claims(line: str) -> str:
    sentences = _sentences(line)
    kept = [sentence for sentence in sentences if not is_only_a_claim(sentence)]
    return line if len(kept) == len(sentences) else " ".join(kept)


def _numbered(text: str, marks: list[re.Match[str]]) -> list[str]:
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    pieces = [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
    introduction = text[: marks[0].start()]
    # "Let me think step by step:" is a heading; an introduction with numbers says something.
    if any(character.isdigit() for character in introduction):
        pieces.insert(0, introduction)
    return _telling(pieces)


def _lines(text: str) -> list[str]:
    """Return lines; one that ends in a colon goes with the next, one with ``=`` with the last."""
    joined: list[list[str]] = []
    expects_more = False
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        if joined and (expects_more or line[0] in "=≈"):
            joined[-1].append(line)
        else:
            joined.append([line])
        expects_more = line[-1] in ":："
    return [" ".join(parts) for parts in joined]


def _sentences(text: str) -> list[str]:
    pieces, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        word = _LAST_WORD.search(text, max(start, end.start() - 12), end.start())
        if end[0] == "." and word is not None and word[0].casefold() in _ABBREVIATIONS:
            continue
        pieces.append(text[start : end.end()])
        start = end.end()
    return [*pieces, text[start:]]
