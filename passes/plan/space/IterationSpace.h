// The iteration space that the expressions of a fusion group share. Loop nests compute the group's roots
// (FusionStitching 4.2: sub-roots); every other expression is evaluated inside these nests, at indices found by
// composing maps along thread edges. Block edges and shared inputs say which dims of different roots are the same dim
// of the space. Independent workgroups can walk a dim (it is in the grid) if every root has it, nothing is reduced over
// it, and no tile needs elements of another tile along it. Everything here is a pure function of graph, choice and
// target.
#ifndef TILEWRIGHT_PLAN_SPACE_ITERATIONSPACE_H
#define TILEWRIGHT_PLAN_SPACE_ITERATIONSPACE_H

#include "dialects/tile/TileDialect.h"
#include "passes/cost/BlockLatency.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/TensorGraph.h"
#include "passes/support/AffineAlgebra.h"
#include "passes/support/Declined.h"
#include "passes/target/MicroKernel.h"
#include "passes/target/Target.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include <string>
#include <vector>

namespace tilewright {

/// Where the rows of reductions are: each in one block, or in parts in several blocks, if that can be (SharedRows.h).
enum class RowPlacement { whole, shared };

/// A set of expressions, with the scope chosen for each edge between two of them.
struct GroupChoice {
  llvm::SmallVector<unsigned> exprs;            ///< in program order
  llvm::DenseMap<unsigned, tile::Scope> scopes; ///< by edge index; only edges inside the group

  bool contains(unsigned expr) const { return llvm::is_contained(exprs, expr); }
};

/// Returns true if an op outside the group reads the value.
bool leavesGroup(const TensorGraph &graph, const GroupChoice &group, mlir::Value value);

/// Returns why expressions cannot share a kernel, if one of them gathers from the result of another: a table is complete
/// in memory before the kernel that gathers from it starts.
std::optional<Declined> whyNotGathered(const TensorGraph &graph, llvm::ArrayRef<unsigned> exprs);
/// Returns the tensors that the group reads from outside, in the order in which its expressions read them. Splat
/// constants are left out, since they become scalars.
std::vector<mlir::Value> groupInputs(const TensorGraph &graph, const GroupChoice &group);
/// Returns the tensors that leave the group, and results of reductions that must be computed although nothing reads
/// them.
std::vector<mlir::Value> groupOutputs(const TensorGraph &graph, const GroupChoice &group);
/// Returns true if a dim of the expression is a dim of the iteration space: it has more than one point, or it is the
/// first dim of a reduction over a single point.
bool hasPlace(const TensorExpr &expr, unsigned dim);
/// Returns true if a loop nest of its own computes the expression: it is a reduction, or its result leaves the group or
/// is handed over at block scope.
bool isRoot(const TensorGraph &graph, const GroupChoice &group, unsigned expr);

/// One tensor read at each point of a root's domain, with all thread edges composed away.
struct RootAccess {
  mlir::Value tensor;
  mlir::AffineMap map;    ///< from the root's domain to the tensor
  mlir::IntegerSet guard; ///< the points that read it; null: all
  int64_t producer = -1;  ///< expression of the root that computes the tensor; -1: an input of the group
  unsigned result = 0;
  bool gathered = false; ///< true for a table, which is read at coordinates that the root computes
};

/// An expression that a root's nest evaluates, and the point of its own domain.
struct Evaluation {
  unsigned expr;
  mlir::AffineMap index; ///< from the root's domain
};

/// An expression that a loop nest of its own computes, with everything that the nest reads and evaluates.
struct GroupRoot {
  unsigned expr;
  llvm::SmallVector<RootAccess> accesses;
  llvm::SmallVector<Evaluation> evaluated; ///< the root first; an expression once per distinct index
  llvm::SmallVector<int64_t> dims;         ///< dim of the space for each domain dim; -1: none
  unsigned nest = 0;                       ///< loop nest that computes the root; nests run in order
  int64_t reference = -1; ///< root of the same nest whose running maximum this one is relative to; -1: none
};

/// The dims that the roots of a group share, with the tiles, the workgroups and the estimates chosen for them.
struct IterationSpace {
  std::vector<GroupRoot> roots; ///< in program order
  std::vector<int64_t> extents, tiles, grid;
  int64_t vector = -1;
  int64_t lanes = 1;        ///< lanes of a vector register on CPUs; 1 on GPUs
  bool rowsInLanes = false; ///< true if the elements in one register are not contiguous in memory
  int64_t workgroups = 1;
  int64_t steps = 0;              ///< steps of a tile if workgroups share tiles (see GroupPlan)
  int64_t cluster = 1;            ///< on a GPU: blocks per cluster, if the group has a kernel of its own
  int64_t threads = 0, group = 0; ///< on a GPU: threads per block, and threads per row (see GroupPlan)
  int64_t kSlices = 1;            ///< on a GPU: threads or warps that each add up one slice of K
  NumericsMode numerics = NumericsMode::standard; ///< decides which micro kernels may compute the contractions
  double latencySeconds = 0;      ///< on a GPU: lower bound on the time of all waves of blocks
  BlockWork blockWork;            ///< on a GPU: work of one block
  RegisterBlock block{1, 1};      ///< register block of the contractions
  double speed = 1;               ///< speed of the contractions' micro kernel, in multiply-adds relative to f32
  mlir::AffineExpr counted;       ///< end of the points that count along a walkable dim; null: all count
  double leastRows = 1;       ///< rows below which a register block gets no faster, since it waits for its rhs panel
  int64_t rowsToCopy = 0;     ///< rows of a tile from which it copies panels of rhs that lie apart; 0: not known
  int64_t cacheBytes = 0;     ///< bytes of a core's private caches; 0: not requested
  int64_t footprintBytes = 0; ///< bytes of block memory per workgroup
  std::vector<mlir::Value> inputs, outputs;
  std::vector<mlir::Value> tileStaged;      ///< inputs that several nests read, buffered for each tile
  std::vector<mlir::Value> workgroupStaged; ///< inputs that every tile reads, buffered for each workgroup
  std::vector<mlir::Value> streamed;        ///< outputs whose stores bypass the caches, since no cache would keep them

