"""The values of `format` that are checked: all nineteen of JSON Schema 2020-12.

Grammars matched by RE2 and a little arithmetic, so that no text is slow to check. Sources: RFC 3339
(dates, times, durations), 5321 and 6531 (mail), 1123 and 5891 (hosts), 3986 and 3987 (URI, IRI),
6570 (URI templates), 4122 (UUID), 6901 and the draft on relative pointers.
"""

from __future__ import annotations

import calendar
import ipaddress
from collections.abc import Callable
from typing import Any

import idna
from jsonschema import FormatChecker

from rlvr_plugin_json_schema import grammars
from rlvr_plugin_json_schema.patterns import compile_pattern, well_formed

MAX_HOST_CHARACTERS = 253
MAX_LABEL_CHARACTERS = 63
_MINUTES_A_DAY = 24 * 60


def _date(text: str) -> bool:
    found = grammars.DATE.search(text)
    return found is not None and _day_exists(found)


def _time(text: str) -> bool:
    found = grammars.TIME.search(text)
    return found is not None and _second_exists(found)


def _date_time(text: str) -> bool:
    found = grammars.DATE_TIME.search(text)
    return found is not None and _day_exists(found) and _second_exists(found)


def _day_exists(found: Any) -> bool:
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    # The year 0 is a leap year of the same shape as 2000.
    return bool(1 <= day <= calendar.monthrange(year or 2000, month)[1])


def _second_exists(found: Any) -> bool:
    """Return whether a time exists: a leap second ends a day in UTC."""
    if found["second"] != "60":
        return True
    offset = 0
    if found["sign"]:
        offset = int(found["by_hours"]) * 60 + int(found["by_minutes"])
        offset = -offset if found["sign"] == "+" else offset
    minute = int(found["hour"]) * 60 + int(found["minute"]) + offset
    return minute % _MINUTES_A_DAY == _MINUTES_A_DAY - 1


def _ipv4(text: str) -> bool:
    return _is_address(ipaddress.IPv4Address, text)


def _ipv6(text: str) -> bool:
    return "%" not in text and _is_address(ipaddress.IPv6Address, text)


def _is_address(kind: Callable[[str], object], text: str) -> bool:
    if not text.isascii() or len(text) > MAX_HOST_CHARACTERS:
        return False
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _hostname(text: str) -> bool:
    if len(text) > MAX_HOST_CHARACTERS or grammars.HOST.search(text) is None:
        return False
    return all(_label(label) for label in text.split("."))


def _label(label: str) -> bool:
    if len(label) > MAX_LABEL_CHARACTERS:
        return False
    if label[2:4] != "--":
        return True
    # Only punycode that stands for something may have hyphens there.
    try:
        idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return label[:2].lower() == "xn"


def _idn_hostname(text: str) -> bool:
    if not text or len(text) > MAX_HOST_CHARACTERS:
        return False
    try:
        idna.encode(text)
    except (idna.IDNAError, UnicodeError):
        return False
    return not text.endswith((".", "\u3002", "\uff0e", "\uff61"))


def _email(text: str) -> bool:
    return _is_mail(grammars.MAIL, _hostname, text)


def _idn_email(text: str) -> bool:
    return _is_mail(grammars.MAIL_ANYWHERE, _idn_hostname, text)


def _is_mail(grammar: Any, is_host: Callable[[str], bool], text: str) -> bool:
    found = grammar.search(text)
    if found is None:
        return False
    domain = str(found["domain"])
    if not domain.startswith("["):
        return is_host(domain)
    inner = domain[1:-1]
    return _ipv6(inner[5:]) if inner.lower().startswith("ipv6:") else _ipv4(inner)


def _reference(grammar: Any) -> Callable[[str], bool]:
    def is_reference(text: str) -> bool:
        found = grammar.search(text)
        if found is None:
            return False
        literals = [value for name, value in found.groupdict().items() if value and "lit" in name]
        return all(_is_host_literal(literal[1:-1]) for literal in literals)

    return is_reference


def _is_host_literal(text: str) -> bool:
    """Return whether brackets hold an IPv6 address, or one of a version still to come."""
    version, dot, rest = text.partition(".")
    if version[:1] in ("v", "V"):
        return bool(dot and rest) and all(c in "0123456789abcdefABCDEF" for c in version[1:])
    return _ipv6(text)


def _grammar(grammar: Any) -> Callable[[str], bool]:
    return lambda text: grammar.search(text) is not None


def _regex(text: str) -> bool:
    try:
        compile_pattern(text)
    except ValueError:
        return False
    return True


CHECKS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "duration": _grammar(grammars.DURATION),
    "email": _email,
    "idn-email": _idn_email,
    "hostname": _hostname,
    "idn-hostname": _idn_hostname,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "uri": _reference(grammars.URI),
    "uri-reference": _reference(grammars.URI_REFERENCE),
    "iri": _reference(grammars.IRI),
    "iri-reference": _reference(grammars.IRI_REFERENCE),
    "uri-template": _grammar(grammars.URI_TEMPLATE),
    "uuid": _grammar(grammars.UUID),
    "json-pointer": _grammar(grammars.JSON_POINTER),
    "relative-json-pointer": _grammar(grammars.RELATIVE_JSON_POINTER),
    "regex": _regex,
}
"""Name of a format to what decides whether a text has it."""


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, check in CHECKS.items():
        checker.checks(name)(_for_text(check))
    return checker


def _for_text(check: Callable[[str], bool]) -> Callable[[object], bool]:
    """Formats speak about strings; any other value has every format."""
    return lambda value: not isinstance(value, str) or check(well_formed(value))


FORMATS = _checker()
"""What jsonschema asks about formats."""
