"""Programs for GPUs without IREE on PyTorch's tensors, which a stand-in for the driver finds in the host's memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tilewright
from cuda_direct_cases import TARGET, place, two_softmaxes
from stand_in_cuda import StandInCuda
from tilewright.errors import InputError
from tilewright.runtime import cuda

torch = pytest.importorskip("torch")

STREAM = 0x51
"""Handle of the stream that PyTorch calls the current one."""


class OnGpu(torch.Tensor):  # type: ignore[misc,name-defined]
    """A tensor in the host's memory that says that it is on a GPU."""

    index = 0

    @property
    def device(self) -> Any:
        return torch.device("cuda", self.index)


def on_gpu(array: np.ndarray[Any, Any]) -> Any:
    return torch.from_numpy(array).as_subclass(OnGpu)


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = torch.empty

    def on_host(*arguments: Any, device: Any = None, **others: Any) -> Any:
        is_on_gpu = device is not None and torch.device(device).type == "cuda"
        return empty(*arguments, device="cpu" if is_on_gpu else device, **others)

    monkeypatch.setattr(torch, "empty", on_host)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=STREAM))


def test_tensors_are_used_where_they_lie_on_the_current_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(two_softmaxes(), tmp_path, monkeypatch, grid_sync=False)
    streams = []
    launch = StandInCuda._launch

    def noted(driver: StandInCuda, function: int, sizes: Any, stream: Any, parameters: int) -> None:
        streams.append(stream)
        launch(driver, function, sizes, stream, parameters)

    monkeypatch.setattr(StandInCuda, "_launch", noted)
    (result,) = placed.program(on_gpu(placed.inputs[0]))
    assert isinstance(result, torch.Tensor) and streams == [STREAM, STREAM]
    assert placed.driver.counts["cuMemcpyHtoDAsync_v2"] == 0
    placed.check([result.numpy()])


def test_tensors_that_kernels_cannot_read_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = place(two_softmaxes(), tmp_path, monkeypatch)
    x = placed.inputs[0]
    shifted = np.empty(x.size + 1, np.float32)[1:].reshape(x.shape)
    shifted[...] = x
    for array in (np.ascontiguousarray(x.T).T, shifted):
        (result,) = placed.program(on_gpu(array))
        placed.check([result.numpy()])


def test_tensors_that_do_not_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = place(two_softmaxes(), tmp_path, monkeypatch)
    x = placed.inputs[0]
    with pytest.raises(InputError, match="input 'x': dtype float64 was given but float32 is needed"):
        placed.program(on_gpu(x.astype(np.float64)))
    monkeypatch.setattr(OnGpu, "index", 1)
    with pytest.raises(InputError, match="input 'x': it is on GPU 1, and the program on GPU 0"):
        placed.program(on_gpu(x))


def test_a_module_takes_and_returns_tensors_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scaled(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, *, scale: Any) -> Any:
            return {"scaled": torch.softmax(x, -1) * scale}

    driver = StandInCuda()
    monkeypatch.setattr(cuda, "open_driver", lambda: driver)
    x, scale = (np.random.default_rng(n).random((8, 16), np.float32) for n in range(2))
    module = Scaled()
    program = tilewright.compile(
        module,
        TARGET,
        example_inputs={"x": torch.from_numpy(x), "scale": torch.from_numpy(scale)},
        dump_dir=tmp_path,
    )
    driver.learn(tmp_path)
    result = program(x=on_gpu(x), scale=on_gpu(scale))
    expected = torch.softmax(torch.from_numpy(x).double(), -1) * torch.from_numpy(scale)
    assert driver.error is None
    np.testing.assert_allclose(result["scaled"].numpy(), expected.numpy(), rtol=1e-5)
