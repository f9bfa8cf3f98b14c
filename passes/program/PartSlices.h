// Where the values of a part of a tile program lie: in bindings or in buffers of its tiles, and the maps that index
// them in a loop nest.
#ifndef TILEWRIGHT_PROGRAM_PARTSLICES_H
#define TILEWRIGHT_PROGRAM_PARTSLICES_H

#include "passes/program/Movement.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

class PartSlices {
public:
  PartSlices(tile::SubprogramOp subprogram, mlir::ValueRange bindings, Movement movement)
      : subprogram(subprogram), bindings(bindings), movement(std::move(movement)), extents(subprogram.getExtents()),
        tiles(subprogram.getTiles()) {}

protected:
  mlir::MLIRContext *context() { return subprogram.getContext(); }
  /// Whether a tile begins elsewhere than at zero of a dim.
  bool hasOffset(int64_t dim) { return dim == movement.walked || llvm::is_contained(subprogram.getGrid(), dim); }
  /// Where in the space the domain dim stands that a result index is, or -1.
  static int64_t placeOfIndex(tile::ExprOp root, mlir::AffineExpr index);

  /// Whether it is a part for a GPU with contractions.
  bool contractsOnGpu();

  mlir::Value bindingOf(mlir::Value argument);
  mlir::Value outputBinding(unsigned result) { return bindings[subprogram.getInputs().size() + result]; }
  /// The results of the subprogram that are this tensor.
  llvm::SmallVector<unsigned> escapingAs(mlir::Value tensor);

  /// A buffer for the tile of a root result: its dims have the tile sizes of the space.
  mlir::Value allocateTile(mlir::OpBuilder &builder, mlir::Value tensor);
  /// A buffer for a staged slice of an input, one dim per dim of the space that the access uses.
  mlir::Value allocateSlice(mlir::OpBuilder &builder, const SpaceAccess &access);
  mlir::Value allocate(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// The sizes of a root result's tile.
  llvm::SmallVector<int64_t> tileShape(tile::ExprOp root, unsigned result);

  /// Maps over the whole space to maps over the dims of a nest (with a symbol per dim for its offset).
  mlir::AffineMap toNest(llvm::ArrayRef<mlir::AffineExpr> exprs, const Nest &nest);
  mlir::IntegerSet toNest(mlir::IntegerSet set, const Nest &nest);
  mlir::AffineMap stagedIndex(const SpaceAccess &access, const Nest &nest);
  /// A tile buffer holds the elements of the tile alone: its index is the tensor's less the tile's offsets.
  mlir::AffineMap bufferIndex(mlir::Value tensor, mlir::AffineMap map, const Nest &nest);
  llvm::SmallVector<mlir::AffineExpr> resultIndex(tile::ExprOp root, unsigned result, bool inBuffer);
  /// A nest over the elements that a root leaves.
  Nest rowsOf(tile::ExprOp root, unsigned result = 0);

  tile::SubprogramOp subprogram;
  mlir::ValueRange bindings;
  Movement movement;
  llvm::ArrayRef<int64_t> extents, tiles;

private:
  mlir::AffineExpr offsetOf(int64_t dim);
  /// Where in the space the dims of a result stand, or -1.
  llvm::SmallVector<int64_t> resultPlaces(tile::ExprOp root, unsigned result);
  /// What stands for each dim of the tensor's buffer, in the order in which it lies there: on processors lanes are
  /// neighbours, but for the tiles of register blocks, which have an order of their own.
  template <typename T>
  llvm::SmallVector<T> lanesLast(mlir::Value tensor, llvm::ArrayRef<T> index, llvm::ArrayRef<int64_t> places);
};

} // namespace tilewright

#endif
