// AMX's tile registers as a block of sums: up to two tiles of rows by two of lanes, with one register for each tile of
// the operands. The registers are named in the code: which are in use where is known, and LLVM's own allocation would
// find shapes, and where to configure them, once more.
#ifndef TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H
#define TILEWRIGHT_CODEGEN_CPU_TILEREGISTERS_H

#include "passes/target/MicroKernel.h"

#include "mlir/IR/Builders.h"

namespace tilewright {

/// Where tiles lie: at an element of a memref, rows apart by so many bytes.
struct TilePlace {
  mlir::Value memory;
  llvm::SmallVector<mlir::Value> index;
  int64_t rowBytes;
};

class TileRegisters {
public:
  TileRegisters(mlir::OpBuilder &builder, mlir::Location loc, const MicroKernel &kernel)
      : builder(builder), loc(loc), kernel(kernel) {}

  /// For blocks of so many rows, at most two tiles of them. It empties all registers. `memory` is of 64 bytes.
  void configure(mlir::Value memory, int64_t rows);
  void release();

  /// Of the block's first `lanes` lanes.
  void clearAccumulators(int64_t rows, int64_t lanes);
  void loadAccumulators(const TilePlace &place, int64_t rows, int64_t lanes);
  void storeAccumulators(const TilePlace &place, int64_t rows, int64_t lanes);

  /// Adds one step's products: `rows` has the terms of a row side by side, `along` groups of terms as rows of lanes.
  void multiplyAdd(const TilePlace &rows, const TilePlace &along, int64_t numRows, int64_t lanes);

private:
  mlir::Value byte(int64_t value);
  mlir::Value addressOf(const TilePlace &place);
  mlir::Value pointerTo(mlir::Value address);
  mlir::Value offset(mlir::Value address, int64_t bytes);
  void call(llvm::StringRef name, mlir::ValueRange arguments);
  /// Loads or stores a register: of the tile that begins so many bytes behind the address.
  void move(llvm::StringRef name, int64_t tile, mlir::Value address, int64_t bytes, int64_t rowBytes);
  void forAccumulators(int64_t rows, int64_t lanes, llvm::function_ref<void(int64_t row, int64_t lane)> body);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const MicroKernel &kernel;
};

} // namespace tilewright

#endif
