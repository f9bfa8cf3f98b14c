// The iteration space that the expressions of one part share, or the reason why they share none. A part is computed by
// the loop nests of its roots (FusionStitching 4.2: sub-roots); everything else is evaluated inside those, at indices
// found by composing maps along thread edges. Block edges and shared inputs say which dims of different roots are the
// same dim of the space; dims that every root has, that nobody reduces and along which no tile needs another tile's
// elements can be walked by independent workgroups (the grid). Pure functions of graph, choice and target.
#ifndef TILEWRIGHT_PLAN_SPACE_ITERATIONSPACE_H
#define TILEWRIGHT_PLAN_SPACE_ITERATIONSPACE_H

#include "dialects/tile/TileDialect.h"
#include "passes/cost/BlockLatency.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/TensorGraph.h"
#include "passes/target/MicroKernel.h"
#include "passes/target/Target.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include <string>
#include <vector>

namespace tilewright {

/// A set of expressions and the scope chosen for each edge between two of them.
struct GroupChoice {
  llvm::SmallVector<unsigned> exprs;            ///< in program order
  llvm::DenseMap<unsigned, tile::Scope> scopes; ///< by edge index; edges inside only

  bool contains(unsigned expr) const { return llvm::is_contained(exprs, expr); }
};

/// Whether something outside the part reads the value: an op that is no expression, or an expression outside.
bool leavesGroup(const TensorGraph &graph, const GroupChoice &part, mlir::Value value);
/// The tensors that the part reads from outside, in the order in which its expressions read them. Splat constants
/// become scalars and are none.
std::vector<mlir::Value> groupInputs(const TensorGraph &graph, const GroupChoice &part);
/// The tensors that leave the part, and results of reductions that nobody reads but that have to be computed.
std::vector<mlir::Value> groupOutputs(const TensorGraph &graph, const GroupChoice &part);
/// Whether the dim of the expression has a place in an index space: it has more than one point, or it is the one that
/// makes a reduction over single points a reduction.
bool hasPlace(const TensorExpr &expr, unsigned dim);
/// Whether the expression is computed by a loop nest of its own: a reduction, or read outside or through a block edge.
bool isRoot(const TensorGraph &graph, const GroupChoice &part, unsigned expr);

/// What one point of a root's domain reads, all thread edges composed away.
struct RootAccess {
  mlir::Value tensor;
  mlir::AffineMap map;    ///< over the root's domain
  mlir::IntegerSet guard; ///< null: everywhere
  int64_t producer = -1;  ///< the root that computes it, -1: an input of the part
  unsigned result = 0;
};

/// An expression that the nest of a root evaluates, and at which point of its own domain.
struct Evaluation {
  unsigned expr;
  mlir::AffineMap index; ///< over the root's domain
};

struct GroupRoot {
  unsigned expr;
  llvm::SmallVector<RootAccess> accesses;
  llvm::SmallVector<Evaluation> evaluated; ///< itself first; an expression once per distinct index
  llvm::SmallVector<int64_t> dims;         ///< place of each domain dim in the space, -1 where it has none
  unsigned nest = 0;                       ///< the loop nest that computes it; nests run in order
  int64_t reference = -1; ///< the root whose running maximum it is computed relative to, in the same nest
};

struct IterationSpace {
  std::vector<GroupRoot> roots; ///< in program order
  std::vector<int64_t> extents, tiles, grid;
  int64_t vector = -1;
  int64_t lanes = 1;        ///< of a vector register, on processors
  bool rowsInLanes = false; ///< elements side by side in a register are not neighbours in memory
  int64_t workgroups = 1;
  int64_t steps = 0;              ///< of a tile, where workgroups share tiles (see GroupPlan)
  int64_t threads = 0, group = 0; ///< on a GPU: of a block, and how many of them share a row (see GroupPlan)
  int64_t kSlices = 1;            ///< on a GPU: threads or warps that share the terms of a contraction's sums
  bool inOrder = false;           ///< strict numerics add up narrow floats as the graph does
  double latencySeconds = 0;      ///< on a GPU: what waves of such blocks take at least
  BlockWork blockWork;            ///< and what those blocks do
  RegisterBlock block{1, 1};      ///< of contractions
  double speed = 1;               ///< of their micro kernel: multiply-adds in the time of one in f32
  mlir::AffineExpr counted;       ///< of a dim that tiles may walk: where the points end that count; null: all count
  double leastRows = 1;           ///< a block of fewer rows takes no less time: it waits for its panel of lanes
  int64_t cacheBytes = 0;         ///< of a core's own caches; 0: nobody asked
  int64_t footprintBytes = 0;     ///< block-space bytes of one workgroup
  std::vector<mlir::Value> inputs, outputs;
  std::vector<mlir::Value> tileStaged;      ///< inputs that several nests read: kept for the tile
  std::vector<mlir::Value> workgroupStaged; ///< inputs that every tile reads: kept for the workgroup
  std::vector<mlir::Value> streamed;        ///< outputs that no cache holds until they are read: written past it

