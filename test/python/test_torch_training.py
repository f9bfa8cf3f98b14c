"""The back end of torch.compile in training: gradients, and weights and statistics that change."""

from __future__ import annotations

import copy

import pytest
from torch_cases import assert_close, compare
from torch_compile_cases import CASES, assert_ours, compiled

torch = pytest.importorskip("torch")


backend = pytest.importorskip("tilewright.torch.backend")


nn = torch.nn


pytestmark = pytest.mark.usefixtures("fresh_torch_backend")


@pytest.mark.parametrize("name", ["mlp", "norms", "attention with a mask", "vision", "embedding"])
def test_gradients(name: str) -> None:
    function, arguments = CASES[name]()
    reference = copy.deepcopy(function).double()
    wide = tuple(x.double() if x.is_floating_point() else x for x in arguments)
    for model, given in ((compiled(function), arguments), (reference, wide)):
        result = model(*given)
        result = result["mixed"] if isinstance(result, dict) else result
        (result * torch.linspace(0.5, 1.5, result.shape[-1], dtype=result.dtype)).square().sum().backward()
    assert {report.kind for report in backend.reports} == {"forward", "backward"}
    # A bias in front of a norm has a gradient of zero but for rounding errors, so the largest gradient is the scale.
    largest = max(float(want.grad.abs().max()) for want in reference.parameters())
    for got, want in zip(function.parameters(), reference.parameters(), strict=True):
        compare(got.grad, want.grad, scale=largest)


def test_training_steps_see_updated_weights() -> None:
    module = nn.Sequential(nn.Linear(17, 33), nn.LayerNorm(33), nn.GELU(), nn.Linear(33, 9))
    reference = copy.deepcopy(module).double()
    x, y = torch.randn(5, 17), torch.randint(0, 9, (5,))
    for model, held, given in (
        (compiled(module), module, x),
        (reference, reference, x.double()),
    ):
        optimizer = torch.optim.SGD(held.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(given), y).backward()
            optimizer.step()
    for got, want in zip(module.parameters(), reference.parameters(), strict=True):
        compare(got, want)


def test_inference_sees_updated_weights() -> None:
    module = nn.Linear(33, 40).eval()
    x = torch.randn(5, 33)
    run = compiled(module)
    with torch.no_grad():
        run(x)
        module.weight.mul_(2.0)
        assert_close(run(x), module, (x,))
        module.weight.data = torch.randn(40, 33)
        assert_close(run(x), module, (x,))
    assert_ours()


def test_running_statistics_are_updated() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    reference = copy.deepcopy(module).double()
    x = torch.randn(4, 3, 9, 7)
    with torch.no_grad():
        compare(compiled(module)(x), reference(x.double()))
    for got, want in zip(module.buffers(), reference.buffers(), strict=True):
        compare(got, want)
