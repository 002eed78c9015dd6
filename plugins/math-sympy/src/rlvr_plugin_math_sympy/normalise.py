"""One spelling for one answer: unicode, LaTeX decoration, markdown and number marks."""

from __future__ import annotations

import re
import unicodedata

from rlvr_plugin_math_sympy.marks import without_marks, without_unseen
from rlvr_plugin_math_sympy.numbers import chinese_to_text

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ", "0123456789+-ni", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5),
    "⅗": (3, 5), "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8),
    "⅝": (5, 8), "⅞": (7, 8), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "iota",
            "kappa",
            "lambda",
            "mu",
            "nu",
            "xi",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Phi",
            "Psi",
            "Omega",
        ],
        strict=True,
    )
)
_CHARACTERS: dict[int, str] = {
    **{ord(c): f" \\{name} " for c, name in _GREEK.items()},
    **{ord(c): f"\\frac{{{a}}}{{{b}}}" for c, (a, b) in _VULGAR.items()},
    **dict.fromkeys(map(ord, "−–—‐‑‒―﹣"), "-"),
    **dict.fromkeys([*range(0x200B, 0x2010), 0xFEFF, 0x2060, 0xAD, *range(0x202A, 0x202F)], ""),
    **dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "∕⁄÷"), "/"),
    **dict.fromkeys(map(ord, "·⋅∙•"), "\\cdot "),
    ord("×"): "\\times ", ord("≤"): "<=", ord("≥"): ">=", ord("⩽"): "<=", ord("⩾"): ">=",
    ord("≠"): "!=", ord("∞"): "\\infty ", ord("±"): "\\pm ", ord("∓"): "\\mp ",
    ord("√"): " sqrt ", ord("∛"): " cbrt ", ord("∪"): "\\cup ", ord("∩"): "\\cap ",
    ord("∈"): "\\in ", ord("∅"): "\\emptyset ", ord("Ø"): "\\emptyset ", ord("ℝ"): "\\mathbb{R}",
    ord("∖"): "\\setminus ", ord("、"): ",", ord("。"): ".", ord("“"): '"', ord("”"): '"',
    ord("’"): "'", ord("′"): "'", ord("º"): "°", ord("˚"): "°", ord("℃"): "°C",
    ord("⟨"): "\\langle ",
    ord("⟩"): "\\rangle ", ord("∣"): "|", ord("％"): "%", ord("∶"): ":", ord("￥"): "¥",
    ord("𝑥"): "x", ord("𝑦"): "y", ord("∼"): "~", ord("π"): "\\pi ",
    ord("∑"): "\\sum ", ord("∏"): "\\prod ", ord("∫"): "\\int ", ord("⌊"): "\\lfloor ",
    ord("⌋"): "\\rfloor ", ord("⌈"): "\\lceil ", ord("⌉"): "\\rceil ", ord("⇒"): "\\Rightarrow ",
    ord("⟹"): "\\implies ", ord("∴"): "\\therefore ",
}  # fmt: skip

