// Implements the vertical transformation (Souffle 6.2). Inside a subprogram, the pass carries out the thread edges of
// the plan and decides nothing. In a plain function, it inlines every producer whose repetition costs no arithmetic, so
// that movement disappears into its readers. Consumers are visited in program order, each until nothing is left to
// inline, so a chain is folded front to back and an expression is rebuilt only once per producer. A producer that is
// read along several ways is computed once: its copies are merged as they arise, because their number would double with
// each step of a chain.
#include "passes/Passes.h"
#include "passes/plan/apply/ExprRewriter.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/CSE.h"

#include <map>

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_COMPOSEEXPRS
#include "passes/Passes.h.inc"

namespace {
/// An input of an expression that its producer's body can replace.
struct Inlining {
  unsigned input;
  tile::ExprOp producer;
  unsigned result;
  bool unrounded; ///< true if the consumer gets the producer's element before its rounding
};

/// Returns an upper bound on the points of the consumer's domain at which the input is read.
int64_t numReads(tile::ExprOp consumer, unsigned input) {
  int64_t points = 1;
  for (Interval range : guardedRanges(consumer.getGuard(input), consumer.getDomain()))
    points *= range.size();
  return points;
}

unsigned numReaders(tile::ExprOp producer) { return std::distance(producer->use_begin(), producer->use_end()); }

/// Returns why inlining would repeat arithmetic of the producer, or an empty string if it would not.
StringRef duplicates(const Inlining &inlining, tile::ExprOp consumer) {
  TensorExpr producer = *describe(inlining.producer);
  if (producer.arithmetic() == 0)
    return "";
  if (numReaders(inlining.producer) != 1)
    return "the producer has several readers";
  return numReads(consumer, inlining.input) > producer.domainSize() ? "the consumer reads elements more than once" : "";
}

/// Merges connects of a subprogram that differ only in their readers, so that copies of a producer read the same tensors.
void mergeConnects(tile::SubprogramOp subprogram) {
  std::map<std::tuple<void *, tile::Scope, bool, bool>, tile::ConnectOp> first;
  for (auto connect : llvm::make_early_inc_range(subprogram.getBody().getOps<tile::ConnectOp>())) {
    auto key = std::tuple(connect.getValue().getAsOpaquePointer(), connect.getScope(), connect.getRecompute(),
                          connect.getUnrounded());
    auto [known, isNew] = first.try_emplace(key, connect);
    if (isNew)
      continue;
    connect.replaceAllUsesWith(known->second.getResult());
    connect.erase();
  }
}

/// Merges equal ops of a body.
void mergeCopies(tile::ExprOp expr) {
  DominanceInfo dominance(expr);
  IRRewriter rewriter(expr->getContext());
  eliminateCommonSubExpressions(rewriter, dominance, expr);
}

class ComposeExprs : public impl::ComposeExprsBase<ComposeExprs> {
  /// Returns the next producer that may be inlined into `consumer`. Sets `failed` if an edge cannot be carried out.
  std::optional<Inlining> next(tile::ExprOp consumer, bool &failed) {
    SmallVector<StringRef> declined;
    for (auto [i, value] : llvm::enumerate(consumer.getInputs())) {
      auto connect = value.getDefiningOp<tile::ConnectOp>();
      if (connect && connect.getScope() != tile::Scope::thread)
        continue;
      Value tensor = connect ? connect.getValue() : value;
      auto producer = tensor.getDefiningOp<tile::ExprOp>();
      bool planned = isa<tile::SubprogramOp>(consumer->getParentOp());
      if (!producer || planned != static_cast<bool>(connect)) {
        if (connect) {
          connect.emitOpError("a thread edge must come from a tile.expr");
          failed = true;
        }
        continue;
      }
      if (producer.isReduction()) {
        if (connect) {
          connect.emitOpError("a reduction cannot be handed over at scope thread");
          failed = true;
        }
        continue;
      }
      Inlining inlining{static_cast<unsigned>(i), producer, cast<OpResult>(tensor).getResultNumber(),
                        connect && connect.getUnrounded()};
      StringRef reason = planned ? "" : duplicates(inlining, consumer);
      if (reason.empty())
        return inlining;
      declined.push_back(reason);
    }
    for (StringRef reason : declined)
      remark::missed(consumer.getLoc(), remark::RemarkOpts::name("kept").category("tile-compose")) << reason;
    numKept += declined.size();
    return std::nullopt;
  }

  /// Inlines producers into one expression until none is left that may be inlined.
  LogicalResult compose(tile::ExprOp consumer) {
    bool failed = false;
    while (std::optional<Inlining> inlining = next(consumer, failed)) {
      OpBuilder builder(consumer);
      tile::ExprOp fused =
          inlineProducer(builder, consumer, inlining->input, inlining->producer, inlining->result, inlining->unrounded);
      consumer->replaceAllUsesWith(fused);
      consumer.erase();
      consumer = fused;
      mergeCopies(consumer);
      ++numInlined;
    }
    return failure(failed);
  }

  void runOnOperation() override {
    getOperation()->walk(mergeConnects);
    SmallVector<tile::ExprOp> exprs;
    getOperation()->walk([&](tile::ExprOp op) { exprs.push_back(op); });
    for (tile::ExprOp expr : exprs)
      if (failed(compose(expr)))
        return signalPassFailure();
    SmallVector<Operation *> dead;
    getOperation()->walk([&](Operation *op) {
      if (isa<tile::ExprOp, tile::ConnectOp>(op))
        dead.push_back(op);
    });
    for (Operation *op : llvm::reverse(dead))
      if (op->use_empty())
        op->erase();
  }
};
} // namespace
} // namespace tilewright
