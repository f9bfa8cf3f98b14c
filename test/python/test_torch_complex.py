"""Complex tensors and Fourier transforms inside PyTorch modules: PyTorch's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright
from tilewright.errors import ModelError
from torch_cases import module_of

torch = pytest.importorskip("torch")

_TURN = torch.polar(torch.ones(24), torch.arange(24) * 0.3)
_WEIGHT = torch.complex(torch.linspace(-1, 1, 24), torch.linspace(2, 0, 24)).reshape(6, 4)


def _spectrum(x: Any) -> Any:
    return torch.stft(x, 16, 6, window=torch.hann_window(16), return_complex=True)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "spectrogram": lambda x: _spectrum(x).abs(),
    "parts of a spectrum": lambda x: torch.view_as_real(_spectrum(x)),
    "convolution": lambda x: torch.fft.irfft(torch.fft.rfft(x, n=96) * torch.fft.rfft(x, n=96).conj(), n=96),
    "odd length": lambda x: torch.fft.irfft(torch.fft.rfft(x[:, :47], norm="ortho"), n=47, norm="ortho"),
    "forward norm": lambda x: torch.fft.rfft(x, norm="forward").real,
    "first dim": lambda x: torch.fft.fft(x.T, dim=0).imag,
    "mixing of tokens": lambda x: torch.fft.fft2(x.reshape(2, 6, 8)).real,
    "there and back": lambda x: torch.fft.ifft2(torch.fft.fft2(x.reshape(2, 6, 8)) * 1j).imag,
    "weights of a spectrum": lambda x: torch.fft.irfft2(
        torch.fft.rfft2(x.reshape(2, 6, 8))[..., :4] * _WEIGHT, s=(6, 8)
    ),
    "product of matrices": lambda x: (torch.view_as_complex(x.reshape(2, 4, 6, 2)) @ _WEIGHT).abs(),
    "rotation of pairs": lambda x: torch.view_as_real(torch.view_as_complex(x.reshape(2, 24, 2)) * _TURN),
    "rotation that was moved to a device": lambda x: torch.view_as_real(
        torch.view_as_complex(x.reshape(2, 24, 2)) * torch.polar(torch.ones(24), x[0, :24]).to(x.device)
    ),
    "shifted": lambda x: torch.fft.fftshift(torch.fft.fft(x)).imag,
    "angle": lambda x: torch.fft.rfft(x)[:, 1:24].angle(),
    "quotient": lambda x: (torch.fft.rfft(x) / (torch.fft.rfft(x.flip(1)) + 9)).real,
    "exponential": lambda x: torch.exp(torch.complex(x, x * 2)).imag,
    "joined": lambda x: torch.view_as_real(torch.cat([torch.fft.rfft(x), torch.fft.rfft(x * 2)], 1) ** 2),
}


def _export(function: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    x = torch.randn(2, 48, generator=torch.Generator().manual_seed(5))
    module = module_of(function)
    return module, x, torch.export.export(module, (x,))


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_results_are_those_of_pytorch(name: str) -> None:
    module, x, exported = _export(_FUNCTIONS[name])
    expected = module(x).numpy()
    result = tilewright.compile(exported, threads=1)(x.numpy())
    # Both add up to 96 products in f32, each with an error of up to half a unit in the last place of the largest sum.
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=96 * 2**-24 * np.abs(expected).max())


def test_a_long_transform_is_refused() -> None:
    _, _, exported = _export(lambda x: torch.fft.rfft(x, n=5000).abs())
    with pytest.raises(ModelError, match="transform of 5000 elements"):
        tilewright.compile(exported, threads=1)
