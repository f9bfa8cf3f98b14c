"""The page of the reference that says which ops of ONNX and ONNX Runtime are supported, and by what."""

from __future__ import annotations

from onnx import defs
from tilewright.frontends.rewrites import functions, unsigned
from tilewright.frontends.rewrites.legalize import rules
from tilewright.frontends.rewrites.rule import OWN_DOMAIN, Rule
from tilewright.frontends.rewrites.supported import CONTROL_FLOW, UNVERIFIED, VERIFIED

_HEAD = """# Which ONNX ops are supported

Models of every opset from 7 on are imported. ONNX's own converter raises those before 17. Then rules replace ops that
IREE's importer lacks or computes otherwise than ONNX says
([rewrites/ops](../../python/tilewright/frontends/rewrites/ops)), and every op that is left must be one that IREE's
importer is known to take. An op outside this table is refused with the name of its node.

The column *types* names the types of an op's first input in those tests of the onnx package that pass. Other types may
work, too. Types of eight bits or fewer that IREE lacks (float8, float4, int4, uint4, int2, uint2) are bytes with their
bits inside a program: they can be cast, quantised, dequantised and moved.

| op | since opset | by | types |
|---|---|---|---|
"""

_OTHERS = """
## Ops of other domains

| op | forms | why |
|---|---|---|
"""


def onnx_page() -> str:
    """Returns the page of ONNX's ops."""
    latest = {schema.name: schema.since_version for schema in defs.get_all_schemas() if schema.domain == ""}
    own = {op: rule for (domain, op), rule in rules().items() if domain == ""}
    rows = [f"| {op} | {since} | {_by(op, own)} | {_types(op)} |" for op, since in sorted(latest.items())]
    others = [
        f"| {rule.domain}.{rule.op} | {rule.forms} | {rule.why} |"
        for rule in sorted(rules().values(), key=lambda rule: (rule.domain, rule.op))
        if rule.domain not in ("", OWN_DOMAIN)
    ]
    return _HEAD + "\n".join(rows) + "\n" + _OTHERS + "\n".join(others) + "\n"


def _by(op: str, own: dict[str, Rule]) -> str:
    parts = []
    if op in own:
        parts.append(f"a rule ({own[op].forms}): {own[op].why}")
    if op in functions.DEFINED:
        parts.append("ONNX's definition by other ops")
    if op in unsigned.REPLACED:
        parts.append("a rule for unsigned integers, which IREE takes as signed")
    if op in VERIFIED:
        parts.append("IREE's importer")
    elif op in CONTROL_FLOW:
        parts.append("IREE's importer, some forms")
    elif op in UNVERIFIED:
        parts.append("IREE's importer, without a test of ours")
    return "; ".join(parts) if parts else "refused"


def _types(op: str) -> str:
    return VERIFIED.get(op, "").replace(" ", ", ")
