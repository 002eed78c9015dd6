"""The shape of an answer: sets, tuples, intervals, relations, matrices, lists, ratios, bases."""

from __future__ import annotations

import re

from rlvr_plugin_math_sympy.chains import disagreeing_member
from rlvr_plugin_math_sympy.labels import has_variables, is_label, is_variable
from rlvr_plugin_math_sympy.shapes import (
    EMPTY,
    REALS,
    Based,
    Equation,
    Group,
    Inequality,
    Interval,
    Labelled,
    Leaf,
    Matrix,
    Operation,
    Ratio,
    Region,
    Shape,
)
from rlvr_plugin_math_sympy.splitting import (
    enclosed,
    split_connectors,
    split_items,
    split_relations,
    split_top,
)

MAX_ITEMS = 200


_MATRIX = re.compile(
    r"(?P<factor>[^{}=]*?|-?\\frac\{\w+\}\{\w+\})\\begin\{(?P<kind>[pbB]?matrix|smallmatrix|array)\}"
    r"(?:\{[lcr| ]*\})?(?P<body>.*)\\end\{(?P=kind)\}[)\]]?",
    re.S,
)
_BASED = re.compile(
    r"[(]?(?:\\text\{)?(?P<digits>[0-9A-Fa-f]+)\}?[)]?\s*"
    r"(?:_\s*(?:\{\s*(?:\\text\{)?\s*\(?(?P<braced>\w+)\)?\s*\}?\s*\}|(?P<bare>\d+))"
    r"|\s*(?:\\text\{\s*)?\(?\s*(?:in )?base(?:[ -]|\s*\}\s*)(?P<words>\w+)\s*\)?\s*\}?)"
)
_BASE_NAMES = {
    name: base
    for base, name in enumerate(
        [
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
        ],
        2,
    )
}
_CLOCK = re.compile(
    r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?\s*(?:\\text\{)?\s*([AaPp]\.?\s?[Mm]\.?)?\s*\}?"
)
_POINT = re.compile(r"(?P<name>[A-Z]'*(?:_\w)?)\s*(?P<place>\([^()]*\))")
_CASES = re.compile(
    r"(?:\\\{\s*)?\\begin\{(?P<kind>d?cases|array|aligned)\}(?:\{[lcr| ]*\})?"
    r"(?P<body>[^&]*)\\end\{(?P=kind)\}",
    re.S,
)
_IMPLIES = ("\\Rightarrow", "\\Longrightarrow", "\\implies", "\\therefore", "\\iff")
_NESTED_LISTS = re.compile(r"\[(?:\s*\[[^\[\]]+\]\s*(?:,(?=\s*\[)|(?=\s*\]$)))+\]")
_COMMAND = re.compile(r"\\(?!text)[A-Za-z]+")
_FOUR_LETTERS = re.compile(r"[A-Za-z]{4}")
_SINGLE_TEXT = re.compile(r"\s*\\text\{([^{}]*)\}\s*")
_LABELLED_NUMBER = re.compile(
    r"(?P<label>[^=,]+?)\s*=\s*(?P<value>[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])[^,=]*)"
)
_ONE_NUMBER = re.compile(r"[-+$€£¥ ]*\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d.])[^,]*")
OPERATIONS: tuple[tuple[str, Operation], ...] = (
    ("\\cup", "union"),
    ("\\setminus", "difference"),
    ("\\cap", "intersection"),
)
_PM = re.compile(r"\\pm(?![A-Za-z])|\\mp(?![A-Za-z])|\+/-|\+-")


def read(text: str, depth: int = 0) -> Shape:
    """Return the shape of a tidied answer. Never fails: what has no structure is a leaf."""
    text = _french(text.strip().strip(",;").strip())
    if depth > 6:
        return Leaf(text)
    simple = _simple(text) or _concluded(text, depth)
    if simple is not None:
        return simple
    cases = _CASES.fullmatch(text)
    if cases is not None:
        return _list(_rows(cases["body"]), "and", depth)
    number = _LABELLED_NUMBER.fullmatch(text)
    if number is not None and is_label(number["label"]):
        return _labelled(number["label"], number["value"], depth)
    parts, connector = split_connectors(text)
    if len(parts) > 1:
        return _list(parts, connector, depth)
    region = _region(text, depth)
    if region is not None:
        return region
    related = _related(text, depth)
    if related is not None:
        return related
    items = [text] if _ONE_NUMBER.fullmatch(text) else split_items(text)
    if len(items) > 1:
        return _list(items, "", depth)
    bracketed = _bracketed(text, depth)
    if bracketed is not None:
        return bracketed
    return _value(text, depth)


def _french(text: str) -> str:
    """Return ``]0, 1[`` as ``(0, 1)``: brackets that point outwards leave the end out."""
    if "," not in text or not (text.startswith("]") or text.endswith("[")):
        return text
    start = "(" + text[1:] if text[0] == "]" else text
    return start[:-1] + ")" if start[-1] == "[" else start


