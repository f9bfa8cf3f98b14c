"""Ops of PyTorch on tensors of open sizes, in forms that IREE's importer lacks: each program at two sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tilewright
from torch_cases import assert_close, module_of

torch = pytest.importorskip("torch")
_functional = torch.nn.functional


def _image(height: int, width: int) -> tuple[Any, ...]:
    return (torch.randn(2, 3, height, width),)


def _line(length: int, _: int) -> tuple[Any, ...]:
    return (torch.randn(2, 3, length),)


def _tiles(rows: int, columns: int) -> tuple[Any, ...]:
    return (torch.randn(2, 4, 3 * rows, 2 * columns),)


def _images(count: int, _: int) -> tuple[Any, ...]:
    return (torch.randn(count, 3, 4, 5),)


def _points(rows: int, columns: int) -> tuple[Any, ...]:
    """Returns a matrix and positions in it, some of which count from the end."""
    count = rows + 2
    return (
        torch.randn(rows, columns, 3),
        torch.randint(-rows, rows, (count,)),
        torch.randint(-columns, columns, (count,)),
    )


_FORMS: dict[str, tuple[Callable[..., tuple[Any, ...]], list[dict[int, Any]], Callable[..., Any]]] = {}


def _form(inputs: Callable[..., tuple[Any, ...]], *axes: tuple[int, ...]) -> Callable[..., Any]:
    """Registers a function of such inputs, whose dims along some axes of each are open."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        opened = [dict.fromkeys(each, torch.export.Dim.DYNAMIC) for each in axes]
        _FORMS[function.__name__] = inputs, opened, function
        return function

    return register


@_form(_image, (2, 3))
def bilinear_to_corners(x: Any) -> Any:
    return _functional.interpolate(x, size=(13, 9), mode="bilinear", align_corners=True)


@_form(_image, (2, 3))
def bilinear_of_a_factor(x: Any) -> Any:
    return _functional.interpolate(x, scale_factor=1.5, mode="bilinear")


@_form(_image, (2, 3))
def bilinear_to_an_open_size(x: Any) -> Any:
    return _functional.interpolate(x, size=(x.shape[2] + 3, 2 * x.shape[3]), mode="bilinear")


@_form(_image, (2, 3))
def reflected_image(x: Any) -> Any:
    return _functional.pad(x, (3, 2, 1, 4), mode="reflect")


@_form(_line, (2,))
def reflected_line(x: Any) -> Any:
    return _functional.pad(x, (4, 3), mode="reflect")


@_form(_line, (2,))
def padded_to_a_multiple(x: Any) -> Any:
    return _functional.pad(x, (0, -x.shape[2] % 8)) + 1


@_form(_line, (2,))
def parts_of_open_sizes(x: Any) -> Any:
    head, tail = x.split([x.shape[2] // 2, x.shape[2] - x.shape[2] // 2], 2)
    return torch.cat([tail.relu(), -head], 2)


@_form(_line, (2,))
def cut_to_half(x: Any) -> Any:
    return x[..., : torch.sym_max(torch.sym_int(x.shape[2] * 0.5), torch.sym_min(x.shape[2], 3))] + 1


@_form(_image, (2, 3))
def split_into_the_length_that_is_left(x: Any) -> Any:
    return x.reshape(2, x.shape[2], -1, 3) + 1


@_form(_points, (0, 1), (0,), (0,))
def elements_of_two_dims(x: Any, i: Any, j: Any) -> Any:
    return x[i, j]


@_form(_points, (0, 1), (0,), (0,))
def elements_behind_a_whole_dim(x: Any, i: Any, j: Any) -> Any:
    return x.permute(2, 0, 1)[:, i, j[:, None]]


@_form(_tiles, (2, 3))
def elements_of_windows(x: Any) -> Any:
    batch, channels, height, width = x.shape
    windows = x.view(batch, channels, height // 3, 3, width // 2, 2).permute(0, 2, 4, 3, 5, 1)
    return windows.reshape(-1, 6, channels) + 1


@_form(_images, (0,))
def pooled_to_one_element_with_channels_last(x: Any) -> Any:
    return _functional.adaptive_avg_pool2d(x.to(memory_format=torch.channels_last), 1).flatten(1)


@pytest.mark.parametrize("name", _FORMS)
def test_a_form_of_open_sizes(name: str) -> None:
    inputs, opened, function = _FORMS[name]
    torch.manual_seed(0)
    module = module_of(function)
    exported = torch.export.export(module, inputs(5, 7), dynamic_shapes=(tuple(opened),))
    program = tilewright.compile(exported, threads=1)
    for sizes in ((6, 11), (9, 6)):
        given = inputs(*sizes)
        assert_close(program(*given), module, given)