_SUPER_RUN = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_SUB_RUN = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_TEXT_COMMAND = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|textnormal|mathrm|mathbf|mathit|mathsf|mathtt"
    r"|mbox|hbox|emph|operatorname\*?|boldsymbol|bold|underline|overline)"
    r"\s*\{((?:[^{}]|\^\{-?\d\})*)\}"
)
_SIZE = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|mathop|mathopen|mathclose|bf"
    r"|rm|it|nonumber|strut|tiny|small|normalsize|[lL]arge|LARGE|[hH]uge)(?![A-Za-z])\s*\.?(?=\s*[^\d.]|\s*\d|\s*$)"
)
_SIZE_DOT = re.compile(r"\\(?:left|right)\s*\.")
_RELATIONS = (
    (re.compile(r"\\(?:leqslant|leqq|leq|le)(?![A-Za-z])"), "<="),
    (re.compile(r"\\(?:geqslant|geqq|geq|ge)(?![A-Za-z])"), ">="),
    (re.compile(r"\\(?:neq|ne)(?![A-Za-z])|\\not\s*="), "!="),
    (re.compile(r"\\(?:lt)(?![A-Za-z])"), "<"),
    (re.compile(r"\\(?:gt)(?![A-Za-z])"), ">"),
    (re.compile(r"\\(?:approx|simeq)(?![A-Za-z])"), "≈"),
    (re.compile(r"\\equiv(?![A-Za-z])"), "="),
)
_RENAMES = (
    (re.compile(r"\\(?:[dtcs]|nice)frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}"), r"\\binom{\1}{\2}"),
    (re.compile(r"^([^{}\\]*)\\choose(?![A-Za-z])([^{}]*)$"), r"\\binom{\1}{\2}"),
    (re.compile(r"\\root\s*(\w)\s*\\of\s*(?:\{([^{}]*)\}|(\w))"), r"\\sqrt[\1]{\2\3}"),
    (re.compile(r"\\colon(?![A-Za-z])"), ":"),
    (re.compile(r"\\pounds(?![A-Za-z])"), "£"),
    (re.compile(r"\\(?:text)?color\s*\{\s*\w+\s*\}|\\ensuremath(?![A-Za-z])"), ""),
    (re.compile(r"\\(?:mathbf|boldsymbol|bm|mathit)\s*\{\s*([A-Za-z])\s*\}"), r"\1"),
    (re.compile(r"\\mathbb\{R\}\s*-\s*(?=\\\{)"), r"\\mathbb{R}\\setminus "),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\(?:varnothing|empty)(?![A-Za-z])"), r"\\emptyset"),
    (re.compile(r"\\(?:lbrace)(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\(?:rbrace)(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\(?:lbrack)(?![A-Za-z])"), "["),
    (re.compile(r"\\(?:rbrack)(?![A-Za-z])"), "]"),
    (re.compile(r"\\(?:lvert|rvert|vert)(?![A-Za-z])"), "|"),
    (re.compile(r"\\(?:backslash)(?![A-Za-z])"), r"\\setminus"),
    (re.compile(r"\\(?:Reals?|R)(?![A-Za-z])"), r"\\mathbb{R}"),
    (re.compile(r"\\mathbb\s*R(?![A-Za-z])"), r"\\mathbb{R}"),
    (re.compile(r"\^\s*(?:\{\s*\\(?:circ|degree)\s*\}|\\(?:circ|degree)(?![A-Za-z]))"), "°"),
    (re.compile(r"\\degree(?![A-Za-z])"), "°"),
    (re.compile(r"\\langle(?![A-Za-z])"), "("),
    (re.compile(r"\\rangle(?![A-Za-z])"), ")"),
)
_GROUPS_OF_THREE = re.compile(
    r"(?<![\d.])\d{1,3}(?:(?:\\[,;: ]|\\thinspace\s*|\{,\}|,\\!\s*|\\!|~)\d{3})+(?!\d)"
)
_DECIMAL_COMMA = re.compile(r"(?<=\d)\{,\}(?=\d)")
_SPACING = re.compile(
    r"(?<!\\)\\(?:[,;:> ]|quad(?![A-Za-z])|qquad(?![A-Za-z])|enspace|thinspace|hspace\{[^{}]*\})|~"
)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BRACED_THOUSANDS = re.compile(r"(?<=(?<!\\)\{)\d{1,3}(?:,\d{3})+(?=\})")
_UNIT_FRACTION = re.compile(
    r"\\frac\s*\{\s*\\text\{([^{}]*)\}\s*\}\s*\{\s*\\text\{([^{}]*)\}((?:\^\d)?)\s*\}"
)
_JOINED_TEXTS = (
    # A unit may be a fraction or a quotient of texts; texts that follow each other are one.
    (_UNIT_FRACTION, r"\\text{\1/\2\3}"),
    (re.compile(r"(\\text\{\s*[A-Za-z]{1,4}\s*)\}\s*\^\s*\{?(-\d)\}?"), r"\1^\2}"),
    (re.compile(r"\\text\{([^{}]*)\}\s*/\s*\\text\{"), r"\\text{\1/"),
    (re.compile(r"\\text\{([^{}]*)\}\s*\\cdot\s*\\text\{"), r"\\text{\1}\\text{"),
    (re.compile(r"\\text\{\s*\}"), " "),
    (re.compile(r"\\text\{\s*(\\?[$€£¥])\s*\}"), r"\1"),
    (re.compile(r"°\s*\\text\{\s*([CF])\s*\}"), r"°\1"),
)
_TEXT_RUN = re.compile(r"\\text\{[^{}]*\}(?:\s*\\text\{[^{}]*\})+")
_TEXT_PART = re.compile(r"\\text\{([^{}]*)\}")
_TIMES_TEN = re.compile(r"(?<=\d)\s*[xX]\s*(?=10\s*\^)")
_FOURTH_ROOT = re.compile(r"∜\s*(?:(\d+)|\(([^()]*)\))")
_CHINESE_RATIO = re.compile(r"(?<=[\d)])\s*比\s*(?=[\d(])")
_ABOUT = re.compile(r"大?约(?:是|为|等于)?\s*(?=[-+\d$\\零一二两三四五六七八九十百])")
_CHINESE_LABEL = re.compile(
    r"^(?:(?!大于|小于|大约|至少|至多|[不非没无或])[\u4e00-\u9fffA-Za-z]){1,12}?(?:是|为|等于|共?有)"
    r"\s*(?=[-+\d$\\])"
)
_WHOLE_ANSWERS = {
    "\\infty": "infinity, positive infinity, 无穷大, 正无穷, 正无穷大",
    "-\\infty": "negative infinity, minus infinity, 负无穷, 负无穷大",
    "\\emptyset": "empty set, the empty set, no solution, no solutions, no real solution, "
    "no real solutions, 空集, 无解, 无实数解",
    "\\mathbb{R}": "all reals, all real numbers, 全体实数, 所有实数, 一切实数",
    "\\frac{1}{2}": "一半",
}
_SPELLED = {name: value for value, names in _WHOLE_ANSWERS.items() for name in names.split(", ")}
_BRACED_ONE = re.compile(r"([\^_])\{(\w)\}(?!\w)")
_SPACES = re.compile(r"\s+")


