// A chain of contractions in the sense of Chimera (section 4): independent loops, operators that run over some of them,
// and tensors that they index. Tensors between two operators of the chain stay on the chip. The chain is plain data
// without MLIR, derived from the tensor dependence graph, so that block orders can be evaluated, printed and tested on
// their own.
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
  /// True if a reduction between two contractions (a softmax) runs over the loop. The second contraction waits for all
  /// of it, unless the reduction is done online.
  bool whole = false;
  int64_t expr = -1; ///< expression of the tensor graph that the dim belongs to; -1: none
  unsigned dim = 0;
};

/// The stride by which one step of a loop moves an index.
struct ChainTerm {
  unsigned loop;
  int64_t stride = 1;
  bool operator==(const ChainTerm &other) const { return loop == other.loop && stride == other.stride; }
};

/// The index of one dim of a tensor: a sum of loops. Two or more terms are the window of a convolution.
using ChainIndex = std::vector<ChainTerm>;

struct ChainTensor {
  std::string name;
  std::vector<ChainIndex> dims;
  int64_t elementBytes = 4;
  /// True if it is read from outside or written to it; other tensors stay on the chip (IOTensors in Algorithm 1).
  bool isIO = true;
  /// How often a tile crosses to the level below whenever it is replaced: 1 as in the paper, 2 for results whose lines
  /// a cache fetches before it writes them back.
  double crossings = 1;

  bool uses(unsigned loop) const;
};

struct ChainOp {
  std::string name;
  std::vector<unsigned> loops;   ///< loops that the operator itself runs over
  std::vector<unsigned> tensors; ///< operands, and the result last
  int64_t expr = -1;             ///< expression of the tensor graph; -1: none
};

struct OperatorChain {
  std::vector<ChainLoop> loops;
  std::vector<ChainTensor> tensors;
  std::vector<ChainOp> ops; ///< producers first

  /// Returns true if an operator from `first` on runs over the loop.
  bool runs(unsigned loop, size_t first = 0) const;
  /// Returns true if all operators share the loop and none reduces it: blocks that differ in it are independent.
  bool isParallel(unsigned loop) const;
  /// Returns true for a parallel loop that every tensor uses: nothing is reused along it.
  bool isBatch(unsigned loop) const;
  /// Returns true for a loop over the points of a window, which is not cut.
  bool isWindow(unsigned loop) const;
  /// Returns the number of multiply-adds, each counted once.
  double multiplications() const;
  /// Returns everything but names and positions in a graph, written as numbers; equal chains give equal numbers.
  std::vector<double> form() const;
  /// Returns an empty string, or the error: no operators, unknown loops or tensors, or an extent that is not positive.
  std::string verify() const;
  void print(llvm::raw_ostream &os) const;
};

/// Returns the paper's example, C = A B and E = C D over m, n, k and l in this order, counted as the paper does.
OperatorChain gemmChain(int64_t m, int64_t n, int64_t k, int64_t l, int64_t elementBytes = 4);

/// Returns the chain with reductions between contractions done online, block by block, as in an online softmax.
OperatorChain withOnlineReductions(OperatorChain chain);

/// Returns every operator of the chain as its own chain, which writes and reads the tensors that stayed on the chip.
std::vector<OperatorChain> separately(const OperatorChain &chain);

/// Returns the chain that the contractions among the expressions (in program order) form with the expressions between
/// them. Returns nothing, and the reason, if there is none, for example because a result between them is read
/// elsewhere.
std::optional<OperatorChain> chainAmong(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs, std::string &reason);

/// A contraction that others feed, with the chain that they form or the reason why they form none.
struct FoundChain {
  unsigned last; ///< the chain's last contraction, as an index in the graph
  OperatorChain chain;
  std::string declined;
};

/// Returns the longest chains of contractions of the graph that have only elementwise operators and reductions between
/// them. Each contraction is in one chain at most.
std::vector<FoundChain> findChains(const TensorGraph &graph);

} // namespace tilewright

#endif
