// The threads of a block in a loop nest: their indices along its dims, and how they combine their accumulators.
#ifndef TILEWRIGHT_CODEGEN_GPU_NEST_BLOCKTHREADS_H
#define TILEWRIGHT_CODEGEN_GPU_NEST_BLOCKTHREADS_H

#include "passes/codegen/common/NestEmitter.h"
#include "passes/program/gpu/ThreadMapping.h"
#include "passes/target/CostParameters.h"

namespace tilewright {

/// Returns the scalar `value` of the thread whose lane index differs in this bit. All threads of the warp must execute
/// it.
mlir::Value shuffleXor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, unsigned bit);

class BlockThreads : public NestThreads {
public:
  /// `thread` is the index of the thread in its block, an i32. `scratch` is a buffer of at least
  /// `combiningScratchBytes` bytes in shared memory.
  BlockThreads(tile::ComputeOp compute, NestMapping mapping, mlir::Value thread, mlir::Value scratch,
               const GpuCosts &costs)
      : compute(compute), mapping(std::move(mapping)), thread(thread), scratch(scratch), costs(costs) {}

  int64_t lanes() const override { return mapping.lanes; }
  int64_t threadsAlong(int64_t dim) const override { return int64_t(1) << mapping.bits[dim].count; }
  mlir::Value indexAlong(mlir::OpBuilder &builder, int64_t dim) override;
  bool combines() const override { return mapping.reduced != 0; }
  mlir::Value combine(mlir::OpBuilder &builder, unsigned i, mlir::vector::CombiningKind kind,
                      mlir::Value value) override;
  mlir::Value leads(mlir::OpBuilder &builder, bool accumulator) override;

private:
  mlir::Value shuffleElements(mlir::OpBuilder &builder, mlir::Value value, unsigned bit);
  mlir::Value combineWarps(mlir::OpBuilder &builder, mlir::vector::CombiningKind kind, mlir::Value value);

  tile::ComputeOp compute;
  NestMapping mapping;
  mlir::Value thread, scratch;
  const GpuCosts &costs;
};

} // namespace tilewright

#endif
