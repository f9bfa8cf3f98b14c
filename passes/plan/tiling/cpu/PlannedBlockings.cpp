#include "passes/plan/tiling/cpu/PlannedBlockings.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/layout/Blocking.h"
#include "passes/plan/space/ContractionReader.h"
#include "passes/target/KBlocking.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Reads one contraction of a plan.
class BlockingReader : public ContractionReader {
public:
  BlockingReader(const Plan &plan, const TensorGraph &graph, const GroupPlan &group, const Target &target)
      : ContractionReader(plan, graph, group), target(target) {}

  /// Returns the contraction of an op that has a micro kernel. It refers to the reader until the next call. Declines if
  /// no register block can compute it in this group.
  OrDeclined<BlockedContraction> read(const OpPlan &op) {
    OrDeclined<ContractionRoles> roles = find(op);
    if (!roles)
      return roles.why();
    lhsShape = shapeOf(lhs());
    rhsShape = shapeOf(rhs());
    std::optional<PackedK> packed =
        packedK(rhs().map, rhsShape, n, extents, [&](int64_t dim) { return isReduced(dim); });
    int64_t depth = packed ? packed->depth : 1;
    ProductTypes types = productTypes(expr(), *roles);
    std::optional<MicroKernel> kernel = findMicroKernel(target, types, {depth, /*tiles=*/true}, op.microKernel);
    if (!kernel)
      return Declined{"target '" + target.name + "' has no micro kernel '" + op.microKernel + "' for its operands",
                      "another micro kernel"};
    // Contractions with a micro kernel have results as wide as their accumulators, so these are never rounded.
    int64_t accumulatorBytes = tile::elementBytes(getElementTypeOrSelf(expr().op->getResult(0).getType()));
    BlockedContraction contraction{{lhs().map, lhsShape, bytesOf(lhs()), sizes, extents, lhs().guard},
                                   {rhs().map, rhsShape, bytesOf(rhs()), sizes, extents, rhs().guard},
                                   m,
                                   n,
                                   packed && packed->dim >= 0 ? packed->dim : reduced.back(),
                                   reduced.size() == 1,
                                   rhs().producer < 0,
                                   /*keepsAccumulators=*/true,
                                   depth,
                                   accumulatorBytes,
                                   target.vectorBytes / accumulatorBytes,
                                   *kernel,
                                   kernel->blockFor(target),
                                   kBlocking(op.microKernel),
                                   target.costs.cpu};
    contraction.hasFactors = multipliesFactors(contraction, expr().op->getAttr(kFactorsAttr));
    return contraction;
  }

private:
  const Target &target;
  SmallVector<int64_t> lhsShape, rhsShape;
};
} // namespace

/// Calls `visit` with each op of the plan that has a micro kernel and with its contraction, until it returns a reason.
template <typename AnyPlan, typename Visit>
static std::string forEachBlocking(AnyPlan &plan, const TensorGraph &graph, const Target &target, Visit visit) {
  auto makeReader = [&](const KernelPlan &, const GroupPlan &group) {
    return BlockingReader(plan, graph, group, target);
  };
  return forEachContraction(plan, makeReader, [&](auto &op, BlockingReader &reader) {
    std::string why = visit(op, reader.read(op));
    return why.empty() ? "" : "blocking: " + why;
  });
}

/// Puts the loop over blocks of K outside of the loop along N, or inside of it.
static void placeK(LevelTiling &tiling, const BlockedContraction &own, bool outermost) {
  if (!own.blocksK() || !llvm::is_contained(tiling.order, own.n))
    return;
  llvm::erase(tiling.order, own.k);
  auto n = llvm::find(tiling.order, own.n);
  tiling.order.insert(outermost ? n : std::next(n), own.k);
}

void tilewright::chooseBlockings(Plan &plan, const TensorGraph &graph, const Target &target) {
  forEachBlocking(plan, graph, target, [](OpPlan &op, OrDeclined<BlockedContraction> read) -> std::string {
    if (op.blocking || !read)
      return "";
    if (BlockingChoice choice = chooseBlocking(*read); whyNotBlocked(*read, choice).empty()) {
      op.blocking = choice;
      // Which rows a register block takes, and so its vectors, was not known when the tiling was written.
      for (LevelTiling &tiling : op.tilings)
        if (tiling.level == tile::Scope::thread) {
          tiling.sizes[read->n] = std::min(choice.vectors * read->lanes, read->rhs.sizes[read->n]);
          placeK(tiling, *read, choice.kOutermost);
        }
    }
    return "";
  });
}

void tilewright::leaveUnblocked(Plan &plan, const TensorGraph &graph, const Target &target) {
  forEachBlocking(plan, graph, target, [](OpPlan &op, const OrDeclined<BlockedContraction> &read) -> std::string {
    if (!op.blocking && (!read || read->kernel.unit == StepUnit::vector)) {
      op.microKernel.clear();
      llvm::erase_if(op.tilings, [](const LevelTiling &tiling) { return tiling.level == tile::Scope::thread; });
    }
    return "";
  });
}

std::string tilewright::whyNotBlocked(const Plan &plan, const TensorGraph &graph, const Target &target) {
  return forEachBlocking(plan, graph, target, [](const OpPlan &op, OrDeclined<BlockedContraction> read) -> std::string {
    if (!read)
      return read.why().reason;
    bool triesOthers = !op.blocking && read->kernel.unit == StepUnit::tiles;
    return triesOthers ? "" : whyNotBlocked(*read, op.blocking ? *op.blocking : chooseBlocking(*read));
  });
}
