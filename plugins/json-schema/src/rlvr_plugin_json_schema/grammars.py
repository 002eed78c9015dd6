"""Grammars of the formats, as RE2 expressions that match a whole text."""

from __future__ import annotations

from typing import Any

import re2

_DATE = r"(?P<year>[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-2][0-9]|3[01])"
_TIME = (
    r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9]|60)(?:\.[0-9]+)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<by_hours>[01][0-9]|2[0-3]):(?P<by_minutes>[0-5][0-9]))"
)
_CLOCK = r"T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = r"(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = rf"P(?:[0-9]+W|{_DAYS}(?:{_CLOCK})?|{_CLOCK})"
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"
_RELATIVE_POINTER = rf"(?:0|[1-9][0-9]*)(?:[+-](?:0|[1-9][0-9]*))?(?:#|{_POINTER})"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"

_BEYOND_ASCII = r"\x{A0}-\x{10FFFF}"
# What an IRI may hold beside a URI's characters; private use stands in queries only.
_UCS = r"\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{EFFFD}"
_PRIVATE = r"\x{E000}-\x{F8FF}\x{F0000}-\x{10FFFD}"
_PERCENT = r"%[0-9A-Fa-f]{2}"

_LITERAL = rf"[\x21\x23\x24\x26\x28-\x3B\x3D\x3F-\x5B\x5D\x5F\x61-\x7A\x7E{_UCS}{_PRIVATE}]"
_NAME = rf"(?:[A-Za-z0-9_]|{_PERCENT})(?:\.?(?:[A-Za-z0-9_]|{_PERCENT}))*"
_VARIABLE = rf"{_NAME}(?:\*|:[1-9][0-9]{{0,3}})?"
_TEMPLATE = rf"(?:{_LITERAL}|{_PERCENT}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"


def _mail(more: str) -> str:
    atom = rf"[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~{more}-]+"
    quoted = rf'"(?:[\x20\x21\x23-\x5B\x5D-\x7E{more}]|\\[\x20-\x7E])*"'
    return rf"(?P<local>{atom}(?:\.{atom})*|{quoted})@(?P<domain>\[[^\[\]\\]+\]|[^@\[\]]+)"


def _reference(more: str = "", private: str = "", *, absolute: bool) -> str:
    plain = rf"[A-Za-z0-9._~!$&'()*+,;={more}-]|{_PERCENT}"
    path = rf"(?:{plain}|[:@/])*"
    segment = rf"(?:{plain}|[:@])"
    host = rf"(?P<literal>\[[0-9A-Za-z:.!$&'()*+,;=_~-]+\])|(?:{plain})*"
    authority = rf"(?:(?:{plain}|:)*@)?(?:{host})(?::[0-9]*)?"
    rooted = rf"//{authority}(?:/{path})?|/(?:{segment}+(?:/{path})?)?"
    relative = rf"(?:{plain}|@)+(?:/{path})?"
    scheme = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{rooted}|{segment}+(?:/{path})?|)"
    start = scheme if absolute else rf"(?:{scheme}|{_unnamed(rooted)}|{relative}|)"
    return rf"{start}(?:\?(?:{plain}|[:@/?{private}])*)?(?:#(?:{plain}|[:@/?])*)?"


def _unnamed(expression: str) -> str:
    """Return the expression under another group name, since a name may stand once only."""
    return expression.replace("(?P<literal>", "(?P<other_literal>")


def _compiled(expression: str) -> Any:
    return re2.compile(rf"\A(?:{expression})\z")


DATE = _compiled(_DATE)
TIME = _compiled(_TIME)
DATE_TIME = _compiled(rf"{_DATE}[Tt]{_TIME}")
DURATION = _compiled(_DURATION)
UUID = _compiled(_UUID)
JSON_POINTER = _compiled(rf"(?s:{_POINTER})")
RELATIVE_JSON_POINTER = _compiled(rf"(?s:{_RELATIVE_POINTER})")
HOST = _compiled(_HOST)
MAIL = _compiled(_mail(""))
MAIL_ANYWHERE = _compiled(_mail(_BEYOND_ASCII))
URI = _compiled(_reference(absolute=True))
URI_REFERENCE = _compiled(_reference(absolute=False))
IRI = _compiled(_reference(_UCS, _PRIVATE, absolute=True))
IRI_REFERENCE = _compiled(_reference(_UCS, _PRIVATE, absolute=False))
URI_TEMPLATE = _compiled(_TEMPLATE)
