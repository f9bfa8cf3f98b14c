"""Conversion of models of older opsets, because IREE's importer supports only newer versions of many ops, such as
Softmax 13 and BatchNormalization 15."""

from __future__ import annotations

import onnx
from onnx import version_converter

_OPSET = 17
"""The first opset that IREE's importer supports almost completely."""

_OPSET_OF_NONE = 21
"""The opset for a model without ops of ONNX."""


def is_older(model: onnx.ModelProto) -> bool:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return bool(versions) and 0 < max(versions) < _OPSET


def declare_opset(model: onnx.ModelProto) -> None:
    """Declares ONNX's own ops, which rewrites make, in a model that has none of them."""
    if not any(o.domain in ("", "ai.onnx") for o in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("", _OPSET_OF_NONE))


def raise_opset(model: onnx.ModelProto) -> None:
    """Converts a model in place with ONNX's own converter; a model that cannot be converted stays unchanged."""
    try:
        model.CopyFrom(version_converter.convert_version(model, _OPSET))
    except Exception:  # of several kinds; checker and importer report the reason better
        return
