"""Proofs that rows are computed by themselves: a module for more rows has the results of one for fewer."""

from __future__ import annotations

from typing import Any

import pytest
from tilewright.iree.rows import EQUAL, answer_rows

_MODULE = """
util.global private @weight = #stream.parameter.named<"model"::"weight"> : tensor<6x6xf32>
util.func public @net$async(%x: !hal.buffer_view, %y: !hal.buffer_view) -> !hal.buffer_view {{
  %a = hal.tensor.import %x : !hal.buffer_view -> tensor<{n}x5x6xf32>
  %b = hal.tensor.import %y : !hal.buffer_view -> tensor<6xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{n}x5x6xf32>
  %rows = tensor.empty() : tensor<5x6xf32>
  {body}
  %out = hal.tensor.export %r : {type} -> !hal.buffer_view
  util.return %out : !hal.buffer_view
}}
"""

_EACH = "{{{{indexing_maps = [{maps}], iterator_types = [{kinds}]}}}}"


def _generic(operands: str, outs: str, maps: str, kinds: str, body: str, types: str, result: str) -> str:
    """Returns a linalg.generic; `maps` and `kinds` as short text, loops being i, j and k."""
    loops = "(i, j, k)"
    spelled = ", ".join(f"affine_map<{loops} -> ({each.strip()})>" for each in maps.split(";"))
    iterators = ", ".join(f'"{kind}"' for kind in kinds.split())
    attributes = _EACH.format(maps=spelled, kinds=iterators)
    inputs = f"ins({operands} : {types}) " if operands else ""
    return f"linalg.generic {attributes} {inputs}outs({outs} : {result}) {{{{ {body} }}}} -> {result}"


def _mapped(body: str, second: str = "k", operand: str = "%b", kind: str = "tensor<6xf32>") -> str:
    """Returns an op on every element of the rows and of another operand."""
    return "%r = " + _generic(
        f"%a, {operand}",
        "%empty",
        f"i, j, k; {second}; i, j, k",
        "parallel parallel parallel",
        f"^bb0(%p: f32, %q: f32, %o: f32): {body}",
        f"tensor<{{n}}x5x6xf32>, {kind}",
        "tensor<{n}x5x6xf32>",
    )


_ADD = "%s = arith.addf %p, %q : f32 linalg.yield %s : f32"
_ROWS = "tensor<{n}x5x6xf32>"


def _proof(body: str, type: str = _ROWS, *, small: int = 3, large: int = 4) -> Any:
    """Returns the outputs if the rows are proven to be independent, else the reason."""
    texts = [
        _MODULE.format(
            n=n, body=body.format(n=n, m=n * 5, last=n - 1), type=type.format(n=n, m=n * 5)
        ).encode()
        for n in (small, large)
    ]
    header = {"split": len(texts[0]), "entry": "net", "axes": [0, EQUAL]}
    answer, _ = answer_rows(header, b"".join(texts))
    return answer["refuted"] or answer["outputs"]


PROVEN = {
    "an op on elements": _mapped(_ADD),
    "a product with a weight": """
      %w = util.global.load @weight : tensor<6x6xf32>
      %flat = tensor.collapse_shape %a [[0, 1], [2]] : tensor<{n}x5x6xf32> into tensor<{m}x6xf32>
      %e = tensor.empty() : tensor<{m}x6xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x6xf32>) -> tensor<{m}x6xf32>
      %p = linalg.matmul ins(%flat, %w : tensor<{m}x6xf32>, tensor<6x6xf32>)
        outs(%f : tensor<{m}x6xf32>) -> tensor<{m}x6xf32>
      %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [{n}, 5, 6]
        : tensor<{m}x6xf32> into tensor<{n}x5x6xf32>""",
    "the number of the row": _mapped(
        "%i = linalg.index 0 : index %c = arith.index_cast %i : index to i32 "
        "%s = arith.sitofp %c : i32 to f32 linalg.yield %s : f32"
    ),
    "a slice of each row": """
      %s = tensor.extract_slice %a[0, 1, 0] [{n}, 3, 6] [1, 1, 1] : tensor<{n}x5x6xf32> to tensor<{n}x3x6xf32>
      %r = tensor.pad %s low[0, 2, 0] high[0, 0, 0] {{
        ^bb0(%i: index, %j: index, %k: index): tensor.yield %zero : f32
      }} : tensor<{n}x3x6xf32> to tensor<{n}x5x6xf32>""",
    "a table with an entry for each row": """
      %t = arith.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]]]> : tensor<5x1x1xf32>
      %u = tensor.extract_slice %t[0, 0, 0] [{n}, 1, 1] [1, 1, 1] : tensor<5x1x1xf32> to tensor<{n}x1x1xf32>
      """
    + _mapped(_ADD, "i, 0, 0", "%u", "tensor<{n}x1x1xf32>"),
}

