// The policy `souffle`: Souffle's transformation of a whole program of tensor expressions (sections 5.3 to 6.4). Breadth
// first, every compute-intensive expression starts a group; a memory-intensive one takes over the schedule of a producer,
// which is the vertical transformation, and independent ones that read a tensor in common become one, which is the
// horizontal transformation. Kernels then take in one group after another, with barriers of the grid between them, until
// the blocks of the largest compute-intensive group could not all be resident (5.4). Last, blocks keep tiles that a later
// group of their kernel reads again (6.5), which is the only choice by predicted time.
#include "passes/graph/ComputeRatio.h"
#include "passes/plan/fusion/GroupingPolicy.h"
#include "passes/plan/grid/PlannedKernel.h"
#include "passes/plan/grid/ResidentAtGrid.h"
#include "passes/target/Occupancy.h"

using namespace mlir;
using namespace tilewright;

static double elementsOf(Value tensor) {
  return static_cast<double>(cast<RankedTensorType>(tensor.getType()).getNumElements());
}

static bool isComputeIntensive(const TensorExpr &expr) {
  double elements = 0;
  for (const TensorAccess &access : expr.inputs)
    elements += elementsOf(access.tensor);
  for (Value result : expr.op->getResults())
    elements += elementsOf(result);
  return !expr.oneReliesOnOne() && static_cast<double>(expr.arithmetic()) >= kComputeRatioThreshold * elements;
}

/// Returns the expressions by the length of the longest path to each, in program order where that is equal.
static SmallVector<unsigned> breadthFirst(const SearchSpace &space) {
  llvm::DenseMap<unsigned, unsigned> depth;
  for (unsigned expr : space.exprs) {
    depth[expr] = 0;
    for (unsigned producer : space.producersOf(expr))
      depth[expr] = std::max(depth[expr], depth[producer] + 1);
  }
  SmallVector<unsigned> order(space.exprs);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return depth[a] < depth[b]; });
  return order;
}

namespace {
class Transformer {
public:
  explicit Transformer(SearchSpace &space) : space(space), order(breadthFirst(space)), grouping(space) {}

  void transformVertically() {
    for (unsigned expr : order)
      if (!isComputeIntensive(at(expr)))
        takeSchedule(expr);
  }

  void transformHorizontally() {
    for (unsigned expr : order)
      for (unsigned sibling : space.siblingsOf(expr))
        if (!isComputeIntensive(at(expr)) && !isComputeIntensive(at(sibling)) &&
            grouping.nameOf(expr) != grouping.nameOf(sibling))
          tryMerge(grouping.nameOf(expr), grouping.nameOf(sibling));
  }

  Grouping take() { return std::move(grouping); }

private:
  const TensorExpr &at(unsigned expr) const { return space.graph.exprs()[expr]; }

  /// Joins the group of a producer, a compute-intensive one before others.
  void takeSchedule(unsigned expr) {
    SmallVector<unsigned> producers(space.producersOf(expr));
    llvm::stable_sort(producers, [&](unsigned a, unsigned b) {
      return grouping.group(grouping.nameOf(a)).contracts > grouping.group(grouping.nameOf(b)).contracts;
    });
    for (unsigned producer : producers)
      if (grouping.nameOf(producer) != grouping.nameOf(expr))
        tryMerge(grouping.nameOf(producer), grouping.nameOf(expr));
  }

  /// Merges two groups unless the whole would be one tile where one of them has several: that would not be the schedule
  /// of either. In the paper, dependences between blocks become barriers of the grid or atomic sums.
  void tryMerge(unsigned a, unsigned b) {
    bool isSplit = grouping.group(a).tiles > 1 || grouping.group(b).tiles > 1;
    if (grouping.canMerge({a, b}) && grouping.merged({a, b}).isPossible() &&
        (!isSplit || grouping.merged({a, b}).tiles > 1))
      grouping.merge({a, b});
  }

  SearchSpace &space;
  const SmallVector<unsigned> order;
  Grouping grouping;
};

/// Fills subprograms with kernels, breadth first, as long as all blocks can be resident, and reuses tiles in them.
class SubprogramFiller : PlannerStep {
public:
  SubprogramFiller(const FusionProblem &problem, PlanDraft &plan)
      : PlannerStep(problem, plan),
        context{groups, graph, target, decisions, problem.options.gridSync && target.hasGridBarriers()} {}

  void fill() {
    if (!context.allowed)
      return;
    for (size_t kernel = 0; kernel + 1 < decisions.kernels.size();)
      if (!takeNext(kernel))
        ++kernel;
  }

  void reuseTiles() {
    if (!context.allowed)
      return;
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      if (std::optional<PlannedKernel> reusing = keepTiles(context, decisions.kernels[kernel]))
        carryOut(*reusing, kernel, decisions);
  }

private:
  bool takeNext(size_t kernel) {
    SmallVector<unsigned> both(decisions.kernels[kernel]), &next = decisions.kernels[kernel + 1];
    unsigned own = groupOf(both.front()), other = groupOf(next.front());
    llvm::append_range(both, next);
    if (!partition.canMerge(own, other) || countBindings(graph, decisions, both, target) > target.maxBindings ||
        !areResident(both))
      return false;
    OrDeclined<PlannedKernel> joined = planKernel(context, both, std::numeric_limits<double>::infinity());
    if (!joined)
      return false;
    for (unsigned producer : decisions.kernels[kernel])
      for (unsigned reader : next)
        decisions.barriers[{producer, reader}] = "the subprogram of the policy 'souffle' has room for both";
    partition.merge(own, other);
    decisions.kernels.erase(decisions.kernels.begin() + kernel + 1);
    carryOut(*joined, kernel, decisions);
    return true;
  }

  /// Returns true if a wave has room for the largest grid of all groups with contractions, although each block takes as
  /// much as the largest of them (5.4: max_grid * max_occ < C). Kernels here could walk more tiles than blocks are
  /// resident, but in the paper a block has one tile.
  bool areResident(ArrayRef<unsigned> groups) const {
    BlockResources most{0, 0, 0, 0};
    for (unsigned number : groups)
      if (const PlannedGroup &group = *decisions.parts[number]; contracts(group)) {
        BlockResources own = resourcesOf(group.space.blockWork);
        most = {std::max(most.blocks, group.space.numTiles()), std::max(most.threads, own.threads),
                std::max(most.sharedBytes, own.sharedBytes), std::max(most.registers, own.registers)};
      }
    return most.blocks == 0 ||
           most.blocks <= coResidentBlocks(target, residentBlocks(target.gpu, most.threads, most.sharedBytes,
                                                                  most.registers));
  }

  GridContext context;
};
} // namespace

std::vector<Grouping> tilewright::groupBySouffle(SearchSpace &space) {
  Transformer transformer(space);
  transformer.transformVertically();
  transformer.transformHorizontally();
  return {transformer.take()};
}

std::vector<Grouping> tilewright::groupHorizontally(SearchSpace &space) {
  Transformer transformer(space);
  transformer.transformHorizontally();
  return {transformer.take()};
}

PlanDraft tilewright::fillSubprograms(const FusionProblem &problem, PlanDraft plan) {
  SubprogramFiller(problem, plan).fill();
  return plan;
}

PlanDraft tilewright::reuseTiles(const FusionProblem &problem, PlanDraft plan) {
  SubprogramFiller(problem, plan).reuseTiles();
  return plan;
}
