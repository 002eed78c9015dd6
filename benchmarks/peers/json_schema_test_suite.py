"""The JSON-Schema-Test-Suite against the plugin json-schema: counts, and every difference by name.

    python benchmarks/peers/json_schema_test_suite.py CHECKOUT [--dialect draft2020-12]

CHECKOUT is a copy of github.com/json-schema-org/JSON-Schema-Test-Suite. Optional tests are run too.
A schema that the plugin refuses when it is read counts as refused, with its reason.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from rlvr_plugin_json_schema.keywords import DIALECTS, TooCostlyError, errors_of
from rlvr_plugin_json_schema.schema import SchemaFaultError, read_schema

NAMES = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft7": "http://json-schema.org/draft-07/schema",
    "draft6": "http://json-schema.org/draft-06/schema",
    "draft4": "http://json-schema.org/draft-04/schema",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--dialect", choices=list(NAMES), default="draft2020-12")
    arguments = parser.parse_args()
    assert NAMES[arguments.dialect] in DIALECTS
    counts: Counter[str] = Counter()
    folder = arguments.checkout / "tests" / arguments.dialect
    for path in sorted(folder.rglob("*.json")):
        place = str(path.relative_to(folder))
        for case in json.loads(path.read_text("utf-8")):
            run_case(place, case, NAMES[arguments.dialect], counts)
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


def run_case(place: str, case: dict, dialect: str, counts: Counter[str]) -> None:
    kind = "optional" if place.startswith("optional") else "required"
    schema = case["schema"]
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    try:
        read = read_schema({"$schema": dialect, **schema})
    except SchemaFaultError as error:
        counts[f"{kind}: refused"] += len(case["tests"])
        print(f"refused   {place}: {case['description']}: {str(error)[:160]}")
        return
    for test in case["tests"]:
        try:
            valid = not errors_of(read.validator, test["data"])
        except TooCostlyError as error:
            valid = str(error)
        same = valid == test["valid"]
        counts[f"{kind}: {'same' if same else 'different'}"] += 1
        if not same:
            told = f"{case['description']}: {test['description']}"
            print(f"different {place}: {told}: {valid} for {str(test['data'])[:60]!r}")


if __name__ == "__main__":
    main()
