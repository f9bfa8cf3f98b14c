// Emits the loads and stores of a register block: loads of lhs and rhs, and loads and stores of accumulators.
#ifndef TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKMEMORY_H
#define TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKMEMORY_H

#include "passes/codegen/cpu/ContractionKernels.h"
#include "passes/codegen/cpu/RegisterBlockIndex.h"
#include "passes/layout/Blocking.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// A contraction and the decisions about it.
struct ContractionNest {
  tile::ComputeOp compute;
  const Contraction &contraction;
  const KLayout &layout;
  const MicroKernel &kernel;
  const mlir::IRMapping &values; ///< maps slices to memrefs
  const Target &target;
};

/// Returns the facts that the choice of a contraction's register blocks depends on.
BlockedContraction blockedContraction(const ContractionNest &nest);

class RegisterBlockMemory : protected RegisterBlockIndex {
public:
  RegisterBlockMemory(mlir::OpBuilder &builder, ContractionNest nest, const BlockingChoice &blocking);

protected:
  /// Loads the first `k` elements of a step of lhs for one row, and broadcasts them to all lanes. The others are zero.
  mlir::Value loadLhs(int64_t row, int64_t k);
  /// Loads the first `k` elements along K of a step of rhs, for one vector of the block. The others, and lanes from
  /// `count` on, are zero.
  mlir::Value loadRhs(int64_t vector, int64_t count, int64_t k);
  mlir::Value loadAccumulators(int64_t row, int64_t vector, int64_t count);
  void storeAccumulators(mlir::Value accumulators, int64_t row, int64_t vector, int64_t count);

  bool isPackedInDepth() const { return layout.rhs.packedDepth > 1; }
  /// Returns true if the packed rhs can be loaded by whole vectors, without masks.
  bool holdsWholeVectors();
  /// Returns true if the vectors of rhs and of accumulators with the first `count` elements along N are contiguous in
  /// memory.
  bool liesAlongN(int64_t count);
  /// Returns true if the slice has the element type of the accumulators.
  bool keepsAccumulators() { return accumulatorType().getElementType() == element; }

  int64_t width() const { return lanes * block.vectors; }
  /// Returns the initial value, or null if the nest continues accumulators from their slice.
  mlir::TypedAttr init();
  mlir::Type storedRhs();
  tile::SliceType accumulatorType() { return mlir::cast<tile::SliceType>(compute.getAccs()[0].getType()); }
  mlir::AffineMap accumulatorMap() { return mlir::cast<mlir::AffineMapAttr>(compute.getAccMaps()[0]).getValue(); }

  mlir::Value zeros(mlir::VectorType type) { return constant(mlir::cast<mlir::TypedAttr>(builder.getZeroAttr(type))); }
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value constantIndex(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value broadcast(mlir::Value scalar);

  /// Allocates memory on the stack, at the start of the kernel's function.
  mlir::Value allocateOnStack(llvm::ArrayRef<int64_t> shape, mlir::Type stored);

  tile::ComputeOp compute;
  Contraction contraction;
  KLayout layout;
  const MicroKernel &kernel;
  const mlir::IRMapping &outer;
  int64_t depth;      ///< K per step
  mlir::Type element; ///< element type of the accumulators
  BlockedContraction own; ///< the contraction as the choice of its blocks sees it
  BlockingChoice blocking;
  int64_t lanes; ///< lanes of a vector of accumulators
  RegisterBlock block;

private:
  /// An element of lhs: its memory and index.
  struct Place {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> index;
  };
  Place lhsPlace(int64_t row, int64_t k = 0);
  bool lastIndexIsInside();
  mlir::Value isInGuard(mlir::IntegerSet guard, int64_t row, int64_t k);
  /// Returns a line of zeros with the type of a tensor in memory: its last index is the only one that may differ from
  /// zero.
  mlir::Value lineOfZeros(mlir::MemRefType type);
  bool liesAlongN(tile::SliceType type, mlir::AffineMap map, int64_t count, int64_t apart);
  bool lieSideBySide(tile::LoadOp load, int64_t row);
  /// Returns the width of the panels that rhs is packed in, or 1 if it is not packed. The widest variant determines it.
  int64_t packedWidth();
  mlir::Value load(mlir::Value memory, llvm::ArrayRef<mlir::Value> index, int64_t vector, int64_t count);
  mlir::Value maskOf(int64_t vector, int64_t count);
  mlir::Value sideBySide(llvm::ArrayRef<mlir::Value> rows);
  mlir::Value widen(mlir::Value value, mlir::Operation *widening);
  mlir::Value widen(mlir::Value value, mlir::Type type);

  /// Where a row of lhs is in the current iteration along K, if all steps of an iteration are in its guard or none is.
  struct GuardedRow {
    mlir::Value isInside, memory;
  };
  llvm::SmallDenseMap<int64_t, GuardedRow> guardedRows;
  mlir::Value outside; ///< the line of zeros that is read outside of the guard
};

} // namespace tilewright

#endif
