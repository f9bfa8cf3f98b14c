// Emits instructions for AMX's tile registers, which hold a block of accumulators: up to two by two tiles, with one
// more register for each tile of the operands. The code names its registers explicitly, because it knows which ones are
// in use. LLVM's register allocation would have to infer the shapes, and where to configure them, again.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H
#define TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H

#include "passes/target/MicroKernel.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The location of tiles in memory.
struct TilePlace {
  mlir::Value memory;                   ///< memref
  llvm::SmallVector<mlir::Value> index; ///< indices of the first element
  int64_t rowBytes;                     ///< bytes from one row to the next
};

class TileRegisters {
public:
  TileRegisters(mlir::OpBuilder &builder, mlir::Location loc, const MicroKernel &kernel)
      : builder(builder), loc(loc), kernel(kernel) {}

  /// Configures the registers for blocks of `rows` rows, which fill at most two tiles. This clears all registers.
  /// `memory` holds the configuration and has 64 bytes.
  void configure(mlir::Value memory, int64_t rows);
  void release();

  /// Clear, load or store the accumulators of the block's first `lanes` elements along N.
  void clearAccumulators(int64_t rows, int64_t lanes);
  void loadAccumulators(const TilePlace &place, int64_t rows, int64_t lanes);
  void storeAccumulators(const TilePlace &place, int64_t rows, int64_t lanes);

  /// Adds the products of one step. `rows` is lhs, contiguous along K. A row of `along`, which is rhs, holds one group
  /// of successive K for all lanes.
  void multiplyAdd(const TilePlace &rows, const TilePlace &along, int64_t numRows, int64_t lanes);

private:
  mlir::Value byte(int64_t value);
  mlir::Value addressOf(const TilePlace &place);
  mlir::Value pointerTo(mlir::Value address);
  mlir::Value offset(mlir::Value address, int64_t bytes);
  void call(llvm::StringRef name, mlir::ValueRange arguments);
  /// Loads or stores a register. The tile begins `bytes` behind the address.
  void move(llvm::StringRef name, int64_t tile, mlir::Value address, int64_t bytes, int64_t rowBytes);
  void forAccumulators(int64_t rows, int64_t lanes, llvm::function_ref<void(int64_t row, int64_t lane)> body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const MicroKernel &kernel;
};

} // namespace tilewright

#endif
