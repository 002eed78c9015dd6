"""Train a tiny random model for two steps with what is installed, in a temporary folder."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rlvr_core.testing.tiny_model import make_tiny_model


def main() -> None:
    """Write model, data and stack, and run ``rlvr train`` on them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tiny_model(folder / "model")
        row = {"prompt": "one plus one", "verifier": {"type": "math-sympy", "answer": "2"}}
        (folder / "train.jsonl").write_text(f"{json.dumps(row)}\n" * 4, "utf-8")
        stack = {
            "model": str(folder / "model"),
            "data": {"train": {"path": "train.jsonl"}},
            "rollout": {"group_size": 4, "prompts_per_step": 2, "max_completion_tokens": 8},
            "verifiers": [{"math-sympy": {"extraction": "flexible"}}],
            "train": {"steps": 2, "learning_rate": 1e-3, "precision": "fp32"},
            "evaluate": {"splits": []},
        }
        (folder / "stack.yaml").write_text(json.dumps(stack), "utf-8")  # JSON is YAML
        command = ["train", str(folder / "stack.yaml"), "--out", str(folder / "run")]
        rlvr = str(Path(sys.executable).with_name("rlvr"))
        subprocess.run([rlvr, *command], check=True)  # noqa: S603 - fixed arguments


if __name__ == "__main__":
    main()
