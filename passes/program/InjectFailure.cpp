#include "passes/program/InjectFailure.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;
using namespace tilewright;

namespace {
class InjectFailure : public PassWrapper<InjectFailure, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InjectFailure)

  InjectFailure(ArrayRef<std::string> names, bool crash) : names(names), crash(crash) {}

  StringRef getArgument() const final { return "tile-inject-failure"; }
  StringRef getDescription() const final { return "Fail on a kernel, to test how compilations recover"; }

private:
  static bool isKernel(Operation *op) { return isa<tile::SubprogramOp, tile::ProgramOp, LLVM::LLVMFuncOp>(op); }

  /// Returns true if the locations in the kernel contain all names.
  bool holdsAll(Operation *kernel) const {
    std::string locations;
    llvm::raw_string_ostream stream(locations);
    kernel->walk([&](Operation *op) { stream << op->getLoc() << "\n"; });
    return llvm::all_of(names, [&](const std::string &name) { return StringRef(locations).contains(name); });
  }

  void runOnOperation() final {
    markAllAnalysesPreserved();
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (!isKernel(op) || !holdsAll(op))
        return WalkResult::advance();
      if (crash)
        llvm::report_fatal_error("a failure on purpose");
      op->emitOpError("fails on purpose");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  SmallVector<std::string> names;
  bool crash;
};
} // namespace

std::unique_ptr<Pass> tilewright::createInjectFailure(ArrayRef<std::string> names, bool crash) {
  return std::make_unique<InjectFailure>(names, crash);
}
