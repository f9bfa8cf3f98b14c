// Rewrites the functions of one kernel for the host, in place; Rewrite.h is what others see of it.
#ifndef TILEWRIGHT_SIMULATOR_KERNELREWRITER_H
#define TILEWRIGHT_SIMULATOR_KERNELREWRITER_H

#include "tools/simulator/DeviceOps.h"
#include "tools/simulator/KernelOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace tilewright::simulator {

/// The function whose calls are the grid barrier; its body is for PTX.
inline constexpr llvm::StringLiteral gridBarrierName = "tile_grid_barrier";

class KernelRewriter {
public:
  KernelRewriter(mlir::ModuleOp module, llvm::StringRef kernel, DeviceProgram &program)
      : module(module), code{mlir::OpBuilder(module.getContext()), module, program}, program(program), layout(module),
        kernel(module.lookupSymbol<mlir::LLVM::LLVMFuncOp>(kernel)) {}

  mlir::LogicalResult run();

private:
  mlir::LogicalResult readKernel();
  void placeVariables();
  /// Takes off what only a device back end understands, and promises that fibers do not keep.
  void clean(mlir::LLVM::LLVMFuncOp function);
  mlir::LogicalResult rewrite(mlir::LLVM::LLVMFuncOp function);
  mlir::LogicalResult rewrite(mlir::Operation *op);
  /// Of a vector each lane.
  mlir::LogicalResult checkDivisor(mlir::Operation *op);
  /// Counts the block's instructions, and lets it report that it runs.
  void visit(mlir::Block &block);
  /// entry(arguments): kernel(*arguments[0], *arguments[1], ...)
  void buildEntry();

  // --- accesses (AccessReports.cpp) ----------------------------------------------------------------------------------

  mlir::LogicalResult reportAccess(mlir::Operation *op);
  mlir::LogicalResult report(mlir::Operation *op, const MemoryAccess &access);
  mlir::LogicalResult report(mlir::NVVM::CpAsyncOp copy);
  mlir::LogicalResult report(mlir::NVVM::LdMatrixOp load);
  mlir::LogicalResult report(mlir::NVVM::CpAsyncBulkGlobalToSharedClusterOp copy);
  /// Arrivals and waits order each other; who initialises a barrier has to come before them by another one.
  mlir::LogicalResult reportBarrier(mlir::Operation *op);
  /// An id for the access; null where no other thread can see the memory.
  mlir::FailureOr<mlir::Value> siteOf(mlir::Operation *op, const MemoryAccess &access);
  mlir::Value plainPointer(mlir::Operation *op, mlir::Value pointer);

  // --- products of warpgroups (ProductReports.cpp) -------------------------------------------------------------------

  mlir::LogicalResult reportProduct(mlir::Operation *multiply);
  /// Sums go through structs and blocks without being touched; whoever does anything else with them says so.
  void reportSums(mlir::Operation *multiply);

  mlir::ModuleOp module;
  HostCode code;
  DeviceProgram &program;
  mlir::DataLayout layout;
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::StringMap<uint32_t> sharedVariables;
  llvm::DenseMap<mlir::Operation *, uint32_t> productSites;
  llvm::DenseSet<mlir::Operation *> inSumLoops;
  uint64_t localBytes = 0;
};

} // namespace tilewright::simulator

#endif
