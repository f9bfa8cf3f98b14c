#include "passes/plan/grid/KernelSignature.h"

using namespace mlir;
using namespace tilewright;

/// Returns true if only groups of the kernel read the expression.
static bool isPrivate(const GridContext &context, unsigned expr, ArrayRef<unsigned> parts) {
  const TensorGraph &graph = context.graph;
  return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
    int64_t reader = context.decisions.partOf[graph.edges()[edge].consumer];
    return reader >= 0 && llvm::is_contained(parts, static_cast<unsigned>(reader));
  });
}

MemoKey tilewright::signatureOf(const GridContext &context, ArrayRef<unsigned> parts, KernelFrame &frame) {
  MemoKey key = {context.allowed, static_cast<int64_t>(parts.size())};
  frame.parts.assign(parts.begin(), parts.end());
  llvm::DenseMap<Value, int64_t> numbers; // tensors that several groups access have one number
  for (unsigned part : parts) {
    const PlannedGroup &group = context.part(part);
    GroupFrame &own = frame.groups.emplace_back();
    key.append(context.groups.signatureOf(group.choice.exprs, own));
    appendChoices(key, own, group);
    for (Value tensor : own.tensors)
      key.push_back(numbers.try_emplace(tensor, numbers.size()).first->second);
    for (unsigned expr : own.exprs)
      key.push_back(isPrivate(context, expr, parts));
  }
  return key;
}

PlannedGroup tilewright::rebase(const GridContext &context, const PlannedGroup &group, unsigned place,
                                const KernelFrame &from, const KernelFrame &to) {
  PlannedGroup moved = rebase(group, from.groups[place], to.groups[place]);
  moved.edges = context.part(to.parts[place]).edges;
  moved.apartSeconds = context.part(to.parts[place]).apartSeconds;
  return moved;
}
