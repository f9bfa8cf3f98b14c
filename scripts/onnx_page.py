"""The pages of the reference that say which ops of ONNX and ONNX Runtime are supported, by what and in which types."""

from __future__ import annotations

import textwrap

from onnx import defs
from tilewright.frontends.rewrites import functions, unsigned
from tilewright.frontends.rewrites.legalize import rules
from tilewright.frontends.rewrites.rule import OWN_DOMAIN, Rule
from tilewright.frontends.rewrites.supported import CONTROL_FLOW, UNVERIFIED, VERIFIED

_OPS = """# Supported ONNX ops

Models of every opset from 7 on are imported. ONNX's own converter raises those before 17. Then
[rules](onnx-rules.md) replace ops that IREE's importer lacks or computes otherwise than ONNX says, and every op that is
left must be one that the importer is known to take. An op that is not on this page is refused with the name of its
node. [Types](onnx-types.md) lists the types that are tested.

## Ops that the importer takes as they are

{imported}.

## Ops that need more

| op | since opset | by |
|---|---|---|
{others}
"""

_IMPORTER = "importer"

_RULES = """# ONNX ops that rules replace

A rule replaces an op, or some of its forms, before IREE's importer sees it:
[rewrites/ops](../../python/tilewright/frontends/rewrites/ops) has a file for each op or family.

| op | forms | why |
|---|---|---|
"""

_TYPES = """# Tested types of ONNX ops

The types of an op's first input in those tests of the onnx package that pass. Other types may work, too. Types of
eight bits or fewer that IREE lacks (float8, float4, int4, uint4, int2, uint2) are bytes with their bits inside a
program: they can be cast, quantised, dequantised and moved.

| op | types |
|---|---|
"""


def onnx_page() -> str:
    """Returns the table of ONNX's own ops."""
    latest = {schema.name: schema.since_version for schema in defs.get_all_schemas() if schema.domain == ""}
    own = {op: rule for (domain, op), rule in rules().items() if domain == ""}
    by = {op: _by(op, own) for op in sorted(latest)}
    imported = textwrap.fill(", ".join(op for op in by if by[op] == _IMPORTER), 118, break_on_hyphens=False)
    others = [f"| {op} | {latest[op]} | {by[op]} |" for op in by if by[op] != _IMPORTER]
    return _OPS.format(imported=imported, others="\n".join(others))


def onnx_rules_page() -> str:
    """Returns the table of rules."""
    shown = (rule for rule in rules().values() if rule.domain != OWN_DOMAIN)
    rows = (
        f"| {f'{rule.domain}.{rule.op}'.lstrip('.')} | {rule.forms} | {rule.why} |"
        for rule in sorted(shown, key=lambda rule: (rule.domain, rule.op))
    )
    return _RULES + "\n".join(rows) + "\n"


def onnx_types_page() -> str:
    """Returns the table of tested types."""
    rows = (f"| {op} | {types.replace(' ', ', ')} |" for op, types in sorted(VERIFIED.items()))
    return _TYPES + "\n".join(rows) + "\n"


def _by(op: str, own: dict[str, Rule]) -> str:
    parts = []
    if op in own or op in unsigned.REPLACED:
        parts.append("rule")
    if op in functions.DEFINED:
        parts.append("definition")
    if op in VERIFIED:
        parts.append(_IMPORTER)
    elif op in CONTROL_FLOW or op in UNVERIFIED:
        parts.append(f"{_IMPORTER}, partly")
    return ", ".join(parts) if parts else "refused"
