// A chain of contractions as Chimera (section 4) sees it: independent loops, operators that run over some of them, and
// tensors that they index. Tensors between two operators of the chain stay on the chip. Plain data without MLIR, so
// that block orders can be weighed, printed and tested by themselves; derived from the tensor dependence graph.
#ifndef TILEWRIGHT_GRAPH_OPERATORCHAIN_H
#define TILEWRIGHT_GRAPH_OPERATORCHAIN_H

#include "passes/graph/TensorGraph.h"
#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct ChainLoop {
  std::string name;
  int64_t extent;
  /// A reduction between two contractions runs over it (a softmax): the second waits for all of it, unless the
  /// reduction is done online.
  bool whole = false;
  int64_t expr = -1; ///< in the tensor graph, whose dim it is; -1: in none
  unsigned dim = 0;
};

/// How far one step of a loop moves an index.
struct ChainTerm {
  unsigned loop;
  int64_t stride = 1;
  bool operator==(const ChainTerm &other) const { return loop == other.loop && stride == other.stride; }
};

/// The index of one dim of a tensor: a sum of loops; two terms and more are the window of a convolution.
using ChainIndex = std::vector<ChainTerm>;

struct ChainTensor {
  std::string name;
  std::vector<ChainIndex> dims;
  int64_t elementBytes = 4;
  /// Read from outside or written to it; others stay on the chip (Algorithm 1, IOTensors).
  bool isIO = true;
  /// Times that a tile crosses to the level below whenever it is replaced: 1 as the paper counts, 2 for results of
  /// which caches fetch the lines before they are written back.
  double crossings = 1;

  bool uses(unsigned loop) const;
};

struct ChainOp {
  std::string name;
  std::vector<unsigned> loops;   ///< those it runs over itself
  std::vector<unsigned> tensors; ///< operands, and last the result
  int64_t expr = -1;             ///< in the tensor graph; -1: in none
};

struct OperatorChain {
  std::vector<ChainLoop> loops;
  std::vector<ChainTensor> tensors;
  std::vector<ChainOp> ops; ///< producers first

  /// Whether some operator from `first` on runs over the loop.
  bool runs(unsigned loop, size_t first = 0) const;
  /// Loops that all operators share and none reduces: blocks that differ in them are independent.
  bool isParallel(unsigned loop) const;
  /// Parallel loops that every tensor uses: nothing is reused along them.
  bool isBatch(unsigned loop) const;
  /// Loops over the points of a window: they are not cut.
  bool isWindow(unsigned loop) const;
  /// Multiplications and additions, each once.
  double multiplications() const;
  /// Everything about it but names and places in a graph, written as numbers: equal where chains are equal.
  std::vector<double> form() const;
  /// Empty, or what is wrong: no operators, unknown loops or tensors, an extent that is not positive.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// The paper's example, C = A B and E = C D over m, n, k and l in this order, as it counts.
OperatorChain gemmChain(int64_t m, int64_t n, int64_t k, int64_t l, int64_t elementBytes = 4);

/// The same where reductions between contractions go on from block to block, as an online softmax does.
OperatorChain withOnlineReductions(OperatorChain chain);

/// Every operator of the chain by itself, with what stayed on the chip written and read.
std::vector<OperatorChain> separately(const OperatorChain &chain);

/// The chain that the contractions among the expressions (in program order) form with what lies between them, or
/// nothing and why: several that nothing else reads, or a result between them that leaves the expressions.
std::optional<OperatorChain> chainAmong(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, std::string &reason);

/// A contraction that others feed, and the chain that they form, or why they form none.
struct FoundChain {
  unsigned last; ///< its last contraction, in the graph
  OperatorChain chain;
  std::string declined;
};

/// The longest chains of contractions of the graph with nothing but elementwise operators and reductions between,
/// each contraction in one of them at most.
std::vector<FoundChain> findChains(const TensorGraph &graph);

} // namespace tilewright

#endif
