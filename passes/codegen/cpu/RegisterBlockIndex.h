// Where the elements of a register block are: indices into slices, and how far elements lie apart in memory.
#ifndef TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKINDEX_H
#define TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKINDEX_H

#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The dims of a nest that a register block spans, and the one along which its steps of `depth` terms go.
struct BlockDims {
  int64_t row = -1, lane, terms, depth; ///< no row: a vector times a matrix
};

/// Of the block that `indices` point to: along the terms they count steps, along the lanes panels if those are aligned.
class RegisterBlockIndex {
public:
  /// An element of a register block, and a term of its step.
  struct Point {
    int64_t row, lane, term;
  };

  RegisterBlockIndex(mlir::OpBuilder &builder, mlir::Location loc, int64_t rank, BlockDims dims)
      : builder(builder), loc(loc), indices(rank), offsets(rank), dims(dims) {}

  llvm::SmallVector<mlir::Value> at(mlir::AffineMap map, int64_t row, int64_t lane, int64_t term = 0);
  /// How far in memory an element lies from another; nothing if that depends on where the block is.
  std::optional<int64_t> distance(tile::SliceType type, mlir::AffineMap map, Point from, Point to);
  std::optional<int64_t> distance(tile::SliceType type, mlir::AffineMap map, int64_t row,
                                  std::pair<int64_t, int64_t> lanes, std::pair<int64_t, int64_t> terms);

protected:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> indices, offsets;
  int64_t panel = 1; ///< lanes that the loop along them advances by: one register block, or several of a packed panel
  int64_t firstLane = 0; ///< of the current register block in its panel
  bool aligned = false;  ///< the index along the lanes counts panels

private:
  mlir::AffineExpr inBlock(mlir::AffineExpr expr, Point point);

  BlockDims dims;
};

} // namespace tilewright

#endif
