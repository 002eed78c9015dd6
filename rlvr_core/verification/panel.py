"""A verifier that asks others: what each member is given, and one verdict from theirs.

The members are verifiers like any other, with workers and deadlines of their own. What is done here
runs in the process that asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from rlvr_core.api.errors import exception_text
from rlvr_core.api.plugin import Verifier, VerifyBatch, VerifyRow
from rlvr_core.api.verdicts import FailureCategory, Verdict
from rlvr_core.plugins.members import shares
from rlvr_core.verification.contract import Contract, ContractError, check_count, decode
from rlvr_core.verification.grading import error_verdict
from rlvr_core.verification.plan import Instance
from rlvr_core.verification.rows import RawRow


class Panel:
    """One verifier that asks others.

    Args:
        instance: The one that asks.
        by_name: It and its members, by instance name.
        seed: Handed to it in `VerifyBatch.seed`.

    Raises:
        PluginError: It cannot be built.
    """

    def __init__(self, instance: Instance, by_name: Mapping[str, Instance], seed: int) -> None:
        self.name = instance.name
        self._instance = instance
        self._short_names = {one.ref.name: one.entry.name for one in instance.ref.members}
        self._ranges = {
            name: (by_name[name].lowest_score, by_name[name].highest_score)
            for name in self._short_names
        }
        plugin = cast(Verifier, instance.ref.build())
        self._verify = plugin.rlvr_verify  # type: ignore[attr-defined]
        self._contract = Contract(plugin)
        self._seed = seed

    @property
    def members(self) -> list[str]:
        """Instance names of the members."""
        return list(self._short_names)

    def rows_for(self, member: str, rows: Sequence[RawRow]) -> list[RawRow]:
        """Return rows as a member sees them: with its part of the ground truth."""
        short, ref = self._short_names[member], self._instance.ref
        return [replace(row, ground_truth=shares(ref, row.ground_truth)[short]) for row in rows]

    def verdicts(
        self, rows: Sequence[RawRow], found: Mapping[str, Sequence[Verdict]]
    ) -> list[Verdict]:
        """Return one verdict a row.

        Args:
            rows: The rows.
            found: Instance name of each member to its verdicts, in the order of the rows.
        """
        asked = [
            VerifyRow(
                id=row.id,
                prompt=row.prompt,
                completion=row.completion,
                ground_truth={
                    short: self._on_one_scale(found[name][index], *self._ranges[name])
                    for name, short in self._short_names.items()
                },
                metadata=row.metadata,
                finish_reason=row.finish_reason,
            )
            for index, row in enumerate(rows)
        ]
        return [
            replace(
                self._judged(row),
                verifier=self.name,
                version=self._instance.version,
                latency_s=max(verdict.latency_s for verdict in row.ground_truth.values()),
            )
            for row in asked
        ]

    def _judged(self, row: VerifyRow) -> Verdict:
        try:
            (verdict,) = check_count(self._verify(VerifyBatch(rows=(row,), seed=self._seed)), 1)
            return decode(self._contract.encode(verdict, 0.0), "", "")
        except ContractError as exc:
            return error_verdict(FailureCategory.CONTRACT_VIOLATION, str(exc))
        except Exception as exc:  # noqa: BLE001 - the plugin's fault, of this row alone
            return error_verdict(FailureCategory.VERIFIER_EXCEPTION, exception_text(exc))

    @staticmethod
    def _on_one_scale(verdict: Verdict, lowest: float, highest: float) -> Verdict:
        if verdict.score is None:
            return verdict
        return replace(verdict, score=(verdict.score - lowest) / (highest - lowest))
