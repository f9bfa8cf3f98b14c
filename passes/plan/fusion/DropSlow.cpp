// Leaves to IREE the fusion groups that are not predicted to beat IREE alone on the same ops, and kernels that would
// only stand between IREE's.
#include "passes/cost/Confidence.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

/// Returns true for ops that make tensors of other tensors, IREE's own included, other than constants and globals. Loops
/// are none: their bodies are planned on their own.
static bool computesTensors(Operation &op) {
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  StringRef dialect = op.getName().getDialectNamespace();
  return dialect != "hal" && dialect != "util" && !isa<scf::ForOp>(op) &&
         llvm::any_of(op.getOperandTypes(), isTensor) && llvm::any_of(op.getResultTypes(), isTensor) &&
         !constantElement(op.getResult(0));
}

namespace {
constexpr llvm::StringLiteral kLoneMovement = "movement that no Tilewright kernel computes with";

class SlowDropper : PlannerStep {
public:
  using PlannerStep::PlannerStep;

  void dropSlow() {
    SmallVector<unsigned> moves;
    for (auto [number, group] : llvm::enumerate(decisions.parts)) {
      std::string why = group ? whyNotFaster(*group) : "";
      if (why == kLoneMovement)
        moves.push_back(number);
      else if (!why.empty())
        drop(number, why);
    }
    bool withoutIree = runsWithoutIree();
    for (unsigned group : moves)
      if (!withoutIree || takesWholeRuns(*decisions.parts[group]))
        drop(group, kLoneMovement);
  }

  /// Leaves kernels that only move elements to IREE, which copies as well. They are slices that ended up with no kernel
  /// to share, or movement that was to make a program run without IREE.
  void leaveLoneMovement() {
    if (runsWithoutIree())
      return;
    llvm::erase_if(decisions.kernels, [&](ArrayRef<unsigned> kernel) {
      if (!llvm::all_of(kernel, [&](unsigned group) { return movesUnguarded(*decisions.parts[group]); }))
        return false;
      for (unsigned group : kernel)
        drop(group, kLoneMovement);
      return true;
    });
  }

  /// Leaves everything to IREE if no kernel fuses more than IREE would. Such kernels are as fast as IREE's, but they
  /// stand between contractions and the packing that IREE fuses into their neighbours. Measured: a CNN's average pool
  /// alone then costs 2% of the model's time.
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
  void drop(unsigned group, StringRef why) {
    for (unsigned expr : decisions.parts[group]->choice.exprs)
      leave(expr, why);
    decisions.parts[group].reset();
  }

  /// Returns true if IREE has nothing to compute in a call: the program then runs without it, and a call costs several
  /// microseconds less on a CPU, and tens on a GPU. (IREE's own transposes on CPUs also take 1.6 to 9 times as long as
  /// ours.)
  bool runsWithoutIree() const {
    if (llvm::any_of(block, [&](Operation &op) { return graph.indexOf(&op) < 0 && computesTensors(op); }))
      return false;
    std::vector<bool> atLoad = computedAtLoad(graph);
    return llvm::all_of(llvm::enumerate(graph.exprs()), [&](const auto &entry) {
      auto [id, expr] = entry;
      bool isUnused = llvm::all_of(expr.op->getResults(), [](Value result) { return result.use_empty(); });
      return decisions.partOf[id] >= 0 || atLoad[id] || isView(expr) || isUnused;
    });
  }

  std::string whyNotFaster(const PlannedGroup &group) const {
    if (contracts(group))
      return ""; // measured: register blocks reach 95% of the machine's peak, IREE's contractions 70%
    bool computes =
        llvm::any_of(group.choice.exprs, [&](unsigned expr) { return graph.exprs()[expr].kind != ExprKind::movement; });
    if (slicesOurs(group))
      return ""; // decided in leaveLoneMovement, when it is known if it shares a kernel
    if (!computes && llvm::none_of(group.choice.exprs, [&](unsigned expr) { return movesInPieces(expr); }))
      return kLoneMovement.str();
    if (!computes && llvm::all_of(group.choice.exprs, [&](unsigned expr) { return feedsContractionsOnly(expr); }))
      return "movement that only contractions of IREE read";
    std::vector<SmallVector<unsigned>> alone = dispatchesOfIree(graph, group.choice.exprs);
    if (alone.size() <= 1)
      return options.takeSingles ? "" : "IREE runs it as one dispatch by itself";
    // Each of IREE's dispatches is priced as a Tilewright kernel for the same ops, times the measured ratio on a CPU.
    std::vector<PlannedGroup> dispatches;
    double bytes = 0;
    for (ArrayRef<unsigned> dispatch : alone) {
      OrDeclined<PlannedGroup> planned = planGroup(groups, dispatch);
      if (!planned)
        return "";
      bytes += planned->predicted.bytes;
      dispatches.push_back(std::move(*planned));
    }
    double ours = group.predicted.seconds, theirs = 0;
    for (const PlannedGroup &dispatch : dispatches)
      theirs += secondsOf(dispatch, bytes);
    theirs *= !target.traits.threadBlocks ? target.costs.cpu.ireeSlowdown : 1;
    if (isFaster(theirs, ours, errorOf(group)))
      return "IREE alone is predicted faster: " + microseconds(theirs) + " against " + microseconds(ours);
    return "";
  }

  /// Returns true for strided slices of a value that a Tilewright kernel computes, if there are grid barriers. Alone,
  /// the group is a launch that copies; joined to that kernel by a grid barrier, it is one of its phases.
  bool slicesOurs(const PlannedGroup &group) const {
    return target.hasGridBarriers() && movesUnguarded(group) &&
           llvm::any_of(group.choice.exprs, [&](unsigned expr) {
             return isStridedSlice(expr) && llvm::any_of(graph.inEdges(expr), [&](unsigned edge) {
                      return decisions.partOf[graph.edges()[edge].producer] >= 0;
                    });
           });
  }

  /// Returns true on a GPU for contiguous slices, which IREE does not copy there.
  bool takesWholeRuns(const PlannedGroup &group) const {
    return target.traits.threadBlocks && llvm::all_of(group.choice.exprs, [&](unsigned expr) {
             auto slice = dyn_cast<tensor::ExtractSliceOp>(graph.exprs()[expr].op);
             return slice && isContiguous(slice);
           });
  }

  bool isStridedSlice(unsigned expr) const {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(graph.exprs()[expr].op);
    return slice && !isContiguous(slice);
  }

  /// Returns true if the slice takes whole dims behind its outermost dim of more than one element.
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

PlanDraft tilewright::dropSlowGroups(const FusionProblem &problem, PlanDraft plan) {
  SlowDropper(problem, plan).dropSlow();
  return plan;
}

PlanDraft tilewright::dropLoneKernels(const FusionProblem &problem, PlanDraft plan) {
  SlowDropper dropper(problem, plan);
  dropper.leaveLoneMovement();
  dropper.leaveLoneDispatches();
  return plan;
}
