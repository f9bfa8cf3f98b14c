// Leaves to IREE the fusion groups that are not predicted to beat what IREE alone makes of the same ops.
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr llvm::StringLiteral kLoneMovement = "movement that no kernel of ours computes with";

/// What a dispatch of IREE's takes on a CPU in the time of a kernel of ours for the same ops: the geometric mean of the
/// 41 patterns of `stitch` that are one dispatch each (docs/benchmarks.md).
constexpr double kTimesOfIreeOnCpu = 1.9;

class SlowDropper : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  void dropSlow() {
    for (std::optional<PlannedGroup> &part : decisions.parts) {
      if (!part)
        continue;
      std::string why = whyNotFaster(*part);
      if (why.empty())
        continue;
      for (unsigned expr : part->choice.exprs)
        leave(expr, why);
      part.reset();
    }
  }

  /// Slices that share no kernel: IREE copies as well.
  void leaveLoneSlices() {
    llvm::erase_if(decisions.kernels, [&](ArrayRef<unsigned> kernel) {
      if (!llvm::all_of(kernel, [&](unsigned part) { return movesUnguarded(*decisions.parts[part]); }))
        return false;
      for (unsigned part : kernel) {
        for (unsigned expr : decisions.parts[part]->choice.exprs)
          leave(expr, kLoneMovement);
        decisions.parts[part].reset();
      }
      return true;
    });
  }

  /// Where none of our kernels fuses what IREE would not, ours are as good but stand between contractions and the
  /// packing that IREE fuses into their neighbours (measured: a CNN's average pool alone costs 2% of the model that
  /// way).
  void leaveLoneDispatches() {
    bool contractionsLeft = false;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      contractionsLeft |= expr.kind == ExprKind::contraction && decisions.partOf[id] < 0;
    if (!contractionsLeft ||
        !llvm::all_of(decisions.kernels, [&](ArrayRef<unsigned> kernel) { return isLoneDispatch(kernel); }))
      return;
    for (ArrayRef<unsigned> kernel : decisions.kernels)
      for (unsigned expr : decisions.parts[kernel.front()]->choice.exprs)
        leave(expr,
              "no kernel here fuses more than IREE alone, which can fuse packing for its contractions into this one");
    decisions.kernels.clear();
    decisions.parts.assign(decisions.parts.size(), std::nullopt);
  }

private:
  std::string whyNotFaster(const PlannedGroup &part) const {
    if (contracts(part))
      return ""; // measured: register blocks run at 95% of the machine's peak, IREE's contractions at 70%
    bool computes =
        llvm::any_of(part.choice.exprs, [&](unsigned expr) { return graph.exprs()[expr].kind != ExprKind::movement; });
    if (slicesOurs(part))
      return ""; // until it is known whether it shares a kernel
    if (!computes && llvm::none_of(part.choice.exprs, [&](unsigned expr) { return movesInPieces(expr); }))
      return kLoneMovement.str();
    if (!computes && llvm::all_of(part.choice.exprs, [&](unsigned expr) { return feedsContractionsOnly(expr); }))
      return "movement for a contraction alone: IREE's own";
    std::vector<SmallVector<unsigned>> alone = dispatchesOfIree(graph, part.choice.exprs);
    if (alone.size() <= 1)
      return options.takeSingles ? "" : "IREE runs it as one dispatch by itself";
    // Each of its dispatches is charged what a kernel of ours would be for the same ops, as far as is measured.
    std::vector<PlannedGroup> dispatches;
    double bytes = 0;
    for (ArrayRef<unsigned> dispatch : alone) {
      std::optional<PlannedGroup> planned = planGroup(graph, dispatch, target);
      if (!planned)
        return "";
      bytes += planned->predicted.bytes;
      dispatches.push_back(std::move(*planned));
    }
    double ours = part.predicted.seconds, theirs = 0;
    for (const PlannedGroup &dispatch : dispatches)
      theirs += secondsOf(dispatch, bytes);
    theirs *= target.backend == Backend::cpu ? kTimesOfIreeOnCpu : 1;
    if (ours > theirs * roughness(part.predicted.bytes))
      return "IREE alone is predicted faster: " + microseconds(theirs) + " against " + microseconds(ours);
    return "";
  }

  /// On a GPU, what a kernel of ours computes is sliced by strides: alone, a launch that copies, and with that kernel
  /// at scope grid one of its phases.
  bool slicesOurs(const PlannedGroup &part) const {
    return target.backend == Backend::cuda && movesUnguarded(part) &&
           llvm::any_of(part.choice.exprs, [&](unsigned expr) {
             return isStridedSlice(expr) && llvm::any_of(graph.inEdges(expr), [&](unsigned edge) {
                      return decisions.partOf[graph.edges()[edge].producer] >= 0;
                    });
           });
  }

  bool isStridedSlice(unsigned expr) const {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(graph.exprs()[expr].op);
    return slice && !isContiguous(slice);
  }

  /// Behind the outermost dim that has more than one element in the slice, all dims are whole.
  static bool isContiguous(tensor::ExtractSliceOp slice) {
    ArrayRef<int64_t> sizes = slice.getStaticSizes(), whole = slice.getSourceType().getShape();
    const int64_t *longer = llvm::find_if(sizes, [](int64_t size) { return size != 1; });
    size_t behind = longer == sizes.end() ? sizes.size() : longer - sizes.begin() + 1;
    return slice.hasUnitStride() && sizes.drop_front(behind) == whole.drop_front(behind);
  }

  bool feedsContractionsOnly(unsigned expr) const {
    return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
      unsigned consumer = graph.edges()[edge].consumer;
      const TensorExpr &reader = graph.exprs()[consumer];
      return (reader.kind == ExprKind::contraction && decisions.partOf[consumer] < 0) ||
             (reader.kind == ExprKind::movement && feedsContractionsOnly(consumer));
    });
  }

  bool isLoneDispatch(ArrayRef<unsigned> kernel) const {
    return kernel.size() == 1 && !contracts(*decisions.parts[kernel.front()]) &&
           dispatchesOfIree(graph, decisions.parts[kernel.front()]->choice.exprs).size() <= 1;
  }
};
} // namespace

void tilewright::dropSlowGroups(PlannerState &state) { SlowDropper(state).dropSlow(); }

void tilewright::dropLoneKernels(PlannerState &state) {
  SlowDropper dropper(state);
  dropper.leaveLoneSlices();
  dropper.leaveLoneDispatches();
}
