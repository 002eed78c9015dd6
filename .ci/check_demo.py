"""Check what `rlvr demo` reached: the model learnt, and the control arm stayed where it was."""

import json
import sys
from pathlib import Path

REWARDING = "math-sympy"
"""The grader that pays; the other one only looks."""

GOAL = 0.65
"""Least accuracy on dev, strict, after training."""


def main() -> int:
    """Print the numbers that matter; return 1 when one is not as it must be."""
    summary = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    changes = {
        (change["arm"], change["split"], change["grader"]): change for change in summary["changes"]
    }
    problems = []
    for key, change in changes.items():
        before, after = change["before"]["accuracy"], change["after"]["accuracy"]
        print(f"{' '.join(key):<36} {before:6.1%} -> {after:6.1%}")  # noqa: T201
    accuracy = changes["verifier", "dev", REWARDING]["after"]["accuracy"]
    if accuracy < GOAL:
        problems.append(f"dev accuracy after training is {accuracy:.1%}, less than {GOAL:.0%}")
    for key, change in changes.items():
        paired = change["paired"]
        if key[0] == "control" and key[2] == REWARDING and paired and paired["separated"]:
            problems.append(f"{' '.join(key)}: moved by {paired['difference']:.1%}, separated")
    for problem in problems:
        print(f"problem: {problem}")  # noqa: T201
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
