"""Forms of RNN, GRU and LSTM, and their results in float64."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tilewright.reference import recurrent

Array = np.ndarray[Any, Any]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}

ACTIVATIONS = (
    "Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh",
    "ThresholdedRelu",
)  # fmt: skip
HAS_ALPHA = tuple(name for name in ACTIVATIONS if recurrent.ACTIVATIONS[name.lower()][1])
HAS_BETA = tuple(name for name in ACTIVATIONS if len(recurrent.ACTIVATIONS[name.lower()][1]) > 1)
INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


@dataclass(frozen=True)
class Form:
    """A recurrence without its numbers. Activations are those of all directions, as ONNX lists them."""

    op: str
    direction: str = "forward"
    layout: int = 0
    activations: tuple[str, ...] = ()
    alphas: tuple[float, ...] = ()
    betas: tuple[float, ...] = ()
    clip: float | None = None
    linear_before_reset: int = 0
    input_forget: int = 0

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def attributes(self, hidden: int) -> dict[str, Any]:
        """Returns the node's attributes; those with default values are left out."""
        given = {
            "direction": self.direction if self.direction != "forward" else None,
            "layout": self.layout or None,
            "activations": list(self.activations) or None,
            "activation_alpha": list(self.alphas) or None,
            "activation_beta": list(self.betas) or None,
            "clip": self.clip,
            "linear_before_reset": self.linear_before_reset or None,
            "input_forget": self.input_forget or None,
        }
        return {"hidden_size": hidden} | {name: value for name, value in given.items() if value is not None}


def run(form: Form, given: Mapping[str, Array]) -> list[Array]:
    """Returns Y, Y_h and, of an LSTM, Y_c. `given` has X, W and R, and may have B, sequence_lens, initial_h, initial_c
    and P."""
    names = [name if name in given else "" for name in INPUTS[: 8 if form.op == "LSTM" else 6]]
    results = ["Y", "Y_h", "Y_c"][: 3 if form.op == "LSTM" else 2]
    node = helper.make_node(form.op, names, results, **form.attributes(given["R"].shape[2]))
    evaluator = ReferenceEvaluator(
        node, opsets={"": 22}, new_ops=[recurrent.RNN, recurrent.GRU, recurrent.LSTM]
    )
    wide = {
        name: value if name == "sequence_lens" else value.astype(np.float64) for name, value in given.items()
    }
    return [np.asarray(result) for result in evaluator.run(None, wide)]
