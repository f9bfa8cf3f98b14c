"""LSTM with peepholes, which is refused."""

from __future__ import annotations

from tilewright.errors import ModelError
from tilewright.frontends.rewrites.rule import Operation, Rule


def _refuse_peepholes(operation: Operation) -> bool:
    if len(operation.inputs) > 7 and operation.inputs[7]:
        raise ModelError(
            "LSTM with peepholes is not supported, as IREE's importer leaves them out",
            where=f"'{operation.name}'",
            hint="spell the recurrence out in the model",
        )
    return False


RULES = (
    Rule("LSTM", _refuse_peepholes, "IREE leaves peepholes out, so they are refused", forms="peepholes"),
)
