"""What a data row says: the entities that are right, and the text they come from."""

from __future__ import annotations

from typing import Self

from pydantic import Field, StrictInt, model_validator

from rlvr_core.api import Strict
from rlvr_plugin_f1_extraction.normalise import normal_text

MAX_ENTITIES = 1000


class TrueEntity(Strict):
    """One entity that is right."""

    text: str = Field(description="The entity as it stands in the text.")
    type: str | None = Field(
        default=None, description="Its type. Either all entities of a row have one, or none."
    )
    start: StrictInt | None = Field(
        default=None, ge=0, description="Index of its first character in the text."
    )
    end: StrictInt | None = Field(default=None, description="Index after its last character.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not normal_text(self.text):
            raise ValueError("an entity without a text names nothing")
        if self.type is not None and not normal_text(self.type):
            raise ValueError("a type must not be blank; leave it out where types do not matter")
        if (self.start is None) != (self.end is None):
            raise ValueError("`start` and `end` go together")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("`end` is the index after the last character, so it exceeds `start`")
        return self


class Truth(Strict):
    """What a data row must say."""

    entities: list[TrueEntity] = Field(
        max_length=MAX_ENTITIES,
        description="The entities that are right; an empty list where there are none.",
    )
    required: list[str] = Field(
        default_factory=list,
        description="Types of which an answer must claim at least one entity, or its score is 0.",
    )
    source: str | None = Field(
        default=None,
        description="The text that the entities come from. With it, an entity that does not occur "
        "there earns nothing for an overlap, and is counted.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for key in ("type", "start"):
            given = [getattr(entity, key) is not None for entity in self.entities]
            if any(given) and not all(given):
                raise ValueError(f"some entities have `{key}` and some have not")
        types = {normal_text(entity.type or "") for entity in self.entities}
        for name in self.required:
            if normal_text(name) not in types - {""}:
                raise ValueError(f"{name!r} is required, but no entity has that type")
        if self.source is not None:
            place = Source(self.source)
            for entity in self.entities:
                span = None
                if entity.start is not None and entity.end is not None:
                    span = (entity.start, entity.end)
                if not place.holds(entity.text, span):
                    where = "there" if span else "in `source`"
                    raise ValueError(f"the entity {entity.text!r} does not occur {where}")
        return self


class Source:
    """A text, to ask what occurs in it. Case, blanks and character forms do not matter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._normal = normal_text(text)

    def holds(self, text: str, span: tuple[int, int] | None) -> bool:
        """Return whether `text` occurs, at `span` if one is given."""
        wanted = normal_text(text)
        if span is None:
            return wanted in self._normal
        start, end = span
        return 0 <= start < end and normal_text(self._text[start:end]) == wanted
