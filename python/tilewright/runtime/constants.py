"""The constants of a program that runs without IREE: weights, constants, and what IREE computes at load."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.errors import ProgramError
from tilewright.records.kinds import CPU, MachineKind
from tilewright.records.signature import Array, Signature, TensorSpec, element_dtype
from tilewright.runtime.held import HeldFile
from tilewright.runtime.launches import LaunchPlan
from tilewright.runtime.session import Session
from tilewright.runtime.stored import array_of, evaluate_recipe, held_parameters
from tilewright.runtime.tensors import constant_of, parameter_of


class Constants:
    """Weights, in their file's pages, constants, and what IREE computes at load, on the device of the program."""

    def __init__(
        self, plan: LaunchPlan, module: HeldFile, weights: Mapping[str, HeldFile], *, kind: MachineKind = CPU
    ) -> None:
        self._described, self._weights = plan.constants, weights
        self._computed = _compute_at_load(plan, module, weights, kind) if plan.at_load else []
        self._files = {scope: held_parameters(held) for scope, held in weights.items()}

    def get(self, number: int | str) -> Array:
        tensor = self._described[str(number)]
        shape, dtype = tuple(tensor["shape"]), element_dtype(tensor["element"])
        if recipe := tensor.get("recipe"):
            made = evaluate_recipe(recipe, lambda part: self.get(part["name"]).reshape(part["shape"]))
            return made.reshape(shape)
        if "at_load" in tensor:
            computed: Array = self._computed[tensor["at_load"]].reshape(shape)
            return computed
        parameter = parameter_of(tensor)
        if parameter is None:
            return constant_of(tensor, shape, dtype)
        scope, name = parameter
        if scope not in self._files:
            raise ProgramError("its weights are missing", where=f"scope '{scope}'")
        where = f"{self._weights[scope].path}, parameter '{name}'"
        return array_of(self._files[scope].get(name), shape, dtype, where=where)


def _compute_at_load(
    plan: LaunchPlan, module: HeldFile, weights: Mapping[str, HeldFile], kind: MachineKind
) -> list[Array]:
    """Returns what the initializer of the module computes, which IREE runs when it loads the module."""
    outputs = [
        TensorSpec(f"{number}", element_dtype(tensor["element"]).name, tuple(tensor["shape"]))
        for number, tensor in enumerate(plan.computed)
    ]
    session = Session(module, weights, entry=plan.at_load, threads=1, kind=kind)
    try:
        return session([], Signature((), tuple(outputs)))
    finally:
        session.release()