  int64_t numTiles() const;
  /// Of the reduced dim that a tile walks, if it walks one.
  int64_t blocksPerTile() const;
  /// Which part of those blocks, over all tiles, has a point that counts.
  double countedShare() const;
  /// Which part of a root's points its tiles visit.
  double visitedShare(const GroupRoot &root) const;
  /// How many grid dims, the last ones, a root has no part in: what it computes is kept for the tiles along them.
  int64_t keptAlong(const GroupRoot &root) const;
  /// How many times each element of a root is computed: once, but for kept operands of contractions, which the tiles
  /// along further dims that they have not, and the first tile of each workgroup, compute again.
  double timesComputed(const GroupRoot &root) const;
  /// The domain dims of a root whose loops, of one tile, are around an expression that its nest evaluates: all but the
  /// inner ones along which its index does not change.
  llvm::SmallVector<unsigned> loopsAround(const TensorGraph &graph, const GroupRoot &root,
                                          const Evaluation &evaluation) const;
  /// At how many points, over all tiles, a root's nest evaluates an expression. That is more than it has elements where
  /// windows overlap, elements are repeated or gathered, a row is broadcast along an outer loop, or each tile computes
  /// again what tiles have in common.
  double pointsEvaluated(const TensorGraph &graph, const GroupRoot &root, const Evaluation &evaluation) const;
  /// The domain dim that fills vector lanes in a root's nest: the space's, else the innermost one it has; or -1.
  int64_t laneDim(const GroupRoot &root) const;
  /// Lanes that a root's nest computes for each of its points: some are past the end of a row. At least 1.
  double lanesPerPoint(const GroupRoot &root) const;
  const GroupRoot &root(unsigned expr) const;
  /// The nests that read a tensor, without the one that produces it.
  llvm::SmallVector<unsigned> readingNests(mlir::Value tensor) const;
};

/// The roots of a part with what they read; no dims yet.
std::vector<GroupRoot> collectRoots(const TensorGraph &graph, const GroupChoice &part);

/// Whether a root only lays out what others read, or prepares what contractions multiply with, so that tiles along dims
/// that it has not can keep it.
bool preparesOperand(const TensorGraph &graph, const GroupChoice &part, llvm::ArrayRef<GroupRoot> roots, unsigned expr);

/// The iteration spaces of a part, one per dim that may fill vector lanes, the one along which elements are neighbours
/// first; none where the part falls into pieces that share neither edges nor inputs. Tiles are not chosen yet
/// (FindIterationSpace.h). `lanes`: of a vector register; 1 on GPUs.
std::vector<IterationSpace> placeIterationSpaces(const TensorGraph &graph, const GroupChoice &part, int64_t lanes);

/// The roles of a contraction root's dims and accesses, if it reads two tensors as a register block can.
std::optional<ContractionRoles> rolesOf(const TensorGraph &graph, const GroupRoot &root);

/// `map`, over the dims of a root, over those of its space instead: `places` of them, -1 where one has none.
mlir::AffineMap overSpace(mlir::AffineMap map, llvm::ArrayRef<int64_t> places, unsigned spaceDims);

/// The dim a quasi-affine expression is, or -1.
int64_t pureDim(mlir::AffineExpr expr);
/// The dim that advances the expression by one: d, or d plus something; -1 if there is none.
int64_t unitStrideDim(mlir::AffineExpr expr);
/// Bytes of a static tensor in memory.
int64_t tensorBytes(mlir::Value tensor);

} // namespace tilewright

#endif
