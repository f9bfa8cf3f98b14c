// Reductions in two phases, where one phase would leave most of a GPU idle (Souffle 2.3). What is decided and built is
// SplitReduction.h's; reductions of one domain are cut alike, so that those of one tensor still share a kernel.
#include "passes/Passes.h"
#include "passes/target/TargetOrError.h"
#include "passes/transforms/SplitReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"

namespace {
class SplitReductions : public impl::SplitReductionsBase<SplitReductions> {
public:
  using SplitReductionsBase::SplitReductionsBase;

private:
  using Domain = std::vector<int64_t>; ///< extents, those of reduced dims negative

  static Domain domainOf(linalg::GenericOp op) {
    Domain domain;
    for (auto [extent, kind] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      domain.push_back(kind == utils::IteratorType::reduction ? -extent : extent);
    return domain;
  }

  ReductionSplit decide(linalg::GenericOp op, const Target &machine) {
    ReductionSplit split;
    if (split.reason = whyNotSplittable(op); !split.reason.empty())
      return split;
    auto known = decided.find(domainOf(op));
    if (known != decided.end() && canCut(op, known->second.dims))
      return known->second;
    split = decideSplit(op, machine, gridSync);
    if (!split.dims.empty())
      decided[domainOf(op)] = split;
    return split;
  }

  void explain(linalg::GenericOp op, const ReductionSplit &split) {
    std::string text = "tile: ";
    llvm::raw_string_ostream os(text);
    split.print(os);
    auto options = remark::RemarkOpts::name("two-phase").category("tile-split-reductions");
    if (split.dims.empty()) {
      remark::missed(op.getLoc(), options) << text;
      ++numDeclined;
    } else {
      remark::passed(op.getLoc(), options) << text;
      ++numSplit;
    }
  }

  void runOnOperation() override {
    decided.clear();
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    if (machine->backend != Backend::cuda)
      return;
    SmallVector<linalg::GenericOp> reductions;
    getOperation().walk([&](linalg::GenericOp op) {
      if (op.getNumReductionLoops() > 0 && op.hasPureTensorSemantics())
        reductions.push_back(op);
    });
    SplitViews views;
    for (linalg::GenericOp op : reductions) {
      ReductionSplit split = decide(op, *machine);
      explain(op, split);
      if (split.dims.empty())
        continue;
      OpBuilder builder(op);
      op->replaceAllUsesWith(buildTwoPhases(builder, op, split.dims, views).results);
      op.erase();
    }
  }

  std::map<Domain, ReductionSplit> decided;
};
} // namespace
} // namespace tilewright
