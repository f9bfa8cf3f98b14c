// Welder's tile graph (sections 3.1, 3.2): from one output tile it derives the tile of every expression and tensor
// needed, and from those the footprint and the traffic. A tile is tracked as a region that moves with the tile's index,
// so that slices, strides and reshapes keep their alignment. Accesses that cannot be followed exactly give a larger
// region.
#ifndef TILEWRIGHT_GRAPH_TILEPROPAGATION_H
#define TILEWRIGHT_GRAPH_TILEPROPAGATION_H

#include "passes/graph/TensorGraph.h"
#include "passes/support/AffineAlgebra.h"
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tilewright {

/// A tensor graph with a memory level on every edge, where 0 is the lowest. An edge is connected at level l if its tile
/// is handed over above l.
class TileGraph {
public:
  explicit TileGraph(const TensorGraph &graph) : graph_(graph), levels_(graph.edges().size(), 0) {}

  void setConnect(unsigned edge, unsigned level) { levels_[edge] = level; }
  unsigned level(unsigned edge) const { return levels_[edge]; }
  const TensorGraph &graph() const { return graph_; }
  /// Returns the expressions joined to `expr` by edges connected above `level`, in program order (Welder's
  /// ExtractSubgraph).
  std::vector<unsigned> subgraph(unsigned expr, unsigned level = 0) const;

private:
  const TensorGraph &graph_;
  std::vector<unsigned> levels_;
};

struct PropagationOptions {
  std::vector<int64_t> outputTile; ///< elements per dim of the root's first result
  int64_t reductionTile = 0;       ///< elements of a reduced dim per step, for expressions fed from outside; 0: all
  unsigned level = 0;              ///< edges connected above this level hold the tile graph together
};

/// A region along one dim: base + [low, high], where base is a function of the tile's index (its dims).
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
  int64_t bytes;         ///< bytes of the whole tile, which are moved
  int64_t residentBytes; ///< bytes resident at one time, fewer under a reduction tile
  unsigned first, last;  ///< live range, in positions of TilePropagation::exprs
};

/// An output whose tile cannot be aligned to the root's, so that it stays outside the tile graph.
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

/// Welder's Propagate: carries the output tile of `root` to every input of its tile graph, and on to its other outputs.
TilePropagation propagate(const TileGraph &graph, unsigned root, const PropagationOptions &options);

/// Returns the bytes of one tile graph's tiles, placed by best fit over their live ranges in topological order.
int64_t memFootprint(const TilePropagation &tiles);
/// Returns the bytes of input and output tiles, over all tiles.
int64_t memTraffic(const TilePropagation &tiles);

} // namespace tilewright

#endif
