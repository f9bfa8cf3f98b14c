#include "passes/plan/ir/PlanOfOps.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace tilewright;

using Numbers = llvm::DenseMap<unsigned, unsigned>;

/// Renumbers the op in a tensor's name, such as "op3.0". Names of inputs stay.
static void renumber(TensorPlan &tensor, const Numbers &numbers) {
  llvm::StringRef rest = tensor.tensor;
  unsigned op = 0;
  if (rest.consume_front("op") && !rest.consumeInteger(10, op))
    tensor.tensor = "op" + std::to_string(numbers.lookup(op)) + rest.str();
}

static KernelPlan renumbered(KernelPlan kernel, const Numbers &numbers) {
  for (GroupPlan &group : kernel.groups) {
    for (OpPlan &op : group.ops)
      op.id = numbers.lookup(op.id);
    for (TensorPlan &tensor : group.tensors)
      renumber(tensor, numbers);
  }
  return kernel;
}

Plan tilewright::planOfOps(const Plan &plan, llvm::ArrayRef<unsigned> ops) {
  Numbers numbers;
  for (auto [number, op] : llvm::enumerate(ops))
    numbers[op] = number;
  Plan own{plan.target, plan.policy, plan.numerics, {}, {}, {}, {}, {}, {}};
  for (const KernelPlan &kernel : plan.kernels)
    if (numbers.contains(kernel.groups.front().ops.front().id))
      own.kernels.push_back(renumbered(kernel, numbers));
  if (!own.kernels.empty())
    std::iota(own.streams.emplace_back(own.kernels.size()).begin(), own.streams.back().end(), 0);
  for (EdgePlan edge : plan.edges)
    if (numbers.contains(edge.producer) && numbers.contains(edge.consumer)) {
      edge.producer = numbers.lookup(edge.producer);
      edge.consumer = numbers.lookup(edge.consumer);
      own.edges.push_back(std::move(edge));
    }
  for (LeftOp op : plan.left)
    if (numbers.contains(op.id)) {
      op.id = numbers.lookup(op.id);
      own.left.push_back(std::move(op));
    }
  return own;
}