REFUTED = {
    "the sum of all rows": (
        """
      %f = linalg.fill ins(%zero : f32) outs(%rows : tensor<5x6xf32>) -> tensor<5x6xf32>
      %r = linalg.reduce ins(%a : tensor<{n}x5x6xf32>) outs(%f : tensor<5x6xf32>) dimensions = [0]
        (%p: f32, %q: f32) {{ %s = arith.addf %p, %q : f32 linalg.yield %s : f32 }}""",
        "tensor<5x6xf32>",
    ),
    "the number of rows": (
        "%c = arith.constant {n}.0 : f32 " + _mapped(_ADD, "", "%c", "f32"),
        _ROWS,
    ),
    "rows in another place": (
        """
      %t = tensor.empty() : tensor<5x{n}x6xf32>
      %u = linalg.transpose ins(%a : tensor<{n}x5x6xf32>) outs(%t : tensor<5x{n}x6xf32>) permutation = [1, 0, 2]
      %v = tensor.collapse_shape %u [[0, 1], [2]] : tensor<5x{n}x6xf32> into tensor<{m}x6xf32>
      %r = tensor.expand_shape %v [[0, 1], [2]] output_shape [{n}, 5, 6]
        : tensor<{m}x6xf32> into tensor<{n}x5x6xf32>""",
        _ROWS,
    ),
    "the last row": (
        """
      %l = tensor.extract_slice %a[{last}, 0, 0] [1, 5, 6] [1, 1, 1] : tensor<{n}x5x6xf32> to tensor<1x5x6xf32>
      """
        + _mapped(_ADD, "0, j, k", "%l", "tensor<1x5x6xf32>"),
        _ROWS,
    ),
    "the first row": (
        """
      %l = tensor.extract_slice %a[0, 0, 0] [1, 5, 6] [1, 1, 1] : tensor<{n}x5x6xf32> to tensor<1x5x6xf32>
      """
        + _mapped(_ADD, "0, j, k", "%l", "tensor<1x5x6xf32>"),
        _ROWS,
    ),
    "an element of another row": (
        _mapped(
            "%i = linalg.index 1 : index %e = tensor.extract %a[%i, %i, %i] : tensor<{n}x5x6xf32> "
            "linalg.yield %e : f32"
        ),
        _ROWS,
    ),
    "another constant in the body": (
        _mapped("%c = arith.constant {n}.0 : f32 %s = arith.addf %p, %c : f32 linalg.yield %s : f32"),
        _ROWS,
    ),
}


@pytest.mark.parametrize("name", PROVEN)
def test_rows_that_are_independent_are_proven(name: str) -> None:
    assert _proof(PROVEN[name]) == [(0, 3)]


@pytest.mark.parametrize("name", REFUTED)
def test_rows_that_may_depend_on_others_are_refuted(name: str) -> None:
    body, type = REFUTED[name]
    assert isinstance(_proof(body, type), str)


def test_a_refutation_names_the_op() -> None:
    body, type = REFUTED["the sum of all rows"]
    assert "linalg.reduce" in _proof(body, type)


def test_a_single_row_may_be_read_as_the_first_of_its_dim() -> None:
    """IREE writes the index of a dim of one element as 0."""
    maps = {1: "0, j, k", 4: "i, j, k"}
    texts = {}
    for n, index in maps.items():
        op = "%r = " + _generic(
            "%a",
            "%empty",
            f"{index}; i, j, k",
            "parallel parallel parallel",
            "^bb0(%p: f32, %o: f32): %s = arith.negf %p : f32 linalg.yield %s : f32",
            "tensor<{n}x5x6xf32>",
            "tensor<{n}x5x6xf32>",
        )
        texts[n] = _MODULE.format(n=n, body=op.format(n=n), type=_ROWS.format(n=n)).encode()
    header = {"split": len(texts[1]), "entry": "net", "axes": [0, EQUAL]}
    answer, _ = answer_rows(header, texts[1] + texts[4])
    assert [tuple(each) for each in answer["outputs"]] == [(0, 1)]


def test_another_result_of_the_same_op_is_refuted() -> None:
    body = """
      %two:2 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>,
          affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>],
          iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a : TYPE) outs(%empty, %empty : TYPE, TYPE) {
        ^bb0(%p: f32, %o: f32, %q: f32): %s = arith.negf %p : f32 linalg.yield %p, %s : f32, f32
      } -> (TYPE, TYPE)
      %r = tensor.extract_slice %two#RESULT[0, 0, 0] [N, 5, 6] [1, 1, 1] : TYPE to TYPE"""
    proofs = []
    for used in ((0, 0), (0, 1)):
        texts = []
        for n, result in zip((3, 4), used, strict=True):
            kind = _ROWS.format(n=n)
            spelled = body.replace("TYPE", kind).replace("RESULT", str(result)).replace("N", str(n))
            texts.append(_MODULE.format(n=n, body=spelled, type=kind).encode())
        header = {"split": len(texts[0]), "entry": "net", "axes": [0, EQUAL]}
        proofs.append(answer_rows(header, b"".join(texts))[0]["refuted"])
    assert proofs[0] == "" and "another result" in proofs[1]
