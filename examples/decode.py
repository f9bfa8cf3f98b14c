"""A decode loop: each step appends a key and a value to caches that stay on the device and are updated in place.

The step is one layer of attention with four heads, so that the loop is all there is to read.
"""

from __future__ import annotations

import numpy as np
import onnx.parser
import tilewright

HEADS, POSITIONS, SIZE = 4, 64, 16

# A mask hides the positions that are still empty. Everything reads the caches after the update (present_*), not before.
STEP = f"""
<ir_version: 10, opset_import: ["": 20]>
step (float[1,{HEADS},1,{SIZE}] query, float[1,{HEADS},1,{SIZE}] key, float[1,{HEADS},1,{SIZE}] value,
      int64[1] position, float[1,1,1,{POSITIONS}] mask,
      float[1,{HEADS},{POSITIONS},{SIZE}] past_keys, float[1,{HEADS},{POSITIONS},{SIZE}] past_values)
  => (float[1,{HEADS},1,{SIZE}] attended,
      float[1,{HEADS},{POSITIONS},{SIZE}] present_keys, float[1,{HEADS},{POSITIONS},{SIZE}] present_values)
<int64[4] ones = {{1, 1, 1, 1}}, int64[4] row = {{1, {HEADS}, 1, {SIZE}}}, float scale = {{{SIZE**-0.5}}}>
{{
  one = Reshape(position, ones)
  index = Expand(one, row)
  present_keys = ScatterElements<axis = 2>(past_keys, index, key)
  present_values = ScatterElements<axis = 2>(past_values, index, value)
  columns = Transpose<perm = [0, 1, 3, 2]>(present_keys)
  products = MatMul(query, columns)
  scaled = Mul(products, scale)
  scores = Add(scaled, mask)
  weights = Softmax<axis = -1>(scores)
  attended = MatMul(weights, present_values)
}}
"""


def main() -> None:
    state = {"present_keys": "past_keys", "present_values": "past_values"}
    program = tilewright.compile(onnx.parser.parse_model(STEP), state=state)

    steps = program.steps()  # the caches begin with zeros; `steps(past_keys=...)` begins with given ones
    generator = np.random.default_rng(0)
    keys, values = [], []
    for position in range(10):
        query, key, value = generator.standard_normal((3, 1, HEADS, 1, SIZE), dtype=np.float32)
        mask = np.where(np.arange(POSITIONS) <= position, 0, -np.inf).astype(np.float32).reshape(1, 1, 1, -1)
        (attended,) = steps(query, key, value, np.array([position]), mask)

        keys.append(key)
        values.append(value)
        np.testing.assert_allclose(attended, reference(query, keys, values), rtol=1e-4, atol=1e-5)
    cache = steps.state("past_keys")  # a copy, at any time
    np.testing.assert_array_equal(cache[:, :, :10], np.concatenate(keys, axis=2))
    print(f"10 steps are right; {len(program.kernels)} kernels of ours; the cache has {cache.nbytes} bytes")


def reference(query: np.ndarray, keys: list[np.ndarray], values: list[np.ndarray]) -> np.ndarray:
    """Returns the attention of one query over all keys so far, in float64."""
    k, v = (np.concatenate(rows, axis=2).astype(np.float64) for rows in (keys, values))
    scores = query @ k.swapaxes(2, 3) * SIZE**-0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


if __name__ == "__main__":
    main()
