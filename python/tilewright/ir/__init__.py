"""MLIR modules of the compiler as Python objects, and passes and patterns written in Python.

    from tilewright import Module, ir
    from tilewright.dialects import arith, tile

    module = Module.parse(text)
    for expr in module.operation.walk("tile.expr"):
        print(expr.location, expr.attributes["domain"].value)

The classes are those of upstream's `mlir.ir` as far as they go, over MLIR's C API. See docs/guide/python-ir.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright._native import (
        AffineExpr,
        AffineMap,
        AffineMapAttr,
        ArrayAttr,
        Attribute,
        Block,
        BlockArgument,
        BoolAttr,
        Context,
        DenseElementsAttr,
        DenseI32ArrayAttr,
        DenseI64ArrayAttr,
        DictAttr,
        FlatSymbolRefAttr,
        FloatAttr,
        FloatType,
        FunctionType,
        IndexType,
        InsertionPoint,
        IntegerAttr,
        IntegerSet,
        IntegerSetAttr,
        IntegerType,
        Location,
        MemRefType,
        OpAttributeMap,
        Operation,
        OpOperand,
        OpOperandList,
        OpResult,
        RankedTensorType,
        Region,
        ShapedType,
        StringAttr,
        SymbolRefAttr,
        TileAttr,
        TileType,
        Type,
        TypeAttr,
        UnitAttr,
        Value,
        VectorType,
    )
    from tilewright.ir.rewriting import Pass, Pattern, apply_patterns, pattern, python_pass
    from tilewright.ir.views import (
        AttrBuilder,
        Dialect,
        OpResultList,
        OpView,
        register_attribute_builder,
        view,
    )

__all__ = [
    "AffineExpr",
    "AffineMap",
    "AffineMapAttr",
    "ArrayAttr",
    "AttrBuilder",
    "Attribute",
    "Block",
    "BlockArgument",
    "BoolAttr",
    "Context",
    "DenseElementsAttr",
    "DenseI32ArrayAttr",
    "DenseI64ArrayAttr",
    "Dialect",
    "DictAttr",
    "FlatSymbolRefAttr",
    "FloatAttr",
    "FloatType",
    "FunctionType",
    "IndexType",
    "InsertionPoint",
    "IntegerAttr",
    "IntegerSet",
    "IntegerSetAttr",
    "IntegerType",
    "Location",
    "MemRefType",
    "OpAttributeMap",
    "OpOperand",
    "OpOperandList",
    "OpResult",
    "OpResultList",
    "OpView",
    "Operation",
    "Pass",
    "Pattern",
    "RankedTensorType",
    "Region",
    "ShapedType",
    "StringAttr",
    "SymbolRefAttr",
    "TileAttr",
    "TileType",
    "Type",
    "TypeAttr",
    "UnitAttr",
    "Value",
    "VectorType",
    "apply_patterns",
    "pattern",
    "python_pass",
    "register_attribute_builder",
    "view",
]

_REWRITING = {"Pass", "Pattern", "apply_patterns", "pattern", "python_pass"}
_VIEWS = {"AttrBuilder", "Dialect", "OpResultList", "OpView", "register_attribute_builder", "view"}


def __getattr__(name: str) -> Any:
    # These are imported at first use, because the extension module is slow to load and `tilewright --help` needs none.
    if name not in __all__:
        raise AttributeError(f"module 'tilewright.ir' has no attribute {name!r}")
    if name in _REWRITING:
        return getattr(import_module("tilewright.ir.rewriting"), name)
    if name in _VIEWS:
        return getattr(import_module("tilewright.ir.views"), name)
    return getattr(import_module("tilewright.ir.native").native, name)
