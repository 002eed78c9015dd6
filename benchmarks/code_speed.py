"""Print how many solutions of HumanEval code-docker judges in a second.

    python benchmarks/code_speed.py HumanEval.jsonl.gz                  # bubblewrap
    python benchmarks/code_speed.py HumanEval.jsonl.gz --image sha256:…   # Docker, too

One process judges, as one worker does. The rate of Docker is compared with the rate at which
the daemon alone makes, starts and removes containers with the same limits, as many at once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker
from rlvr_plugin_code_docker import CodeDocker
from rlvr_plugin_code_docker.containers import AHEAD, host_config

from rlvr_core.api import VerifyRow

MEMORY_BYTES = 512 << 20
CONTAINERS = 40
WARM_UP = 8


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--image")
    options = parser.parse_args()
    with gzip.open(options.data, "rt", encoding="utf-8") as file:
        tasks = [json.loads(line) for line in file]
    if options.image is None:
        print(f"bubblewrap: {solutions_a_second(tasks, backend='bubblewrap'):.1f} solutions/s")
        return
    api = docker.APIClient(version="auto")
    settings = {"backend": "docker", "image": options.image}
    bare = containers_a_second(api, options.image)
    judged = solutions_a_second(tasks[: CONTAINERS + WARM_UP], **settings)
    print(f"docker: {judged:.1f} solutions/s, {bare:.1f} bare containers/s: {judged / bare:.0%}")


def solutions_a_second(tasks: list[dict], **settings: str) -> float:
    """Return the rate of one process, without the first, which wait for their sandboxes."""
    verifier = CodeDocker(CodeDocker.Config(**settings))
    start = 0.0
    for number, task in enumerate(tasks):
        if number == WARM_UP:
            start = time.perf_counter()
        truth = CodeDocker.GroundTruth(
            tests=[task["test"]], entry_point=task["entry_point"], context=task["prompt"]
        )
        completion = f"```python\n{task['prompt']}{task['canonical_solution']}\n```"
        row = VerifyRow(id="row", prompt="", completion=completion, ground_truth=truth)
        assert verifier.verify_row(row).score == 1, task["task_id"]
    rate = (len(tasks) - WARM_UP) / (time.perf_counter() - start)
    verifier.close()
    return rate


def containers_a_second(api: docker.APIClient, image: str) -> float:
    """Return the rate of containers that start Python, say nothing and end."""

    def one(_: int) -> None:
        made = api.create_container_from_config(
            {
                "Image": image,
                "Cmd": ["python3", "-c", "pass"],
                "User": "65534:65534",
                "HostConfig": {**host_config(MEMORY_BYTES), "AutoRemove": False},
            }
        )
        api.start(made["Id"])
        api.wait(made["Id"])
        api.remove_container(made["Id"])

    with ThreadPoolExecutor(AHEAD) as pool:
        list(pool.map(one, range(AHEAD)))
        start = time.perf_counter()
        list(pool.map(one, range(CONTAINERS)))
        return CONTAINERS / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
