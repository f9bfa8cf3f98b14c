// Emits instructions for AMX's tile registers, which hold a block of accumulators: up to two by two tiles, with one
// more register for each tile of the operands. The code names its registers explicitly, because it knows which ones are
// in use. LLVM's register allocation would have to infer the shapes, and where to configure them, again.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H
#define TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H

#include "passes/target/MicroKernel.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

/// The location of tiles in memory.
struct TileLocation {
  mlir::Value memory;                   ///< memref
  llvm::SmallVector<mlir::Value> index; ///< indices of the first element
  int64_t rowBytes;                     ///< bytes from one row to the next
};

class TileRegisters {
public:
  TileRegisters(mlir::OpBuilder &builder, mlir::Location loc, const MicroKernel &kernel)
      : builder(builder), loc(loc), kernel(kernel) {}

  /// Configures the registers for blocks with an M of `m`, which fill at most two tiles. This clears all registers.
  /// `memory` holds the configuration and has 64 bytes.
  void configure(mlir::Value memory, int64_t m);
  void release();

  /// Clear, load or store the accumulators of the block's first `n` elements along N.
  void clearAccumulators(int64_t m, int64_t n);
  void loadAccumulators(const TileLocation &location, int64_t m, int64_t n);
  void storeAccumulators(const TileLocation &location, int64_t m, int64_t n);

  /// Adds the products of one step. `lhs` is contiguous along K. A row of `rhs` holds one group of successive K for all
  /// N.
  void multiplyAdd(const TileLocation &lhs, const TileLocation &rhs, int64_t m, int64_t n);

private:
  mlir::Value byte(int64_t value);
  mlir::Value addressOf(const TileLocation &location);
  mlir::Value pointerTo(mlir::Value address);
  mlir::Value offset(mlir::Value address, int64_t bytes);
  void call(llvm::StringRef name, mlir::ValueRange arguments);
  /// Loads or stores a register. The tile begins `bytes` behind the address.
  void move(llvm::StringRef name, int64_t tile, mlir::Value address, int64_t bytes, int64_t rowBytes);
  void forAccumulators(int64_t m, int64_t n, llvm::function_ref<void(int64_t i, int64_t j)> body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const MicroKernel &kernel;
};

} // namespace tilewright

#endif
