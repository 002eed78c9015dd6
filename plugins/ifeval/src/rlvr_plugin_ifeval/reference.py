"""A response made to follow given constraints, for trying out data rows and the verifier itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlvr_plugin_ifeval.constraints import Constraint
from rlvr_plugin_ifeval.official import OPTIONS
from rlvr_plugin_ifeval.text import Language

_SENTENCE = {"en": "This is what we have to say about it.", "zh": "这就是我们要说的话。"}
_SHORT = {"en": "Yes.", "zh": "好。"}
_FILLER = {"en": "the", "zh": "好"}
_OTHER_ANSWER = {"en": "There is another way to see this.", "zh": "另外一种看法也是对的。"}
_LANGUAGES = {"en": "en", "zh": "zh", "zh-cn": "zh"}


def followed_by_design(constraints: Sequence[Constraint], language: Language) -> str | None:
    """Return a response meant to follow all constraints; None for a language it cannot write.

    Constraints may contradict each other, so the caller has to judge what it gets.
    """
    wanted: dict[str, Any] = {}
    keywords: list[tuple[str, int]] = []
    for constraint in constraints:
        arguments = constraint.kwargs.model_dump()
        wanted[constraint.type] = arguments
        keywords += _keywords(constraint.type, arguments)
    spoken = wanted.get("language:response_language", {"language": language})["language"]
    if spoken not in _LANGUAGES:
        return None
    language = "zh" if _LANGUAGES[spoken] == "zh" else "en"
    if "detectable_format:json_format" in wanted:
        response = '{"answer": "' + _body(wanted, keywords, language).replace("\n", " ") + '"}'
    else:
        response = _around(_body(wanted, keywords, language), wanted, language)
    if "change_case:english_lowercase" in wanted:
        response = response.lower()
    if "change_case:english_capital" in wanted:
        response = response.upper()
    return response


def _keywords(kind: str, arguments: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the words that have to occur, and how often."""
    if kind == "keywords:existence":
        return [(keyword, 1) for keyword in arguments["keywords"]]
    if kind == "keywords:frequency" and arguments["relation"] == "at least":
        return [(arguments["keyword"], arguments["frequency"])]
    if kind == "keywords:letter_frequency" and arguments["let_relation"] == "at least":
        return [(arguments["letter"], arguments["let_frequency"])]
    return []


def _body(
    wanted: Mapping[str, Any], keywords: Sequence[tuple[str, int]], language: Language
) -> str:
    """Return lines that hold what may stand anywhere."""
    few = wanted.get("length_constraints:number_words", {}).get("relation") == "less than"
    lines = [(_SHORT if few else _SENTENCE)[language]]
    lines += [" ".join([keyword] * times) for keyword, times in keywords]
    if (capitals := wanted.get("change_case:capital_word_frequency")) is not None and capitals[
        "capital_relation"
    ] == "at least":
        lines.append("OK " * capitals["capital_frequency"])
    if (sentences := wanted.get("length_constraints:number_sentences")) is not None and sentences[
        "relation"
    ] == "at least":
        lines += [_SENTENCE[language]] * sentences["num_sentences"]
    if (words := wanted.get("length_constraints:number_words")) is not None and words[
        "relation"
    ] == "at least":
        lines.append(f"{_FILLER[language]} " * words["num_words"])
    if "detectable_format:constrained_response" in wanted:
        lines.append(OPTIONS[0])
    if (marks := wanted.get("detectable_content:number_placeholders")) is not None:
        lines.append("[name] " * marks["num_placeholders"])
    if (marks := wanted.get("detectable_format:number_highlighted_sections")) is not None:
        lines.append("*one part* " * marks["num_highlights"])
    return "\n".join(line.strip() for line in lines)


def _around(body: str, wanted: Mapping[str, Any], language: Language) -> str:
    """Return `body` with what has to stand at certain places."""
    parts = [body]
    if "detectable_format:title" in wanted:
        parts.insert(0, "<<a title>>")
    if (sections := wanted.get("detectable_format:multiple_sections")) is not None:
        marks = range(1, sections["num_sections"] + 1)
        parts += [f"{sections['section_spliter']} {mark}" for mark in marks]
    if (bullets := wanted.get("detectable_format:number_bullet_lists")) is not None:
        parts += ["* point"] * bullets["num_bullets"]
    response = "\n".join(parts)
    if (count := wanted.get("length_constraints:number_paragraphs")) is not None:
        response += f"\n***\n{_SENTENCE[language]}" * (count["num_paragraphs"] - 1)
    if (opening := wanted.get("length_constraints:nth_paragraph_first_word")) is not None:
        paragraphs = [_SENTENCE[language]] * (opening["num_paragraphs"] - 1) + [response]
        blank = "" if language == "zh" else " "
        chosen = opening["nth_paragraph"] - 1
        paragraphs[chosen] = opening["first_word"] + blank + paragraphs[chosen]
        response = "\n\n".join(paragraphs)
    if "combination:two_responses" in wanted:
        response += f"\n******\n{_OTHER_ANSWER[language]}"
    if (repeated := wanted.get("combination:repeat_prompt")) is not None:
        response = f"{repeated['prompt_to_repeat']}\n{response}"
    if (postscript := wanted.get("detectable_content:postscript")) is not None:
        response += f"\n{postscript['postscript_marker']} {_SENTENCE[language]}"
    if (ending := wanted.get("startend:end_checker")) is not None:
        response += f"\n{ending['end_phrase']}"
    return f'"{response}"' if "startend:quotation" in wanted else response
