#include "passes/plan/search/SearchSpace.h"

using namespace mlir;
using namespace tilewright;

/// Most readers of a tensor that are all siblings of each other.
static constexpr size_t kMostSiblings = 8;

static void insert(SmallVectorImpl<unsigned> &into, unsigned expr) {
  if (!llvm::is_contained(into, expr))
    into.push_back(expr);
}

SearchSpace::SearchSpace(const GroupProblem &problem, const Partition &partition, ArrayRef<unsigned> exprs,
                         std::function<bool(unsigned)> keepsApart)
    : graph(problem.graph), target(problem.target), exprs(exprs), dependences(partition, exprs),
      costs(problem, std::move(keepsApart)), members(problem.graph.exprs().size(), exprs),
      readers(graph.exprs().size()), producers(graph.exprs().size()), siblings(graph.exprs().size()) {
  for (const TensorEdge &edge : graph.edges())
    if (has(edge.producer) && has(edge.consumer)) {
      insert(readers[edge.producer], edge.consumer);
      insert(producers[edge.consumer], edge.producer);
    }
  for (const TensorReuse &reuse : graph.reuse()) {
    if (tensorBytes(reuse.tensor) <= kBytesOfScalar)
      continue;
    SmallVector<unsigned> own;
    llvm::copy_if(reuse.readers, std::back_inserter(own), [&](unsigned expr) { return has(expr); });
    for (size_t i = 0; i < own.size(); ++i)
      for (size_t j = i + 1; j < own.size() && (own.size() <= kMostSiblings || j == i + 1); ++j) {
        insert(siblings[own[i]], own[j]);
        insert(siblings[own[j]], own[i]);
      }
  }
}
