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
  IreeModel(const TensorGraph &graph, ArrayRef<unsigned> exprs) : graph(graph), exprs(exprs) {
    for (unsigned expr : exprs)
      assign(expr);
  }

  std::vector<PartWork> dispatches(const Target &target) const {
    std::vector<PartWork> result;
    for (const SmallVector<unsigned> &cluster : clusters)
      if (!llvm::all_of(cluster, [&](unsigned expr) { return isView(graph.exprs()[expr]); }))
        result.push_back(workOf(cluster, target));
    return result;
  }

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

  bool readOutside(Value value, ArrayRef<unsigned> cluster) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      int64_t reader = graph.indexOf(user);
      return reader < 0 || !llvm::is_contained(cluster, static_cast<unsigned>(reader));
    });
  }

  PartWork workOf(ArrayRef<unsigned> cluster, const Target &target) const {
    PartWork work;
    llvm::MapVector<Value, double> inputs;
    int64_t parallel = 1;
    for (unsigned member : cluster) {
      const TensorExpr &expr = graph.exprs()[member];
      for (const TensorAccess &access : expr.inputs) {
        Operation *definition = access.tensor.getDefiningOp();
        int64_t producer = definition ? graph.indexOf(definition) : -1;
        if (producer < 0 || !llvm::is_contained(cluster, static_cast<unsigned>(producer)))
          inputs[access.tensor] += touchedBytes(access.tensor, expr.domainSize());
      }
      for (Value result : expr.op->getResults())
        if (readOutside(result, cluster))
          work.outputBytes += tensorBytes(result);
      work.arithmetic += expr.arithmetic();
      work.special += static_cast<double>(specialOps(expr)) * expr.domainSize();
      int64_t points = 1;
      for (auto [dim, extent] : llvm::enumerate(expr.domain))
        points *= llvm::is_contained(expr.reductions, static_cast<int64_t>(dim)) ? 1 : extent;
      parallel = expr.oneReliesOnOne() ? std::max(parallel, points) : points;
    }
    for (auto &[tensor, bytes] : inputs)
      work.inputBytes += std::min(bytes, static_cast<double>(tensorBytes(tensor)));
    // Tiles of about 64 KiB, and no more than there are results to compute apart.
    int64_t tiles = std::max<int64_t>(1, work.globalBytes() / 65536);
    work.workgroups = std::min({2 * target.cores, tiles, parallel});
    return work;
  }

  const TensorGraph &graph;
  ArrayRef<unsigned> exprs;
  std::vector<SmallVector<unsigned>> clusters;
  llvm::DenseMap<unsigned, unsigned> clusterOf;
};
} // namespace

std::vector<PartWork> tilewright::dispatchesOfIree(const TensorGraph &graph, ArrayRef<unsigned> exprs,
                                                   const Target &target) {
  return IreeModel(graph, exprs).dispatches(target);
}
