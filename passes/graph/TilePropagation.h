// Welder's tile graph (sections 3.1, 3.2): from one output tile, the tile of every expression and tensor that it takes,
// and with them the footprint and the traffic. A tile is tracked as a region that moves with the index of the tile, so
// that slices, strides and reshapes keep their alignment; what cannot be followed exactly becomes a larger region.
#ifndef TILEWRIGHT_GRAPH_TILEPROPAGATION_H
#define TILEWRIGHT_GRAPH_TILEPROPAGATION_H

#include "passes/support/AffineAlgebra.h"
#include "passes/graph/TensorGraph.h"
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tilewright {

/// A tensor graph with a memory level on every edge, 0 for the lowest: an edge is connected at level l when its tile is
/// handed over above l.
class TileGraph {
public:
  explicit TileGraph(const TensorGraph &graph) : graph_(graph), levels_(graph.edges().size(), 0) {}

  void setConnect(unsigned edge, unsigned level) { levels_[edge] = level; }
  unsigned level(unsigned edge) const { return levels_[edge]; }
  const TensorGraph &graph() const { return graph_; }
  /// The expressions joined to `expr` by edges connected above `level`, in program order (Welder's ExtractSubgraph).
  std::vector<unsigned> subgraph(unsigned expr, unsigned level = 0) const;

private:
  const TensorGraph &graph_;
  std::vector<unsigned> levels_;
};

struct PropagationOptions {
  std::vector<int64_t> outputTile; ///< elements per dim of the root's first result
  int64_t reductionTile = 0;       ///< of a reduced dim, elements that an expression fed from outside takes; 0: all
  unsigned level = 0;              ///< which connections hold the tile graph together
};

/// Along one dim: base + [low, high], where base is a function of the tile's index (its dims).
struct TileDim {
  mlir::AffineExpr base;
  Interval range;
};
using TileRegion = llvm::SmallVector<TileDim, 4>;

struct ExprTile {
  unsigned expr;              ///< index in the tensor graph
  std::vector<int64_t> sizes; ///< per domain dim
};

enum class TileRole { input, reuse, output };

struct TensorTile {
  mlir::Value tensor;
  TileRole role;
  std::vector<int64_t> shape;
  bool exact;            ///< false: an upper bound (strided, irregular or guarded access)
  int64_t bytes;         ///< of the whole tile: what moves
  int64_t residentBytes; ///< of what is there at one time: less than bytes under a reduction tile
  unsigned first, last;  ///< live range, in positions of TilePropagation::exprs
};

/// An output whose tile cannot be aligned to the root's: it stays outside the tile graph.
struct UnalignedOutput {
  unsigned expr;
  std::string reason;
};

struct TilePropagation {
  unsigned root = 0;
  int64_t numTiles = 1;
  std::vector<ExprTile> exprs;     ///< in program order
  std::vector<TensorTile> tensors; ///< inputs, tiles reused inside, and outputs
  std::vector<UnalignedOutput> unaligned;

  const ExprTile *tileOf(unsigned expr) const;
  void print(llvm::raw_ostream &os) const;
};

/// Welder's Propagate: the output tile of `root` carried to every input of its tile graph, and on to its other outputs.
TilePropagation propagate(const TileGraph &graph, unsigned root, const PropagationOptions &options);

/// Bytes of one tile graph's tiles, placed by best fit over their live ranges in topological order.
int64_t memFootprint(const TilePropagation &tiles);
/// Bytes of input and output tiles, over all tiles.
int64_t memTraffic(const TilePropagation &tiles);

} // namespace tilewright

#endif