  int64_t numTiles() const;
  /// Returns the number of blocks that a tile walks along a reduced dim; 1 if it walks none.
  int64_t blocksPerTile() const;
  /// Returns the fraction of those blocks, over all tiles, that contain a point that counts.
  double countedShare() const;
  /// Returns the fraction of a root's points that its tiles visit.
  double visitedShare(const GroupRoot &root) const;
  /// Returns the number of trailing grid dims that a root does not have. Its result is kept for all tiles along them.
  int64_t keptAlong(const GroupRoot &root) const;
  /// Returns how often each element of a root is computed. This exceeds one only for kept operands of contractions:
  /// tiles along other grid dims that the operand does not have, and the first tile of each workgroup, compute them
  /// again.
  double timesComputed(const GroupRoot &root) const;
  /// Returns the domain dim that fills vector lanes in a root's nest: the space's vector dim if the root has it, else
  /// its innermost tiled dim; -1: none.
  int64_t laneDim(const GroupRoot &root) const;
  /// Returns the lanes computed per point of a root's nest. It is above one where a row does not fill its last
  /// register.
  double lanesPerPoint(const GroupRoot &root) const;
  const GroupRoot &root(unsigned expr) const;
  /// Returns the nests that read a tensor, except the nest that produces it.
  llvm::SmallVector<unsigned> readingNests(mlir::Value tensor) const;
};

/// The loops of a root's nest within a tile. It refers to the space and the root.
class NestLoops {
public:
  NestLoops(const TensorGraph &graph, const IterationSpace &space, const GroupRoot &root);

  /// Returns the domain dims of the root whose loops enclose an expression that the nest evaluates. These are all dims
  /// but the innermost ones along which the expression's index does not change.
  llvm::ArrayRef<unsigned> around(const Evaluation &evaluation) const;
  /// Returns the number of points, over all tiles, at which the nest evaluates an expression. It exceeds the number of
  /// elements where windows overlap, elements are repeated or gathered, a row is broadcast along an outer loop, or
  /// tiles recompute what they share.
  double pointsEvaluated(const Evaluation &evaluation) const;

private:
  const IterationSpace &space;
  const GroupRoot &root;
  llvm::SmallVector<unsigned> loops; ///< domain dims, outermost first
};

/// Returns the roots of a group and their accesses. Their dims are not set yet.
std::vector<GroupRoot> collectRoots(const TensorGraph &graph, const GroupChoice &group);

/// Returns true if a root only moves data for its readers, or prepares operands of contractions. Its result can then be
/// kept for the tiles along grid dims that the root does not have.
bool preparesOperand(const TensorGraph &graph, const GroupChoice &group, llvm::ArrayRef<GroupRoot> roots,
                     unsigned expr);

/// Returns the possible iteration spaces of a group, one per dim that may fill vector lanes, starting with the dim
/// along which elements are contiguous. There is none if the group falls into components that share neither edges nor
/// inputs. Tiles are chosen later (FindIterationSpace.h).
std::vector<IterationSpace> placeIterationSpaces(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                                 RowPlacement rows = RowPlacement::whole);

/// Returns the roles of a contraction root's dims and accesses, if it reads two tensors as a register block can.
std::optional<ContractionRoles> rolesOf(const TensorGraph &graph, const GroupRoot &root);

/// Rewrites `map` from the dims of a root to the dims of its space. `places` has the space's dim for each of the root's
/// dims, or -1.
mlir::AffineMap overSpace(mlir::AffineMap map, llvm::ArrayRef<int64_t> places, unsigned spaceDims);

/// Returns the bytes of a static tensor in memory.
int64_t tensorBytes(mlir::Value tensor);
/// Bytes of the widest scalar. Expressions that share no more than one share nothing that is worth a kernel.
inline constexpr int64_t kBytesOfScalar = 8;

} // namespace tilewright

#endif
