#include "passes/plan/grid/ViewsBetween.h"

#include "passes/graph/Eligibility.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

static bool isLeftView(const GridContext &context, unsigned expr) {
  return context.decisions.partOf[expr] < 0 && isView(context.graph.exprs()[expr]);
}

/// Returns true if only the reading group or a view in `chain` reads the expression.
static bool isReadOnlyIn(const GridContext &context, unsigned expr, const GroupChoice &reader,
                         ArrayRef<unsigned> chain) {
  const TensorGraph &graph = context.graph;
  return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
    unsigned consumer = graph.edges()[edge].consumer;
    return reader.contains(consumer) || llvm::is_contained(chain, consumer);
  });
}

SmallVector<unsigned> tilewright::viewsBetween(const GridContext &context, ArrayRef<unsigned> producers,
                                               unsigned reader) {
  const TensorGraph &graph = context.graph;
  const GroupChoice &reading = context.part(reader).choice;
  llvm::SmallSetVector<unsigned, 4> views;
  for (unsigned expr : reading.exprs)
    for (unsigned edge : graph.inEdges(expr)) {
      SmallVector<unsigned> chain;
      unsigned from = graph.edges()[edge].producer;
      while (isLeftView(context, from) && isReadOnlyIn(context, from, reading, chain) && !graph.inEdges(from).empty()) {
        chain.push_back(from);
        from = graph.edges()[graph.inEdges(from).front()].producer;
      }
      if (llvm::any_of(producers, [&](unsigned own) { return context.part(own).choice.contains(from); }))
        views.insert(chain.begin(), chain.end());
    }
  return views.takeVector();
}
