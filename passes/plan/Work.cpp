#include "passes/plan/Work.h"

#include "passes/plan/Eligibility.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

static int64_t elementBytesOf(Value tensor) {
  return tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

/// Bytes of a tensor that are read at `points` points of a domain at most.
static double touchedBytes(Value tensor, double points) {
  return std::min(static_cast<double>(tensorBytes(tensor)), points * elementBytesOf(tensor));
}

//===----------------------------------------------------------------------===//
// Our parts
//===----------------------------------------------------------------------===//

PartWork tilewright::workOf(const TensorGraph &graph, const IndexSpace &space) {
  PartWork work;
  work.workgroups = space.workgroups;
  work.barriers = space.roots.size() - 1;
  llvm::MapVector<Value, double> touched;
  llvm::MapVector<Value, unsigned> readers;
  for (const PartRoot &root : space.roots) {
    double points = graph.exprs()[root.expr].domainSize();
    llvm::SetVector<Value> read;
    for (const RootAccess &access : root.accesses) {
      read.insert(access.tensor);
      if (access.producer < 0)
        touched[access.tensor] += touchedBytes(access.tensor, points);
    }
    for (Value tensor : read)
      ++readers[tensor];
    for (unsigned evaluated : root.evaluated) {
      const TensorExpr &expr = graph.exprs()[evaluated];
      // A value that varies slower than the nest is computed outside its inner loops.
      double times = std::min(1.0, points / expr.domainSize());
      work.arithmetic += times * expr.arithmetic();
      work.special += times * specialOps(expr) * expr.domainSize();
    }
  }
  for (auto &[tensor, bytes] : touched)
    work.inputBytes += std::min(bytes, static_cast<double>(tensorBytes(tensor)));
  for (Value tensor : space.outputs)
    work.outputBytes += tensorBytes(tensor);
  for (auto &[tensor, count] : readers) {
    bool produced = !touched.contains(tensor);
    // A result is written once and read by each; a staged input is read once from memory, written, and read again.
    work.blockBytes += tensorBytes(tensor) * (produced ? count + 1.0 : count > 1 ? count : 0.0);
  }
  return work;
}

//===----------------------------------------------------------------------===//
// IREE alone
//===----------------------------------------------------------------------===//

namespace {
class IreeModel {
public:
  IreeModel(const TensorGraph &graph, ArrayRef<unsigned> exprs) : graph(graph) {
    for (unsigned expr : exprs)
      assign(expr);
    llvm::erase_if(clusters, [&](ArrayRef<unsigned> cluster) {
      return llvm::all_of(cluster, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
    });
  }
  std::vector<SmallVector<unsigned>> clusters;

private:
  void assign(unsigned expr) {
    int64_t joined = -1;
    for (unsigned edge : graph.inEdges(expr)) {
      unsigned producer = graph.edges()[edge].producer;
      auto known = clusterOf.find(producer);
      if (known != clusterOf.end() && mayJoin(expr, producer, known->second))
        joined = known->second;
    }
    if (joined < 0) {
      joined = clusters.size();
      clusters.emplace_back();
    }
    clusterOf[expr] = joined;
    clusters[joined].push_back(expr);
  }

  bool mayJoin(unsigned expr, unsigned producer, unsigned cluster) const {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    if (firstReader(producer) != expr)
      return false;
    if (!tensorExpr.oneReliesOnOne() && (hasReduction(cluster) || graph.outEdges(producer).size() > 1))
      return false;
    // Nothing may leave the dispatch and come back.
    return llvm::none_of(graph.inEdges(expr), [&](unsigned edge) {
      unsigned other = graph.edges()[edge].producer;
      return !llvm::is_contained(clusters[cluster], other) &&
             llvm::any_of(clusters[cluster], [&](unsigned member) { return graph.dependsOn(other, member); });
    });
  }

  bool hasReduction(unsigned cluster) const {
    return llvm::any_of(clusters[cluster], [&](unsigned expr) { return !graph.exprs()[expr].oneReliesOnOne(); });
  }

  unsigned firstReader(unsigned expr) const {
    unsigned first = graph.exprs().size();
    for (unsigned edge : graph.outEdges(expr))
      first = std::min(first, graph.edges()[edge].consumer);
    return first;
  }

  const TensorGraph &graph;
  llvm::DenseMap<unsigned, unsigned> clusterOf;
};
} // namespace

std::vector<SmallVector<unsigned>> tilewright::dispatchesOfIree(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  return IreeModel(graph, exprs).clusters;
}
