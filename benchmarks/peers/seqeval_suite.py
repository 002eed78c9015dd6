"""The tests of seqeval against the plugin f1-extraction: counts, and each difference by name.

    python benchmarks/peers/seqeval_suite.py CHECKOUT

CHECKOUT is a copy of github.com/chakki-works/seqeval, or its unpacked source archive; its tests are
run from there, so they need what it needs (numpy, scikit-learn). Each scoring that averages over
all entities is noted, with those that seqeval itself reads from the tags. Most of its tests are
about reading tags, which f1-extraction does not do; two need its `conlleval.pl`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from recorded import Recorder, Span, run_and_compare


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(checkout))
    from seqeval.metrics import sequence_labeling, v1

    recorder = Recorder()
    recorder.note(sequence_labeling, "precision_recall_fscore_support", read_lenient)
    recorder.note(v1, "precision_recall_fscore_support", read_strict)
    sequence_labeling.precision_recall_fscore_support_v1 = v1.precision_recall_fscore_support
    run_and_compare(recorder, [checkout / "tests"])


def read_lenient(args: tuple, kwargs: dict, answer: tuple) -> tuple | None:
    from seqeval.metrics.sequence_labeling import get_entities

    def spans(tags: list[str]) -> list[Span]:
        found = get_entities(tags, kwargs.get("suffix", False))
        return [Span(kind, start, end + 1) for kind, start, end in found]

    return averaged(args, kwargs, answer, spans)


def read_strict(args: tuple, kwargs: dict, answer: tuple) -> tuple | None:
    from seqeval.scheme import Entities, auto_detect

    suffix = kwargs.get("suffix", False)
    scheme = kwargs.get("scheme") or auto_detect(args[0], suffix)

    def spans(tags: list[str]) -> list[Span]:
        (found,) = Entities([tags], scheme, suffix).entities
        return [Span(one.tag, one.start, one.end) for one in found]

    return averaged(args, kwargs, answer, spans)


def averaged(
    args: tuple, kwargs: dict, answer: tuple, spans: Callable[[list[str]], list[Span]]
) -> tuple | None:
    """Return both sides and F1; None for scores of single types, weighted ones and other betas."""
    if kwargs.get("average") != "micro" or kwargs.get("beta", 1.0) != 1.0:
        return None
    wanted, claimed = ([spans(tags) for tags in side] for side in args[:2])
    return wanted, claimed, float(answer[2])


if __name__ == "__main__":
    main()