def _simple(text: str) -> Shape | None:
    if re.fullmatch(r"[\w.% -]*", text, re.A) and "_" not in text and " " not in text.strip():
        return Leaf(text)
    if text in ("\\emptyset", "\\{\\}", "\\{ \\}", "\\phi", "{}"):
        return EMPTY
    if text in (
        "\\mathbb{R}",
        "(-\\infty,\\infty)",
        "\\text{all real numbers}",
        "all real numbers",
    ):
        return REALS
    based = _BASED.fullmatch(text)
    if based is not None:
        name = based["braced"] or based["bare"] or based["words"]
        base = (
            int(name) if name.isdigit() and len(name) < 4 else _BASE_NAMES.get(name.casefold(), 0)
        )
        if 2 <= base <= 36:
            return Based(based["digits"].lstrip("0") or "0", base)
    if _NESTED_LISTS.fullmatch(text):
        rows = re.findall(r"\[([^\[\]]*)\]", text)
        return Matrix(tuple(tuple(cell.strip() for cell in row.split(",")) for row in rows), "")
    matrix = _MATRIX.fullmatch(text.removeprefix("(").removeprefix("["))
    return _matrix(matrix) if matrix is not None else None


def _rows(body: str) -> list[str]:
    rows = [row.strip() for row in re.split(r"\\\\(?:\[[^\]]*\])?", body)]
    return [row for row in rows if row]


def _matrix(match: re.Match[str]) -> Matrix:
    cells = [tuple(cell.strip() for cell in row.split("&")) for row in _rows(match["body"])]
    return Matrix(tuple(cells), match["factor"].strip().rstrip("*").removesuffix("\\cdot").strip())


def _concluded(text: str, depth: int) -> Shape | None:
    """Return what follows from the last implication; two values for one thing contradict."""
    for arrow in _IMPLIES:
        text = "\0".join(split_top(text, arrow))
    *before, last = (step.strip(" ,") for step in text.split("\0"))
    if not before or not all((*before, last)):
        return None
    conclusion = read(last, depth + 1)
    for step in before[:MAX_ITEMS]:
        premise = read(step, depth + 1)
        (name, value), (other, concluded) = _statement(premise), _statement(conclusion)
        if name == other and disagreeing_member([value, concluded], loosely=False):
            return Equation(value, concluded)
    return conclusion


def _statement(shape: Shape) -> tuple[str, str]:
    if isinstance(shape, Labelled):
        return shape.label, shape.right
    return "", shape.text if isinstance(shape, Leaf) else ""


def _list(parts: list[str], connector: str, depth: int) -> Shape:
    items: list[Shape] = []
    for part in parts[:MAX_ITEMS]:
        item = read(part, depth + 1)
        items.extend(item.items if isinstance(item, Group) and item.kind == "list" else (item,))
    return Group("list", tuple(items), connector)


def _region(text: str, depth: int) -> Shape | None:
    for command, operation in OPERATIONS:
        pieces = split_top(text, command)
        if len(pieces) < 2:
            continue
        items = tuple(read(piece, depth + 1) for piece in pieces[:MAX_ITEMS])
        if isinstance(items[0], Labelled):
            items = (items[0].value, *items[1:])
        sets = [item.items for item in items if isinstance(item, Group) and item.kind == "set"]
        if operation == "union" and len(sets) == len(items):
            return Group("set", tuple(element for members in sets for element in members))
        return Region(operation, items)
    return None


def _related(text: str, depth: int) -> Shape | None:
    sides, operators = split_relations(text)
    if operators[:1] in (["="], ["≈"]) and not sides[0]:
        return read(text.lstrip("=≈ "), depth + 1)
    if not operators or any(not side for side in sides):
        return None
    if operators == ["\\in"]:
        return Labelled(sides[0], read(sides[1], depth + 1), sides[1])
    if all(operator in ("=", "≈") for operator in operators):
        return _equalities(sides, depth, loosely="≈" in operators)
    if not {"=", "≈", "\\in"}.isdisjoint(operators):
        return None
    return _inequalities(sides, operators)


def _equalities(sides: list[str], depth: int, *, loosely: bool) -> Shape:
    first, last = sides[0], sides[-1]
    disagreeing = disagreeing_member(sides, loosely=loosely)
    if disagreeing is not None:
        return Equation(disagreeing, last)
    if is_label(first):
        return _labelled(first, last, depth)
    if len(sides) == 2 and is_label(last):
        return _labelled(last, first, depth)
    if len(sides) > 2 or not (has_variables(first) or has_variables(last)):
        return read(last, depth + 1)
    return Equation(first, last)


def _labelled(label: str, right: str, depth: int) -> Shape:
    text = _SINGLE_TEXT.fullmatch(label)
    label = (text[1] if text else label).replace(" ", "")
    value = read(right, depth + 1)
    if isinstance(value, Group) and value.kind == "list":
        items = tuple(Labelled(label, item, "") for item in value.items)
        return Group("list", items, value.joined_by)
    return Labelled(label, value, right)