def clean_characters(text: str) -> str:
    """Return `text` with look-alike, full-width and invisible characters made plain."""
    text = _CONTROL.sub("", text)
    if text.isascii():
        return text
    text = _SUPER_RUN.sub(lambda m: "^{" + "".join(_SUPERSCRIPTS[c] for c in m[0]) + "}", text)
    text = _SUB_RUN.sub(lambda m: "_{" + "".join(_SUBSCRIPTS[c] for c in m[0]) + "}", text)
    text = text.translate(_CHARACTERS)
    return text if text.isascii() else "".join(map(_plain_character, text))


def _plain_character(character: str) -> str:
    """Return the ASCII form of a digit of another script or a mathematical letter."""
    if "\U0001d400" <= character <= "\U0001d7ff":
        return unicodedata.normalize("NFKC", character)
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


def tidy(text: str) -> str:
    """Return an answer in one spelling; it keeps its meaning, its structure and its units."""
    text = _strip_wrapping(without_marks(without_unseen(clean_characters(text))))
    if "\\" in text or "{" in text or "~" in text:
        text = _tidy_latex(text)
    text = _TIMES_TEN.sub(r"\\times ", _strip_wrapping(_SPACES.sub(" ", text)))
    spelled = _SPELLED.get(text.casefold())
    if spelled is not None:
        return spelled
    return text if text.isascii() else _tidy_chinese(text)


def _tidy_chinese(text: str) -> str:
    text = _CHINESE_LABEL.sub("", text)
    about = _ABOUT.match(text)
    text = chinese_to_text(text[about.end() :] if about else text)
    text = _FOURTH_ROOT.sub(r"\\sqrt[4]{\1\2}", _CHINESE_RATIO.sub(":", text))
    return f"≈{text}" if about else text


def _tidy_latex(text: str) -> str:
    text = _BOX.sub("", text)
    text = _GROUPS_OF_THREE.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    text = _DECIMAL_COMMA.sub(".", text)
    text = _BRACED_THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)
    text = re.sub(r"(?<!\\)\\!", "", text).replace("\\%", "%")
    text = _SPACING.sub(" ", text)
    text = _SIZE_DOT.sub("", text)
    text = _SIZE.sub("", text)
    for pattern, replacement in (*_RENAMES, *_RELATIONS):
        text = pattern.sub(replacement, text)
    for _ in range(3):
        unwrapped = _TEXT_COMMAND.sub(r"\\text{\1}", text)
        if unwrapped == text:
            break
        text = unwrapped
    if "\\text" in text:
        for pattern, replacement in _JOINED_TEXTS:
            text = pattern.sub(replacement, text)
        text = _TEXT_RUN.sub(lambda m: f"\\text{{{' '.join(_TEXT_PART.findall(m[0]))}}}", text)
    whole = re.fullmatch(r"\s*\\text\{([^{}]*)\}\s*", text)
    return whole[1] if whole else text


def _strip_wrapping(text: str) -> str:
    """Drop math delimiters, markdown emphasis, code marks and closing punctuation around `text`."""
    previous = None
    while previous != text:
        previous = text
        text = text.strip().strip('`"')
        if text.endswith((".", ",", ";", ":", "!!")) and not text.endswith(("\\,", "\\;", "\\:")):
            text = text[:-1]
        if text.startswith(("**", "__")) or text.endswith(("**", "__")):
            text = text.removeprefix("**").removesuffix("**").removeprefix("__").removesuffix("__")
        if len(text) > 2 and text[0] == text[-1] and text[0] in "*_":
            text = text[1:-1]
        for opening, closing in (("\\(", "\\)"), ("\\[", "\\]")):
            if text.startswith(opening) or text.endswith(closing):
                text = text.removeprefix(opening).removesuffix(closing)
        text = _strip_dollars(text)
        if text.startswith("{") and text.endswith("}") and _encloses(text):
            text = text[1:-1]
    return text


def _strip_dollars(text: str) -> str:
    if "$" not in text:
        return text
    marks = len(re.findall(r"(?<!\\)\$", text))
    if marks and marks % 2 == 0:
        text = re.sub(r"(?<!\\)\$", "", text)
    return text.replace("\\$", "$") if not marks % 2 else text


def _encloses(text: str) -> bool:
    """Return whether the first and the last character are one matching pair of braces."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return index == len(text) - 1
    return False


def canonical(text: str) -> str:
    """Return the string-rung key of a tidied answer: no spaces, except between two digits."""
    if " " in text:
        text = re.sub(r"(?<=\d) +(?=[\d.])", "\0", text).replace(" ", "").replace("\0", " ")
    return _BRACED_ONE.sub(r"\1\2", text) if "{" in text else text
