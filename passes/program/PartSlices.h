// Maps the values of a part of a tile program to memory: to bindings or to buffers of its tiles, and to the affine maps
// that index them in a loop nest.
#ifndef TILEWRIGHT_PROGRAM_PARTSLICES_H
#define TILEWRIGHT_PROGRAM_PARTSLICES_H

#include "passes/program/Movement.h"
#include "passes/target/CostParameters.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

class PartSlices {
public:
  PartSlices(tile::SubprogramOp subprogram, mlir::ValueRange bindings, Movement movement, const CostParameters &costs)
      : subprogram(subprogram), bindings(bindings), movement(std::move(movement)), costs(costs),
        extents(subprogram.getExtents()), tiles(subprogram.getTiles()) {}

protected:
  mlir::MLIRContext *context() { return subprogram.getContext(); }
  /// Returns true if tiles may begin elsewhere than at zero of the dim.
  bool hasOffset(int64_t dim) { return dim == movement.walked || llvm::is_contained(subprogram.getGrid(), dim); }
  /// Returns the dim of the iteration space that is the domain dim of a result index, or -1.
  static int64_t placeOfIndex(tile::ExprOp root, mlir::AffineExpr index);

  /// Returns true if the part is for a GPU and has contractions.
  bool contractsOnGpu();

  mlir::Value bindingOf(mlir::Value argument);
  mlir::Value outputBinding(unsigned result) { return bindings[subprogram.getInputs().size() + result]; }
  /// Returns the results of the subprogram that are this tensor.
  llvm::SmallVector<unsigned> escapingAs(mlir::Value tensor);

  /// Allocates a buffer for the tile of a root's result. Its dims have the tile sizes of the iteration space.
  mlir::Value allocateTile(mlir::OpBuilder &builder, mlir::Value tensor);
  /// Allocates a buffer for a staged slice of an input, with one dim for each dim of the space that the access uses.
  mlir::Value allocateSlice(mlir::OpBuilder &builder, const SpaceAccess &access);
  mlir::Value allocate(mlir::OpBuilder &builder, mlir::Location loc, llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// Returns the tile sizes of a root's result.
  llvm::SmallVector<int64_t> tileShape(tile::ExprOp root, unsigned result);

  /// Turns a map over the whole iteration space into a map over the dims of a nest, with one symbol per dim for its
  /// offset.
  mlir::AffineMap toNest(llvm::ArrayRef<mlir::AffineExpr> exprs, const Nest &nest);
  mlir::IntegerSet toNest(mlir::IntegerSet set, const Nest &nest);
  mlir::AffineMap stagedIndex(const SpaceAccess &access, const Nest &nest);
  /// Returns the index into a tile's buffer: the index of the tensor minus the offsets of the tile.
  mlir::AffineMap bufferIndex(mlir::Value tensor, mlir::AffineMap map, const Nest &nest);
  llvm::SmallVector<mlir::AffineExpr> resultIndex(tile::ExprOp root, unsigned result, bool inBuffer);
  /// Creates a nest over the elements of a root's result.
  Nest rowsOf(tile::ExprOp root, unsigned result = 0);

  tile::SubprogramOp subprogram;
  mlir::ValueRange bindings;
  Movement movement;
  const CostParameters &costs;
  llvm::ArrayRef<int64_t> extents, tiles;

private:
  mlir::AffineExpr offsetOf(int64_t dim);
  /// Returns, for each dim of a result, the dim of the iteration space that it is, or -1.
  llvm::SmallVector<int64_t> resultPlaces(tile::ExprOp root, unsigned result);
  /// Reorders `index` to the order of the dims in the tensor's buffer: on processors the vectorised dim comes last,
  /// except in tiles of register blocks, which have an order of their own.
  template <typename T>
  llvm::SmallVector<T> lanesLast(mlir::Value tensor, llvm::ArrayRef<T> index, llvm::ArrayRef<int64_t> places);
};

} // namespace tilewright

#endif
