"""Frozen weights in the back end of torch.compile: constants of the programs until someone changes them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from torch_cases import assert_close
from torch_compile_cases import CASES, compiled, left

torch = pytest.importorskip("torch")


backend = pytest.importorskip("tilewright.torch.backend")


nn = torch.nn


pytestmark = pytest.mark.usefixtures("fresh_torch_backend")

_CHANGED = "weights were changed after they had been frozen, so they are read at each call now"


def _mlp() -> Any:
    return nn.Sequential(nn.Linear(48, 64), nn.GELU(), nn.Linear(64, 33)).eval()


@pytest.mark.parametrize("name", ["mlp", "norms", "encoder, norm first", "vision", "embedding"])
def test_a_frozen_model_computes_the_same(name: str) -> None:
    function, arguments = CASES[name]()
    function.eval()
    run = compiled(function, freezing=True)
    with torch.no_grad():
        for _ in range(2):
            assert_close(run(*arguments), function, arguments)
    assert left() == []
    assert len(backend.reports) == 1


def test_frozen_programs_read_inputs_alone() -> None:
    module, x = _mlp(), torch.randn(7, 48)
    inputs: list[int] = []
    original = backend.compile_graph

    def watch(*arguments: Any) -> Any:
        result = original(*arguments)
        inputs.extend(len(part.program.signature.inputs) for part in result.parts)
        return result

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(backend, "compile_graph", watch)
        compiled(module, freezing=True)(x)
        torch._dynamo.reset()
        compiled(module)(x)
    assert inputs == [1, 5]


def test_the_option_of_inductor_is_followed() -> None:
    module, x = _mlp(), torch.randn(7, 48)
    run = compiled(module)
    with torch.no_grad(), torch._inductor.config.patch(freezing=True):
        assert_close(run(x), module, (x,))
        module[0].weight.add_(1.0)
        assert_close(run(x), module, (x,))
    assert left() == [_CHANGED]


def _in_place(module: Any) -> None:
    module[2].weight.mul_(3.0)


def _loaded(module: Any) -> None:
    module.load_state_dict({name: each + 1.0 for name, each in module.state_dict().items()})


def _replaced(module: Any) -> None:
    module[0].weight = nn.Parameter(torch.randn(64, 48))


def _optimised(module: Any) -> None:
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.SGD(module.parameters(), lr=0.1).step()


@pytest.mark.parametrize("change", [_in_place, _loaded, _replaced, _optimised])
def test_changes_of_weights_are_seen(change: Any) -> None:
    module, x = _mlp(), torch.randn(7, 48)
    run = compiled(module, freezing=True)
    with torch.no_grad():
        assert_close(run(x), module, (x,))
        change(module)
        for _ in range(2):
            assert_close(run(x), module, (x,))
        module[2].bias.add_(1.0)
        assert_close(run(x), module, (x,))
    assert left().count(_CHANGED) <= 1  # another parameter may also make Dynamo trace the module anew


def test_buffers_that_the_graph_changes_are_not_frozen() -> None:
    module = nn.BatchNorm1d(40).train()
    reference, x = copy.deepcopy(module), torch.randn(33, 40)
    run = compiled(module, freezing=True)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(run(x), reference(x))
    torch.testing.assert_close(module.running_var, reference.running_var)
    assert _CHANGED not in left()


def test_graphs_with_gradients_are_not_frozen() -> None:
    module, x = _mlp(), torch.randn(7, 48)
    run = compiled(module, freezing=True)
    for _ in range(2):
        run(x).sum().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.sub_(0.1 * parameter.grad)
        assert_close(run(x).detach(), module, (x,))
    assert left() == []


def test_weights_of_inference_mode_are_read_at_each_call() -> None:
    with torch.inference_mode():
        module, x = _mlp(), torch.randn(7, 48)
        run = compiled(module, freezing=True)
        assert_close(run(x), module, (x,))
        module[0].weight.add_(1.0)
        assert_close(run(x), module, (x,))


def test_every_shape_of_a_frozen_model_is_right() -> None:
    module = _mlp()
    run = torch.compile(
        module, backend=backend.tilewright, dynamic=True, options={"threads": 1, "freezing": True}
    )
    with torch.no_grad():
        for rows in (33, 35, 33):
            x = torch.randn(rows, 48)
            assert_close(run(x), module, (x,))
            module[0].weight.add_(1.0)
