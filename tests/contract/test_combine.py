"""A run whose rewards are those of several verifiers: what it records, and what its report says."""

import json

import stacks

from rlvr_core.report.read import read_run
from rlvr_core.report.summary import summarise

COMBINE = {"both": {"plugin": "combine", "of": ["tiny-ifeval", "tiny-whenever"], "rule": "all"}}


def combined_row(row, split, number):
    made = row(split, number)
    truth = made["verifier"] | {"type": "both"}
    return {**made, "verifier": truth}


def test_members_are_recorded_counted_and_reported(run, row, monkeypatch):
    written = stacks.write_stack

    def with_rows_of_both(folder, model, rows, verifiers, **sections):
        rows = {
            split: [combined_row(row, split, number) for number in range(len(of_split))]
            for split, of_split in rows.items()
        }
        return written(folder, model, rows, verifiers, **sections)

    monkeypatch.setattr(stacks, "write_stack", with_rows_of_both)
    finished = run("combined", verifiers=[COMBINE])
    found = read_run(finished.folder)

    rollouts = [one for step in found.rollout_steps for one in found.rollouts(step)]
    pairs = [json.loads(one["diagnostics"])["members"] for one in rollouts]
    passed = [tuple(one["status"] == "passed" for one in pair.values()) for pair in pairs]
    assert {one["verifier"] for one in rollouts} == {"both"}
    assert [one["score"] for one in rollouts] == [float(all(pair)) for pair in passed]

    cells = ("both_passed", "first_passed", "second_passed", "both_failed")
    kinds = ((True, True), (True, False), (False, True), (False, False))
    expected = {cell: passed.count(kind) for cell, kind in zip(cells, kinds, strict=True)}
    counted = [line["agreement"]["both/tiny-ifeval/tiny-whenever"] for line in found.metrics]
    assert {cell: sum(one[cell] for one in counted) for cell in cells} == expected

    disagreed = expected["first_passed"] + expected["second_passed"]
    said = [one for one in summarise(found).sentences if "disagreed" in one]
    assert len(said) == 1
    assert f"tiny-ifeval and tiny-whenever disagreed on {disagreed} of {len(passed)}" in said[0]

    (facts,) = [one for one in finished.manifest["plugins"] if one["name"] == "both"]
    assert [one["name"] for one in facts["members"]] == ["both/tiny-ifeval", "both/tiny-whenever"]
