// Reads and writes of a register block: factors of its rows and lanes, and its sums, by vectors.
#ifndef TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKMEMORY_H
#define TILEWRIGHT_CODEGEN_CPU_REGISTERBLOCKMEMORY_H

#include "passes/codegen/cpu/ContractionKernels.h"
#include "passes/codegen/cpu/RegisterBlockIndex.h"

#include "mlir/IR/IRMapping.h"

namespace tilewright {

/// A contraction, and what has been decided for it.
struct ContractionNest {
  tile::ComputeOp compute;
  const Contraction &contraction;
  const KLayout &layout;
  const MicroKernel &kernel;
  const mlir::IRMapping &values; ///< slices to memrefs
  const Target &target;
};

class RegisterBlockMemory : protected RegisterBlockIndex {
public:
  RegisterBlockMemory(mlir::OpBuilder &builder, ContractionNest nest);

protected:
  /// `terms` terms of a row's step, the same in every lane; the others are zero.
  mlir::Value loadRow(int64_t row, int64_t terms);
  /// The same of the lanes, of the block's vector of that number. Lanes from `count` on are zero.
  mlir::Value loadLanes(int64_t vector, int64_t count, int64_t terms);
  mlir::Value loadAccumulators(int64_t row, int64_t vector, int64_t count);
  void storeAccumulators(mlir::Value sums, int64_t row, int64_t vector, int64_t count);

  bool isPackedInDepth() const { return layout.lanes.packedDepth > 1; }
  /// Whether vectors of lanes, and of sums, lie in memory as they are loaded.
  bool holdsWholeVectors();
  bool liesAlongLanes();
  /// Whether the slice has the sums as they are accumulated.
  bool keepsAccumulators() { return accumulatorType().getElementType() == element; }

  int64_t width() const { return lanes * block.vectors; }
  /// The init, unless the nest goes on with what is in the slice.
  mlir::TypedAttr init();
  mlir::Type storedLanes();
  tile::SliceType accumulatorType() { return mlir::cast<tile::SliceType>(compute.getAccs()[0].getType()); }
  mlir::AffineMap accumulatorMap() { return mlir::cast<mlir::AffineMapAttr>(compute.getAccMaps()[0]).getValue(); }

  mlir::Value zeros(mlir::VectorType type) { return constant(mlir::cast<mlir::TypedAttr>(builder.getZeroAttr(type))); }
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value constantIndex(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value broadcast(mlir::Value scalar);

  tile::ComputeOp compute;
  Contraction contraction;
  KLayout layout;
  const MicroKernel &kernel;
  const mlir::IRMapping &outer;
  int64_t depth;      ///< terms of a step
  mlir::Type element; ///< of the accumulator
  int64_t lanes;      ///< of a vector of sums
  RegisterBlock block;

private:
  bool liesAlongLanes(tile::SliceType type, mlir::AffineMap map, int64_t apart);
  bool lieSideBySide(tile::LoadOp load, int64_t row);
  /// The block of lanes that the operand was packed in, for the widest variant; 1: it was not packed.
  int64_t packedWidth();
  mlir::Value load(mlir::Value memory, llvm::ArrayRef<mlir::Value> index, int64_t vector, int64_t count);
  mlir::Value maskOf(int64_t vector, int64_t count);
  mlir::Value sideBySide(llvm::ArrayRef<mlir::Value> rows);
  mlir::Value widen(mlir::Value value, mlir::Operation *widening);
  mlir::Value widen(mlir::Value value, mlir::Type type);
};

} // namespace tilewright

#endif
