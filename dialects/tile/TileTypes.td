// Types of the dialect.
#ifndef TILEWRIGHT_TILE_TYPES_TD
#define TILEWRIGHT_TILE_TYPES_TD

include "dialects/tile/TileDialect.td"
include "dialects/tile/TileAttrs.td"

def Tile_SliceType : TypeDef<Tile_Dialect, "Slice"> {
  let mnemonic = "slice";
  let summary = "a strided region of a tensor in one memory space";
  let description = [{
    PowerFusion's memory slice (section 4), generalised to any rank. Its
    two-dimensional form has `num` segments of `width` elements, `stride` elements
    apart. Strides are in elements; without them the slice is dense and row-major.
    Constraints: (T1) the shape is static and non-negative; (T2) there is one
    stride per dim.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
    EnumParameter<Tile_Space>:$space, ArrayRefParameter<"int64_t">:$strides);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                                   "Space":$space), [{
    return $_get($_ctxt, shape, elementType, space, ::llvm::ArrayRef<int64_t>{});
  }]>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getNumElements() const;
    /// Bytes of one element in memory (i1 takes one byte).
    int64_t getElementBytes() const;
    int64_t getNumBytes() const { return getNumElements() * getElementBytes(); }
    /// The 2-D view of PowerFusion: contiguous segments, their width and distance, in elements.
    int64_t getWidth() const;
    int64_t getNum() const;
    int64_t getStride() const;
  }];
}

#endif
