"""Arguments in memory that the caller lends: programs must not change them.

IREE 3.13 makes a scatter, a sort or an inserted slice in the buffer of an argument, if nothing reads the argument
afterwards. A use at the end of the function makes it work on a copy.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_FUNCTION = re.compile(r'^( *)"util\.func"\(\) <\{.*?^\1\}\)', re.DOTALL | re.MULTILINE)
_ARGUMENT = re.compile(r"(%\w+): ")
_OP = re.compile(r'^ *(%\w+)(?::\d+)? = "([\w.]+)"\(([^)]*)\).*$', re.MULTILINE)
_TYPE = re.compile(r"-> (tensor<(?:[^<>]|<[^<>]*>)*>) loc\(")
_END = re.compile(
    r'^ *(?:%\w+(?::\d+)? = )?"(?:hal\.tensor\.barrier|hal\.tensor\.export|util\.return)"', re.MULTILINE
)
_SEGMENTS = re.compile(r"operandSegmentSizes = array<i32: ([\d, ]+)>")

_VIEWS = frozenset(
    [
        "flow.tensor.bitcast",
        "flow.tensor.reshape",
        "iree_tensor_ext.compute_barrier.start",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract_slice",
    ]
)


def keep_arguments(text: str, *, except_for: Collection[int] = ()) -> str:
    """Returns a module at IREE's preprocessing phase that overwrites none of its arguments, except for those at some
    positions."""
    return _FUNCTION.sub(lambda match: _keep(match[0], except_for), text)


def _keep(function: str, except_for: Collection[int]) -> str:
    arguments = _ARGUMENT.findall(function[function.find("^bb0(") :].partition("\n")[0])
    lent = {name for place, name in enumerate(arguments) if place not in except_for}
    kinds: dict[str, str] = {}  # the types of imported arguments
    imported: dict[str, str] = {}  # imported arguments and views of them, with the argument's tensor
    updated: list[str] = []
    end = 0
    for match in _OP.finditer(function):
        result, op, operands = match[1], match[2], match[3].split(", ")
        if op == "hal.tensor.import" and (kind := _TYPE.search(match[0])):
            if operands[0] in lent:
                imported[result], kinds[result] = result, kind[1]
        elif op in _VIEWS and operands[0] in imported:
            imported[result] = imported[operands[0]]
        elif written := [each for each in _updated(op, operands, match[0]) if each in imported]:
            updated += [imported[each] for each in written]
            end = match.end()
    if not updated:
        return function
    at = _END.search(function, end)
    assert at is not None
    lines = [
        f'    %lent{number} = "util.optimization_barrier"({name}) : ({kinds[name]}) -> {kinds[name]} loc(unknown)\n'
        for number, name in enumerate(dict.fromkeys(updated))
    ]
    return function[: at.start()] + "".join(lines) + function[at.start() :]


def _updated(op: str, operands: list[str], line: str) -> list[str]:
    """Returns the operands whose buffers an op may write to. Loops, branches and calls may have such ops in them."""
    if op.startswith("scf.") or op == "util.call":
        return operands
    if op in ("tensor.insert", "tensor.insert_slice"):
        return operands[1:2]
    if not op.startswith("iree_linalg_ext."):
        return []
    segments = _SEGMENTS.search(line)
    return operands[-int(segments[1].split(",")[-1]) :] if segments else operands
