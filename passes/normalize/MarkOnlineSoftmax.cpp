// Marks maxima that one pass over a row can compute together with the sum of exp(x - maximum). OnlineSoftmax.h has the
// algebra. This pass only permits it, because strict numerics do without it; whether a kernel uses it shows in its loop
// nests.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/CausalBound.h"
#include "passes/graph/Form.h"
#include "passes/graph/FormPass.h"
#include "passes/graph/OwnMaximum.h"
#include "passes/graph/ReducedWalk.h"
#include "passes/graph/StartValue.h"
#include "passes/graph/TensorGraph.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_MARKONLINESOFTMAX
#include "passes/Passes.h.inc"

namespace {
using tile::Form;

/// Returns true if the reduced dim is contiguous in every input.
bool reducesInnermost(const TensorExpr &expr) {
  return llvm::all_of(expr.inputs, [&](const TensorAccess &access) {
    return access.map.getNumResults() > 0 &&
           access.map.getResults().back() == getAffineDimExpr(expr.reductions.front(), access.map.getContext());
  });
}

/// Returns true if the op subtracts the maximum only from the values that it is the maximum of.
bool isSubtractedFromOwn(const TensorExpr &expr) {
  auto op = dyn_cast<linalg::LinalgOp>(expr.op);
  return op && llvm::all_of(op.getBlock()->getOps<arith::SubFOp>(),
                            [&](arith::SubFOp difference) { return isBelowOwnMaximum(op, difference); });
}

/// Returns true if a contraction multiplies with values that depend on the exponentials point by point. A register
/// block reads them from memory unchanged and cannot apply a factor to them, and one pass less saves little time next
/// to a contraction. Walking the row in blocks may still save memory.
bool isMultipliedWith(const TensorGraph &graph, ArrayRef<Relation> relations) {
  SmallVector<bool> follows(relations.size());
  for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
    bool reads = false;
    for (unsigned edge : graph.inEdges(id))
      reads |= follows[graph.edges()[edge].producer];
    if (reads && expr.kind == ExprKind::contraction)
      return true;
    follows[id] = relations[id] == Relation::proportional || (reads && expr.oneReliesOnOne());
  }
  return false;
}

/// Returns the form of a maximum, if some sum over the same points is proportional to exp(-maximum) and no exponent is
/// above zero; otherwise `asIs`.
Form formOfMaximum(const TensorGraph &graph, unsigned maximum, int64_t least) {
  ArrayRef<TensorExpr> exprs = graph.exprs();
  auto producerOf = [&](unsigned expr, unsigned input) -> int64_t {
    for (unsigned edge : graph.inEdges(expr))
      if (graph.edges()[edge].input == input)
        return graph.edges()[edge].producer;
    return -1;
  };
  SmallVector<Relation> relations = relateTo(exprs, maximum, producerOf);
  bool summed = false;
  for (unsigned id = 0; id < exprs.size(); ++id) {
    const TensorExpr &expr = exprs[id];
    bool follows =
        relations[id] == Relation::shifted || relations[id] == Relation::proportional || relations[id] == Relation::sum;
    bool readsMaximum = llvm::any_of(llvm::seq<unsigned>(0, expr.inputs.size()), [&](unsigned input) {
      int64_t producer = producerOf(id, input);
      return producer >= 0 && relations[producer] == Relation::maximum;
    });
    if (follows && readsMaximum && !isSubtractedFromOwn(expr))
      return Form::asIs;
    if (relations[id] == Relation::sum && !startsFromZero(expr.op))
      return Form::asIs;
    summed |= relations[id] == Relation::sum && expr.domainSize() == exprs[maximum].domainSize();
  }
  if (!summed)
    return Form::asIs;
  if (isMultipliedWith(graph, relations))
    return Form::onlineSoftmaxOfBlocks;
  const TensorExpr &expr = exprs[maximum];
  return isRowMaximum(expr, least) && reducesInnermost(expr) ? Form::onlineSoftmax : Form::asIs;
}

/// Permits the form, unless threads share a row: they would have to synchronise whenever the reference of the row
/// changes.
FormChoice decideOnline(Form form, bool isShared) {
  FormChoice choice;
  choice.form = form;
  choice.numerics.reassociates = true;
  choice.taken = !isShared;
  choice.reason = isShared ? "threads share a row" : "the plan may compute maximum and sum in one pass";
  if (isShared)
    choice.wouldChange = "a machine without thread blocks";
  return choice;
}

class MarkOnlineSoftmax : public FormPass<impl::MarkOnlineSoftmaxBase<MarkOnlineSoftmax>> {
public:
  using FormPass::FormPass;

private:
  void runOnOperation() override {
    FailureOr<Target> machine = targetOrError(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    int64_t least = shortestOnlineRow(*machine);
    for (Block &block : getOperation().getBody()) {
      TensorGraph graph = TensorGraph::build(block);
      for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
        Form form = isRowMaximum(expr, /*least=*/0) ? formOfMaximum(graph, id, least) : Form::asIs;
        if (form == Form::asIs)
          continue;
        std::optional<AffineExpr> end = form == Form::onlineSoftmaxOfBlocks ? endOfCounted(graph, id) : std::nullopt;
        if (end)
          form = Form::onlineSoftmaxWithBound;
        bool isShared = machine->traits.threadBlocks && form == Form::onlineSoftmax;
        FailureOr<FormChoice> choice =
            settle(decideOnline(form, isShared), expr.op, [&](const FormChoice &choice) {
              return isShared ? "threads share a row" : takesNoParameters(choice);
            });
        if (failed(choice))
          return;
        if (!choice->taken)
          continue;
        setForm(expr.op, form);
        if (end)
          expr.op->setAttr(kCountedAttr, AffineMapAttr::get(AffineMap::get(expr.domain.size(), 0, *end)));
      }
    }
  }
};
} // namespace
} // namespace tilewright
