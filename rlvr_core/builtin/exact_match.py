"""The verifier ``exact-match``: the answer, as text, is one of those accepted."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from rlvr_core.api import (
    FailureCategory,
    FinishReason,
    RowVerifier,
    Stage,
    Strict,
    Verdict,
    VerifyRow,
)

# A leading point or sign belongs to a number, so only the end loses those that can.
_LEADING = "\"'“”‘’«»()[]{}*_`「」『』（）【】《》"
_TRAILING = _LEADING + ".,;:!?。，、；：！？"
_SHOWN_CHARACTERS = 200


class ExactMatch(RowVerifier):
    """Compares text with text.

    Only what follows the last closed ``<think>`` block counts; an unclosed block is no answer.
    """

    api_version = "1.0"

    class Config(Strict):
        """Where the answer stands and what does not matter in it."""

        extract: Literal["whole", "last-line", "after"] = Field(
            default="whole",
            description="The whole completion, its last line that is not blank, or the line after "
            "the last `marker`.",
        )
        marker: str | None = Field(
            default=None, min_length=1, description="What stands before the answer."
        )
        fold_case: bool = Field(default=False, description="Upper and lower case are equal.")
        collapse_whitespace: bool = Field(
            default=True, description="Any run of whitespace is one space."
        )
        strip_punctuation: bool = Field(
            default=False, description="Quotes, brackets and stops around the answer do not count."
        )
        nfkc: bool = Field(
            default=False,
            description="Full-width and other compatibility forms equal plain ones (x² equals x2).",
        )
        choices: str | None = Field(
            default=None,
            pattern=r"^[A-Z]{2,26}$",
            description="Letters of a multiple choice, such as ABCD. `(B)` and `B. text` choose B; "
            "an answer that names two letters chooses none.",
        )

        @model_validator(mode="after")
        def _marker_goes_with_after(self) -> Self:
            if (self.extract == "after") != (self.marker is not None):
                raise ValueError("`extract: after` needs a marker, and nothing else takes one")
            return self

    class GroundTruth(Strict):
        """The right answer."""

        answer: str | list[str] = Field(description="The answer, or every accepted spelling.")

        @field_validator("answer")
        @classmethod
        def _says_something(cls, answer: str | list[str]) -> str | list[str]:
            spellings = [answer] if isinstance(answer, str) else answer
            if not spellings or not all(spelling.strip() for spelling in spellings):
                raise ValueError("an answer must not be empty")
            return answer

    config: Config

    def verify_row(self, row: VerifyRow) -> Verdict:
        """Judge one completion."""
        accepted = self._accepted(row.ground_truth.answer)
        if accepted is None:
            return self.abstain(
                FailureCategory.BAD_GROUND_TRUTH, message="nothing is left of the answer"
            )
        text = self._extracted(row.completion)
        if not text:
            is_cut = row.finish_reason is FinishReason.LENGTH
            return self.judge(
                0.0,
                FailureCategory.TRUNCATED if is_cut else FailureCategory.NO_ANSWER,
                Stage.EXTRACT,
            )
        answer = self._normalised(text)
        if self.config.choices:
            letter = self._letter(answer)
            if letter is None:
                return self.judge(
                    0.0, FailureCategory.MALFORMED, Stage.PARSE, answer=answer[:_SHOWN_CHARACTERS]
                )
            answer = letter
        return self.judge(float(answer in accepted), answer=answer[:_SHOWN_CHARACTERS])

    def _accepted(self, answer: str | list[str]) -> frozenset[str] | None:
        spellings = [answer] if isinstance(answer, str) else answer
        normal = [self._normalised(spelling) for spelling in spellings]
        if self.config.choices:
            letters = [self._letter(spelling) for spelling in normal]
            normal = [letter or "" for letter in letters]
        return frozenset(normal) if all(normal) else None

    def _extracted(self, completion: str) -> str:
        """Return the text that holds the answer; empty when there is none."""
        _, closed, after = completion.rpartition("</think>")
        text = after if closed else completion
        if "<think>" in text:
            return ""
        if self.config.marker is not None:
            flags = re.IGNORECASE if self.config.fold_case else 0
            found = list(re.finditer(re.escape(self.config.marker), text, flags))
            text = text[found[-1].end() :] if found else ""
        lines = [line for line in text.splitlines() if line.strip()]
        if self.config.extract == "last-line":
            text = lines[-1] if lines else ""
        elif self.config.extract == "after":
            text = lines[0] if lines else ""
        return text.strip()

    def _normalised(self, text: str) -> str:
        config = self.config
        text = unicodedata.normalize("NFKC" if config.nfkc else "NFC", text)
        if config.fold_case and not config.choices:
            text = text.casefold()
        if config.collapse_whitespace:
            text = " ".join(text.split())
        if config.strip_punctuation:
            text = text.strip().lstrip(_LEADING).rstrip(_TRAILING)
        return text.strip()

    def _letter(self, text: str) -> str | None:
        """Return the letter that `text` chooses; None unless it plainly chooses one."""
        letters = self.config.choices or ""
        pattern = rf"[\s(\[*_\"']*([{letters}])(?:[\s)\].:,;*_\"']*|[)\].:][\s*_].*)"
        flags = re.DOTALL | (re.IGNORECASE if self.config.fold_case else 0)
        found = re.fullmatch(pattern, text, flags)
        if found is None:
            return None
        # "A) or B)" chooses nothing.
        other = rf"(?<!\w)[{letters}](?=[)\].:,;]|\s*$)"
        return None if re.search(other, text[found.end(1) :]) else found[1].upper()
