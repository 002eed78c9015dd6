"""The tests of nervaluate against the plugin f1-extraction: counts, and each difference by name.

    python benchmarks/peers/nervaluate_suite.py CHECKOUT

CHECKOUT is a copy of github.com/MantisAI/nervaluate, or its unpacked source archive; its tests are
run from there, so they need what it needs (pandas). Each call of the strict and of the exact
strategy is noted, and its F1 compared: exact is strict without types. Its ends are included ones.
"""

from __future__ import annotations

import sys
from pathlib import Path

from recorded import Recorder, Span, run_and_compare


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(checkout / "src"))
    from nervaluate import strategies

    for name, config in (("Strict", {}), ("Exact", {"ignore_type": True})):
        recorder = Recorder()
        recorder.note(getattr(strategies, f"{name}Evaluation"), "evaluate", read)
        print(f"--- {name.lower()}")
        run_and_compare(recorder, [checkout / "tests"], **config)


def read(args: tuple, kwargs: dict, answer: tuple) -> tuple:
    wanted, claimed = (
        [Span(one.label, one.start, one.end + 1) for one in side] for side in args[1:3]
    )
    return [wanted], [claimed], answer[0].f1


if __name__ == "__main__":
    main()
