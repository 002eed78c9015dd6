"""One plain spelling for Unicode, LaTeX and Markdown: what comes after reads ``+-*/^=``."""

from __future__ import annotations

import re
import unicodedata

_ANNOTATION = re.compile(r"<<[^<>\n]{0,200}>>")
"""What GSM8K writes for a calculator: ``16 - 3 = <<16-3=13>>13``. It repeats the text around it."""

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUPERSCRIPT = re.compile(f"[{_SUPERSCRIPTS}]+")
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_CIRCLED = re.compile(r"(^[ \t]*)?([①-⑳])", re.M)
_FORMAT_CHARACTERS = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

_COMMANDS = {
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "approx": "≈", "ne": "≠", "neq": "≠",
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "left": "", "right": "", "quad": " ",
    "qquad": " ", "displaystyle": "", "dollar": " ",
}  # fmt: skip
_WRAPPERS = frozenset(
    [
        "boxed", "fbox", "text", "textbf", "textit", "textrm", "mathrm", "mathbf",
        "mathit", "mbox", "operatorname", "bf", "rm",
    ]
)  # fmt: skip
_SYMBOLS = {"%": "%", "$": " ", "#": "#", "&": "&", "\\": "\n", "!": "", "{": "(", "}": ")"}
_LATEX = re.compile(r"\\(?P<name>[A-Za-z]+)|\\(?P<symbol>.)|(?P<open>\{)|(?P<close>\})", re.S)
_FRACTION_NAMES = frozenset({"frac", "dfrac", "tfrac", "cfrac"})
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[A-Za-z]{1,20}\*?\}")
_ALIGNED = re.compile(r"&[ ]?(?==)|(?<==)&")
_BARE_FRACTION = re.compile(r"\\[dtc]?frac[ ]?(\d)[ ]?(\d)(?!\d)")

_SIGNS = str.maketrans(
    {
        "×": "*", "⋅": "*", "∙": "*", "✕": "*", "÷": "/", "⁄": "/", "−": "-", "–": "-", "‐": "-",
        "‑": "-", "＝": "=", "$": " ", "€": " ", "£": " ", "¥": " ", "￥": " ", "`": " ",
        "≒": "≈", "≃": "≈", "°": "",
    }
)  # fmt: skip
_MIDDLE_DOT = re.compile(r"(?<=[\d)])[ ]?·[ ]?(?=[\d(])")
_MINUS_MONEY = re.compile(r"-[$€£¥](?=\d)")
_TIMES_LETTER = re.compile(r"(?<=[\d)%])[ ]?[x✖][ ]?(?=[$€£¥]?[.(]?\d)")
_DOUBLE_STAR = re.compile(r"(?<![\w)*])\*\*(?=\S)|(?<=[^\s*])\*\*(?![\w(*])")
_BLANKS = re.compile(r"[ \t\f\v\u00a0\u3000]+")


def plain(text: str) -> str:
    r"""Return `text` in one plain spelling; lines stay lines. Time grows with the length only.

    Calculator annotations go, NFKC makes full-width characters plain, ``×`` and ``\times`` become
    ``*``, ``\frac{a}{b}`` becomes ``((a)/(b))``, ``²`` becomes ``^2``. Boxes, text commands, bold
    marks and signs of money leave what stands in them.
    """
    text = _FORMAT_CHARACTERS.sub("", _ANNOTATION.sub("", text))
    text = _SUPERSCRIPT.sub(_power, _VULGAR.sub(_spaced, _CIRCLED.sub(_number_in_circle, text)))
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _DOUBLE_STAR.sub("", text)
    if "\\" in text or "{" in text:
        text = _without_latex(text)
    text = _MINUS_MONEY.sub("-", _TIMES_LETTER.sub(" * ", text))
    text = _MIDDLE_DOT.sub("*", text.translate(_SIGNS))
    return _BLANKS.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))


def _power(match: re.Match[str]) -> str:
    return "^" + "".join(str(_SUPERSCRIPTS.index(digit)) for digit in match[0])


def _spaced(match: re.Match[str]) -> str:
    """Keep ``3½`` from becoming 31/2."""
    return " " + unicodedata.normalize("NFKC", match[0])


def _number_in_circle(match: re.Match[str]) -> str:
    """Circled digits number steps at the start of a line, and refer to them elsewhere."""
    if match[1] is None:
        return " "
    return f"{match[1]}{ord(match[2]) - ord('①') + 1}) "


def _without_latex(text: str) -> str:
    text = _ALIGNED.sub("", _ENVIRONMENT.sub(" ", text))
    text = _BARE_FRACTION.sub(r"((\1)/(\2))", text)
    out: list[str] = []
    closings: list[str] = []
    opening, closing = "", ""
    """What the next brace becomes, and the brace that closes it."""
    position = 0
    for match in _LATEX.finditer(text):
        between = text[position : match.start()]
        position = match.end()
        if between.strip():
            opening = closing = ""
        out.append(between)
        if match["open"]:
            if not opening and between[-1:] in ("^", "_"):
                opening, closing = "(", ")"
            out.append(opening)
            closings.append(closing)
            opening = closing = ""
        elif match["close"]:
            close = closings.pop() if closings else ""
            out.append(close)
            # A numerator is followed by its denominator.
            opening, closing = ("(", "))") if close == ")/" else ("", "")
        else:
            opening, closing = ("((", ")/") if match["name"] in _FRACTION_NAMES else ("", "")
            out.append(_command(match))
    return "".join([*out, text[position:]])


def _command(match: re.Match[str]) -> str:
    name = match["name"]
    if name is None:
        return _SYMBOLS.get(match["symbol"], " ")
    if name in _FRACTION_NAMES or name in _WRAPPERS:
        return ""
    return _COMMANDS.get(name, f" \\{name} ")