def _inequalities(sides: list[str], operators: list[str]) -> Shape | None:
    if len(set(operators) & {"<", "<="}) and len(set(operators) & {">", ">="}):
        return None
    if operators == ["!="]:
        if not is_variable(sides[0]):
            return None
        hole = Leaf(sides[1])
        halves = (Interval(REALS.low, hole, False, False), Interval(hole, REALS.high, False, False))
        return Labelled(sides[0], Region("union", halves), sides[1])
    if "!=" in operators:
        return None
    if operators[0].startswith(">"):
        sides, operators = sides[::-1], [op.replace(">", "<") for op in operators[::-1]]
    closed = [operator == "<=" for operator in operators]
    if len(sides) == 3 and is_label(sides[1]):
        span = Interval(Leaf(sides[0]), Leaf(sides[2]), *closed)
        return Labelled(sides[1].replace(" ", ""), span, "")
    if len(sides) != 2:
        return None
    small, large = sides
    if is_variable(small) and not has_variables(large):
        return Labelled(small, Interval(REALS.low, Leaf(large), False, closed[0]), "")
    if is_variable(large) and not has_variables(small):
        return Labelled(large, Interval(Leaf(small), REALS.high, closed[0], False), "")
    return Inequality(small, large, not closed[0])


def _bracketed(text: str, depth: int) -> Shape | None:
    members = enclosed(text, "\\{", "\\}")
    if members is not None:
        return _set(members, depth)
    for opening, closing in (("(", ")"), ("\\langle", "\\rangle"), ("[", "]")):
        inner = enclosed(text, opening, closing)
        if inner is None:
            continue
        rows = split_top(inner, ";")
        if opening == "[" and len(rows) > 1 and "," in inner:
            return Matrix(tuple(tuple(split_items(row, thousands=False)) for row in rows), "")
        items = _members(inner)
        if len(items) > 1:
            shapes = tuple(read(item, depth + 1) for item in items[:MAX_ITEMS])
            return Group("bracket" if opening == "[" else "tuple", shapes)
        single = read(inner, depth + 1)
        return Leaf(text) if isinstance(single, Leaf) else single
    point = _POINT.fullmatch(text)
    if point is not None and not is_label(text):
        place = read(point["place"], depth + 1)
        if isinstance(place, Group) and place.kind == "tuple":
            return Labelled(point["name"], place, point["place"])
    return _half_open(text, depth)


def _members(inner: str) -> list[str]:
    parts = [part.strip() for part in split_top(inner, ";")]
    return parts if len(parts) > 1 and all(parts) else split_items(inner, thousands=False)


def _half_open(text: str, depth: int) -> Shape | None:
    if len(text) < 5 or text[0] not in "([]" or text[-1] not in ")][":
        return None
    ends = _members(text[1:-1])
    if len(ends) != 2 or (
        text[0] + text[-1] in ("()", "[]") and enclosed(text, text[0], text[-1]) is None
    ):
        return None
    low, high = (read(end, depth + 1) for end in ends)
    return Interval(low, high, text[0] == "[", text[-1] == "]")


def _set(members: str, depth: int) -> Shape:
    for bar in ("\\mid", "|", ":"):
        head, found, condition = members.partition(bar)
        if (
            found
            and condition.strip()
            and re.fullmatch(r"\s*[A-Za-z]\s*(?:\\in\s*\\mathbb\{R\})?\s*", head)
        ):
            solved = read(condition, depth + 1)
            return solved if not isinstance(solved, Leaf) else Leaf(members)
    if not members.strip():
        return EMPTY
    flat: list[Shape] = []
    for item in split_items(members, thousands=False)[:MAX_ITEMS]:
        shape = read(item, depth + 1)
        flat.extend(shape.items if isinstance(shape, Group) and shape.kind == "list" else (shape,))
    return Group("set", tuple(flat))


def _value(text: str, depth: int) -> Shape:
    if _PM.search(text):
        upper = _PM.sub(lambda m: "-" if m[0] == "\\mp" else "+", text)
        lower = _PM.sub(lambda m: "+" if m[0] == "\\mp" else "-", text)
        return Group("list", (read(upper, depth + 1), read(lower, depth + 1)), "or")
    if ":" in text:
        clock = _CLOCK.fullmatch(text)
        if clock is not None:
            digits = (str(int(clock[1])), clock[2], *([clock[3]] if clock[3] else []))
            return Ratio(digits, True, re.sub(r"[^a-z]", "", (clock[4] or "").lower()))
        parts = [part.strip() for part in split_top(text, ":")]
        if len(parts) > 1 and all(parts) and not _FOUR_LETTERS.search(_COMMAND.sub("", text)):
            return Ratio(tuple(parts), False)
    words = re.fullmatch(r"([\d.]+) to ([\d.]+)", text)
    return Ratio((words[1], words[2]), False) if words else Leaf(text)
