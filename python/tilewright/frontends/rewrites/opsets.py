"""Models of older opsets. Of many ops IREE's importer knows newer versions only: Softmax 13, BatchNormalization 15."""

from __future__ import annotations

import onnx
from onnx import version_converter

_OPSET = 17
"""The first of whose ops it knows about all."""


def is_older(model: onnx.ModelProto) -> bool:
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    return bool(versions) and 0 < max(versions) < _OPSET


def raise_opset(model: onnx.ModelProto) -> None:
    """Converts a model in place, by ONNX's own converter; one that it cannot convert stays as it is."""
    try:
        model.CopyFrom(version_converter.convert_version(model, _OPSET))
    except Exception:  # of several kinds; checker and importer tell better what is wrong
        return
