#include "passes/plan/ir/PlanLoops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace tilewright;

std::vector<BlockGraph> tilewright::graphsOf(mlir::Operation *function) {
  std::vector<BlockGraph> graphs;
  unsigned next = 0;
  for (PlannedBlock planned : plannedBlocks(function)) {
    TensorGraph graph = TensorGraph::build(*planned.block);
    unsigned ops = graph.exprs().size();
    if (!planned.loop || ops > 0)
      graphs.push_back({planned.block, planned.loop, std::move(graph), next});
    next += ops;
  }
  return next > 0 ? std::move(graphs) : std::vector<BlockGraph>();
}

/// Returns how often the body runs in a call, in all runs of the loops around it together; -1 if that is not known.
static int64_t runsOf(mlir::Operation *loop) {
  int64_t runs = 1;
  for (; loop; loop = loop->getParentOp()) {
    if (!isLoop(loop))
      continue;
    std::optional<int64_t> trips = tripCount(loop);
    if (!trips || llvm::MulOverflow(runs, *trips, runs))
      return -1;
  }
  return runs;
}

LoopPlan tilewright::loopPlanOf(const BlockGraph &body) {
  return {body.loop->getName().getStringRef().str(), body.firstOp, static_cast<unsigned>(body.graph.exprs().size()),
          runsOf(body.loop), /*oneKernel=*/{}, /*reason=*/""};
}

/// Adds `by` to the numbers of all ops of a plan. Names of tensors stay: they are relative to the block.
static void renumber(Plan &plan, int64_t by) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &group : kernel.groups)
      for (OpPlan &op : group.ops)
        op.id += by;
  for (EdgePlan &edge : plan.edges) {
    edge.producer += by;
    edge.consumer += by;
  }
  for (LeftOp &op : plan.left)
    op.id += by;
}

static void launchInOrder(Plan &plan) {
  plan.streams.clear();
  if (plan.kernels.empty())
    return;
  std::vector<unsigned> &stream = plan.streams.emplace_back(plan.kernels.size());
  std::iota(stream.begin(), stream.end(), 0);
}

/// Returns the number of the block that has an op, or of blocks if none has.
static size_t blockOf(llvm::ArrayRef<BlockGraph> blocks, unsigned op) {
  return llvm::find_if(blocks, [&](const BlockGraph &block) {
           return op >= block.firstOp && op - block.firstOp < block.graph.exprs().size();
         }) - blocks.begin();
}

/// Returns why a loop of the plan is none of the function, or an empty string.
static std::string whyNotLoop(const LoopPlan &loop, llvm::ArrayRef<BlockGraph> blocks) {
  std::string subject = "loop " + std::to_string(loop.firstOp) + ": ";
  for (const BlockGraph &block : blocks) {
    if (!block.loop || block.graph.exprs().empty() || block.firstOp != loop.firstOp)
      continue;
    LoopPlan own = loopPlanOf(block);
    bool hasOtherSteps = loop.steps >= 0 && loop.steps != own.steps; // a file may leave them out
    if (loop.op != own.op || loop.ops != own.ops || hasOtherSteps)
      return subject + "the model has '" + own.op + "' with " + std::to_string(own.ops) + " ops and " +
             std::to_string(own.steps) + " steps, not '" + loop.op + "' with " + std::to_string(loop.ops) + " and " +
             std::to_string(loop.steps);
    return "";
  }
  return subject + "no loop of the model has its first op there (firstOp)";
}

std::string tilewright::whyNotOfLoops(const Plan &plan, llvm::ArrayRef<BlockGraph> blocks) {
  for (const LoopPlan &loop : plan.loops)
    if (std::string why = whyNotLoop(loop, blocks); !why.empty())
      return why;
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &group : kernel.groups)
      for (const OpPlan &op : group.ops)
        if (size_t own = blockOf(blocks, op.id);
            own < blocks.size() && blocks[own].loop && !loopAt(plan, blocks[own].firstOp))
          return "kernel '" + kernel.name + "': op " + std::to_string(op.id) + " is of loop " +
                 std::to_string(blocks[own].firstOp) + ", which the plan does not list (loops)";
  return "";
}

std::string tilewright::whyNotOfBlocks(const Plan &plan, llvm::ArrayRef<BlockGraph> blocks) {
  for (const KernelPlan &kernel : plan.kernels) {
    std::string subject = "kernel '" + kernel.name + "': ";
    std::optional<size_t> own;
    for (const GroupPlan &group : kernel.groups)
      for (const OpPlan &op : group.ops) {
        size_t block = blockOf(blocks, op.id);
        if (block == blocks.size())
          return subject + "op " + std::to_string(op.id) + " does not exist";
        if (own.value_or(block) != block)
          return subject + "op " + std::to_string(op.id) + " is of another loop than those before it";
        own = block;
      }
    if (!own)
      return subject + "it has no ops";
  }
  for (const EdgePlan &edge : plan.edges)
    if (blockOf(blocks, edge.producer) != blockOf(blocks, edge.consumer) ||
        blockOf(blocks, edge.producer) == blocks.size())
      return "no edge leads from op " + std::to_string(edge.producer) + " to op " + std::to_string(edge.consumer);
  for (const LeftOp &op : plan.left)
    if (blockOf(blocks, op.id) == blocks.size())
      return "op " + std::to_string(op.id) + ", which is left, does not exist";
  return plan.verifyStreams();
}

Plan tilewright::planOfBlock(const Plan &plan, unsigned first, unsigned count) {
  auto isInside = [&](unsigned op) { return op >= first && op - first < count; };
  Plan block{plan.target, plan.policy, plan.numerics, {}, {}, {}, {}, plan.forms, {}};
  for (const KernelPlan &kernel : plan.kernels)
    if (!kernel.groups.empty() && !kernel.groups.front().ops.empty() && isInside(kernel.groups.front().ops.front().id))
      block.kernels.push_back(kernel);
  llvm::copy_if(plan.edges, std::back_inserter(block.edges),
                [&](const EdgePlan &edge) { return isInside(edge.consumer); });
  llvm::copy_if(plan.left, std::back_inserter(block.left), [&](const LeftOp &op) { return isInside(op.id); });
  renumber(block, -static_cast<int64_t>(first));
  launchInOrder(block);
  return block;
}

void tilewright::addPlanOfBlock(Plan &plan, Plan block, unsigned first) {
  renumber(block, first);
  llvm::StringSet<> names;
  for (const KernelPlan &kernel : plan.kernels)
    names.insert(kernel.name);
  for (KernelPlan &kernel : block.kernels) {
    std::string name = kernel.name;
    for (unsigned next = 1; !names.insert(kernel.name).second; ++next)
      kernel.name = name + "_body" + std::to_string(next);
  }
  llvm::move(block.kernels, std::back_inserter(plan.kernels));
  llvm::move(block.edges, std::back_inserter(plan.edges));
  llvm::move(block.left, std::back_inserter(plan.left));
  launchInOrder(plan);
}

const LoopPlan *tilewright::loopAt(const Plan &plan, unsigned firstOp) {
  auto loop = llvm::find_if(plan.loops, [&](const LoopPlan &loop) { return loop.firstOp == firstOp; });
  return loop == plan.loops.end() ? nullptr : &*loop;
}
