"""Passes in Python: one rewrites the graph before it is planned, one reports what the planner has decided.

The rewrite replaces x to the power of 3 by two multiplications.
"""

from __future__ import annotations

import numpy as np
import onnx.parser
import tilewright
from tilewright import ir
from tilewright.dialects import arith

MODEL = """
<ir_version: 10, opset_import: ["": 20]>
cubes (float[37,129] x) => (float[37,129] y) <float three = {3.0}>
{
  cubed = Pow(x, three)
  y = Softmax<axis = -1>(cubed)
}
"""


def main() -> None:
    rewritten: list[str] = []
    scopes: list[str] = []

    # A pattern is a function of one kind of operation; it returns True if it has replaced the operation.
    @ir.pattern("math.fpowi")
    def cube(op: ir.OpView) -> bool:
        exponent = op.rhs.owner
        if not isinstance(exponent, ir.Operation) or exponent.name != "arith.constant":
            return False
        if exponent.attributes["value"].value != 3:
            return False
        rewritten.append(str(op.location))
        op.replace(arith.mulf(arith.mulf(op.lhs, op.lhs), op.lhs))
        return True

    @ir.python_pass("multiply-cubes", on="func.func")
    def multiply_cubes(op: ir.OpView) -> None:
        ir.apply_patterns(op, [cube])

    def report(module: ir.OpView) -> None:
        for edge in module.walk("tile.connect"):
            scopes.append(str(ir.view(edge).scope.value))

    model = onnx.parser.parse_model(MODEL)
    program = tilewright.compile(model, passes={"normalized": [multiply_cubes], "planned": [report]})
    assert rewritten, "the graph has no power of 3"
    assert scopes, "no edge stays inside the kernel"
    print(f"rewritten: {len(set(rewritten))} power; edges by scope: {sorted(set(scopes))}")
    for note in program.metadata.notes:
        print(note)

    x = np.random.default_rng(0).standard_normal((37, 129), dtype=np.float32)
    cubed = x.astype(np.float64) ** 3
    exact = np.exp(cubed - cubed.max(-1, keepdims=True))
    exact /= exact.sum(-1, keepdims=True)
    # The exponential turns the relative error of a cube of up to 60 into 60 times as much.
    np.testing.assert_allclose(program(x)[0], exact, rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    main()
