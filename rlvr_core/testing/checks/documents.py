"""Checks of what a verifier's page says."""

from __future__ import annotations

import re

from rlvr_core.api.errors import listed
from rlvr_core.testing.apart.parent import Finding
from rlvr_core.testing.check import SHAPED, Check, failed, passed
from rlvr_core.testing.subject import Subject

_HEADING = re.compile(r"^#+\s*(.+)$", re.MULTILINE)


def page(subject: Subject) -> Finding:
    """Look for the parts of a README that users need."""
    text = subject.project.page
    rows = [line for line in text.splitlines() if line.lstrip().startswith("|")]
    missing = [
        f"a table row for the setting {name}"
        for name in subject.cls.Config.model_fields
        if not any(f"`{name}`" in row for row in rows)
    ]
    produced = {one.failure for one in subject.golden_verdicts.values() if one.failure is not None}
    missing += [
        f"the failure {failure}" for failure in sorted(produced) if f"`{failure}`" not in text
    ]
    headings = " ".join(_HEADING.findall(text)).lower()
    missing += [
        f"a heading with the word {word}"
        for word, spellings in (("limits", ("limit",)), ("licence", ("licence", "license")))
        if not any(one in headings for one in spellings)
    ]
    if missing:
        return failed(f"its README lacks {listed(missing)}")
    return passed(f"settings, {len(produced)} failure categories, limits and licence are there")


CHECKS = (
    Check("R70", "The README has a table of settings, the failure categories that golden cases "
          "get, known limits and a licence note.", page, SHAPED),
)  # fmt: skip
