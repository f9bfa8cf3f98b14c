// Computes where the elements of a register block lie: their indices into slices, and their distances in memory.
//
// A register block is a block of the result that stays in registers: its dims are M and N. One step of
// a micro kernel takes `depth` successive K.
#ifndef TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKINDEX_H
#define TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKINDEX_H

#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The dims of the nest that are M, N and K of a register block, and the K per step. M is -1 for a vector times a
/// matrix.
struct BlockDims {
  int64_t m = -1, n, k, depth;
};

/// Indices relative to the block at `indices`. The index along K counts steps, or groups of `together` steps. The index
/// along N counts panels if those are aligned.
class RegisterBlockIndex {
public:
  /// M and N of an element of the register block, and K within its step.
  struct Point {
    int64_t m, n, k;
  };

  RegisterBlockIndex(mlir::OpBuilder &builder, mlir::Location loc, int64_t rank, BlockDims dims)
      : builder(builder), loc(loc), indices(rank), offsets(rank), dims(dims) {}

  llvm::SmallVector<mlir::Value> at(mlir::AffineMap map, int64_t m, int64_t n, int64_t k = 0);
  /// Returns the distance in memory from one element to another, in elements, or nothing if it depends on the position
  /// of the block.
  std::optional<int64_t> distance(tile::SliceType type, mlir::AffineMap map, Point from, Point to);
  std::optional<int64_t> distance(tile::SliceType type, mlir::AffineMap map, int64_t m, std::pair<int64_t, int64_t> n,
                                  std::pair<int64_t, int64_t> k);

protected:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> indices, offsets;
  int64_t panel = 1;     ///< step of the loop along N: one register block, or several that make up a packed panel
  int64_t firstN = 0;    ///< first N of the current register block within its panel
  bool aligned = false;  ///< true if the index along N counts panels
  int64_t together = 1;  ///< steps of K that one iteration of the innermost loop takes; the index along K counts them
  int64_t inTogether = 0; ///< the current one of those steps
  /// Iterations that stay at one point of a window. If there are several, the index along K counts these runs, and
  /// `inRun` is the iteration within the current one.
  int64_t perRun = 1;
  mlir::Value inRun;

private:
  mlir::AffineExpr byRuns(mlir::AffineExpr expr, mlir::AffineExpr run, mlir::AffineExpr iteration);
  mlir::AffineExpr inBlock(mlir::AffineExpr expr, Point point);

  BlockDims dims;
};

} // namespace tilewright

#endif
