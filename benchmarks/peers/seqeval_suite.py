"""The tests of seqeval against the plugin f1-extraction: counts, and each difference by name.

    python benchmarks/peers/seqeval_suite.py CHECKOUT

CHECKOUT is a copy of github.com/chakki-works/seqeval, or its unpacked source archive; its tests are
run from there, so they need what it needs (numpy, scikit-learn). Each call of `f1_score` that
averages over all entities is noted, with the entities that seqeval itself reads from the tags.
"""

from __future__ import annotations

import sys
from pathlib import Path

from recorded import Recorder, Span, run_and_compare


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(checkout))
    from seqeval import metrics

    recorder = Recorder()
    recorder.note(metrics, "f1_score", read)
    run_and_compare(recorder, [checkout / "tests"])


def read(args: tuple, kwargs: dict, answer: float) -> tuple | None:
    given = dict(zip(("y_true", "y_pred"), args, strict=False)) | kwargs
    if given.get("average", "micro") != "micro":
        return None
    spans = [[spans_of(tags, given) for tags in given[side]] for side in ("y_true", "y_pred")]
    return spans[0], spans[1], float(answer)


def spans_of(tags: list[str], given: dict) -> list[Span]:
    from seqeval.metrics.sequence_labeling import get_entities
    from seqeval.scheme import Entities, auto_detect

    if given.get("mode") != "strict":
        found = get_entities(tags, given.get("suffix", False))
        return [Span(kind, start, end + 1) for kind, start, end in found]
    scheme = given.get("scheme") or auto_detect([tags], given.get("suffix", False))
    (found,) = Entities([tags], scheme, given.get("suffix", False)).entities
    return [Span(one.tag, one.start, one.end) for one in found]


if __name__ == "__main__":
    main()
