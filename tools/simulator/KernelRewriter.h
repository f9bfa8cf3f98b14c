// Rewrites the functions of one kernel for the host, in place. Rewrite.h is its interface.
#ifndef TILEWRIGHT_SIMULATOR_KERNELREWRITER_H
#define TILEWRIGHT_SIMULATOR_KERNELREWRITER_H

#include "tools/simulator/DeviceOps.h"
#include "tools/simulator/KernelOps.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

namespace tilewright::simulator {

/// The name of the function that is the grid barrier. Its body is for PTX; the simulator replaces calls of it.
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
  /// Removes attributes that only the device's back end understands, and promises that do not hold for fibers.
  void clean(mlir::LLVM::LLVMFuncOp function);
  mlir::LogicalResult rewrite(mlir::LLVM::LLVMFuncOp function);
  mlir::LogicalResult rewrite(mlir::Operation *op);
  /// Checks the divisor of an integer division, in each lane of a vector.
  mlir::LogicalResult checkDivisor(mlir::Operation *op);
  /// Counts the instructions of a basic block, and inserts a call that reports its execution.
  void visit(mlir::Block &block);
  /// Builds the function entry(arguments), which calls kernel(*arguments[0], *arguments[1], ...).
  void buildEntry();

  // --- accesses (AccessReports.cpp) ----------------------------------------------------------------------------------

  mlir::LogicalResult reportAccess(mlir::Operation *op);
  mlir::LogicalResult report(mlir::Operation *op, const MemoryAccess &access);
  mlir::LogicalResult report(mlir::NVVM::CpAsyncOp copy);
  mlir::LogicalResult report(mlir::NVVM::LdMatrixOp load);
  mlir::LogicalResult report(mlir::NVVM::CpAsyncBulkGlobalToSharedClusterOp copy);
  /// Reports an op on an mbarrier. Arrivals and waits are atomic accesses. The initialisation is an ordinary write,
  /// which another barrier must order before them.
  mlir::LogicalResult reportBarrier(mlir::Operation *op);
  /// Returns a site number for the access, or null if no other thread can access the memory.
  mlir::FailureOr<mlir::Value> siteOf(mlir::Operation *op, const MemoryAccess &access);
  mlir::Value plainPointer(mlir::Operation *op, mlir::Value pointer);

  // --- products of warpgroups (ProductReports.cpp) -------------------------------------------------------------------

  mlir::LogicalResult reportProduct(mlir::Operation *multiply);
  /// Reports uses of a product's accumulators. Passing them through structs and block arguments, or to another product,
  /// is not a use.
  void reportSums(mlir::Operation *multiply);

  mlir::ModuleOp module;
  HostCode code;
  DeviceProgram &program;
  mlir::DataLayout layout;
  mlir::LLVM::LLVMFuncOp kernel;
  llvm::StringMap<uint32_t> sharedVariables;
  llvm::DenseMap<mlir::Operation *, uint32_t> productSites;
  llvm::DenseSet<mlir::Operation *> inMainLoops;
  uint64_t localBytes = 0;
};

} // namespace tilewright::simulator

#endif
