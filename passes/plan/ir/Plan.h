// The plan: the one structure every policy, search and target fills (architecture section 1), and the only thing the
// rewrites read. Plain data; printable, JSON both ways, checked by verify().
#ifndef TILEWRIGHT_PLAN_IR_PLAN_H
#define TILEWRIGHT_PLAN_IR_PLAN_H

#include "dialects/tile/TileDialect.h"
#include "passes/cost/CostTerm.h"
#include "passes/graph/TensorGraph.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tilewright {

/// Tile sizes and loop order of an op at one memory level. Sizes are over the op's domain.
struct LevelTiling {
  tile::Scope level;
  std::vector<int64_t> sizes, order;
};

/// One step of a layout recipe; numpy can evaluate it: pad, split, permute, swizzle (SwizzledOperands.h).
struct LayoutStep {
  std::string kind;
  std::vector<int64_t> arguments;
};

/// Where a kernel keeps a tensor, for how long, and how it lies there.
struct TensorPlan {
  std::string tensor; ///< "op3.0" (result 0 of op 3) or "in2" (kernel input 2)
  tile::Space space = tile::Space::global;
  std::string lifetime; ///< "point", "tile", "workgroup", "kernel", or "stream": an output written past the caches
  std::vector<LayoutStep> layout; ///< empty: dense row-major
};

/// What a plan may do to numbers. `standard`: leave out roundings to bf16 and f16, accumulate them in f32, use algebra
/// and divisions that cost a unit in the last place. `strict`: round, accumulate and divide as the graph says. `tf32`:
/// as `standard`, and contractions of f32 may round what they multiply to tf32 (10 bits behind the point).
enum class NumericsMode { standard, strict, tf32 };
llvm::StringRef stringify(NumericsMode mode); ///< "default", "strict", "tf32"
std::optional<NumericsMode> symbolizeNumericsMode(llvm::StringRef name);

/// What fusing and forming an op does to its numbers.
struct Numerics {
  std::string accumulation;  ///< type of the accumulator, one per result ("f32, i64"); empty if nothing is reduced
  bool reassociates = false; ///< sums and products are regrouped over lanes and loops, against the order of the domain
  int64_t roundingsRemoved = 0; ///< roundings to bf16 or f16 that the graph has and the op has not, per result element
};

/// What contractions of a part move between a level of memory and the one below, in the order of their code.
struct LevelMovement {
  std::string level; ///< a cache
  double bytes = 0;
  double leastBytes = 0; ///< of any order of one kernel for all of them; 0: unknown
  double seconds = 0;    ///< at the bandwidth of the level below
};

struct OpPlan {
  unsigned id;                ///< index in the tensor graph of the block
  std::string op;             ///< op name, for the reader
  std::string form = "as-is"; ///< which algebra; see architecture section 1
  Numerics numerics;
  bool root = false;         ///< computed by a loop nest of its own (FusionStitching's sub-roots)
  std::vector<int64_t> dims; ///< place of each domain dim in the part's index space; roots only
  std::vector<LevelTiling> tilings;
  std::string microKernel; ///< empty: none
  std::string copies;      ///< on a GPU: which operands come by more or less than 16 bytes, and why; empty: none
};

/// Ops that share an index space and depend on each other; a kernel has one part, or several packed side by side.
struct GroupPlan {
  std::vector<OpPlan> ops; ///< in program order
  std::vector<int64_t> extents, tiles, grid;
  int64_t vector = -1;
  int64_t workgroups = 1;
  /// On a GPU, of a block; and how many neighbours of them share a point of the grid dims (FusionStitching's schemes: 1
  /// is thread, up to 32 warp, more block composition), 0 where the grid cuts the vector dim.
  int64_t threads = 0, group = 0;
  /// On a GPU, in which a tile's contraction adds up its terms, if workgroups share the steps of all tiles, and so
  /// tiles (stream-K: Osama et al., "Stream-K", PPoPP 2023); 0: each tile is of one workgroup.
  int64_t steps = 0;
  std::vector<TensorPlan> tensors;
  std::vector<LevelMovement> movement; ///< by cache, innermost first; empty where contractions form no chain
};

/// A tensor that parts of two phases read by the same tiles: each block keeps its own in shared memory in between.
struct ResidentTile {
  unsigned writer = 0, writerInput = 0; ///< a part of the kernel, and which of its inputs it is
  unsigned reader = 0, readerInput = 0; ///< the same, of a later phase; a reshape may lie between the two
  int64_t bytes = 0;                    ///< of a block
};

struct KernelPlan {
  std::string name;
  std::vector<GroupPlan> parts;
  std::vector<ResidentTile> kept;
  std::vector<CostTerm> predicted; ///< always has "bytes" and "seconds"
  std::string bound; ///< what of it takes longest: "arithmetic", "latency", or a level whose bandwidth it is
};

/// A producer-consumer edge. Every edge between two tensor expressions of the block has exactly one entry.
struct EdgePlan {
  unsigned producer, result, consumer, input;
  tile::Scope scope = tile::Scope::launch;
  bool recompute = false;
  bool unrounded = false; ///< a bf16 or f16 value is handed over as it is before its rounding
  std::string reason;     ///< why this scope, or why no inner one
  int64_t bytes = 0;      ///< predicted traffic of the edge at its scope
  double seconds = 0;
  std::string wouldChange; ///< what would have to differ for an inner scope; empty if it is innermost
};

/// An op that stays with IREE, and why.
struct LeftOp {
  unsigned id;
  std::string op, reason;
};

struct Plan {
  std::string target, policy;
  NumericsMode numerics = NumericsMode::standard;
  std::vector<KernelPlan> kernels;            ///< in launch order
  std::vector<std::vector<unsigned>> streams; ///< indices into kernels; one stream today
  std::vector<EdgePlan> edges;
  std::vector<LeftOp> left;

  const EdgePlan *edge(unsigned consumer, unsigned input) const;
  /// Empty when the plan is legal for the graph, else what is wrong and where: unknown or repeated ops, missing edges,
  /// scopes that do not fit the partition (launch inside a kernel, block across kernels), a cyclic partition, tiles and
  /// dims that do not fit, a reduction with a thread out-edge, block edges across tiles of the grid.
  std::string verify(const TensorGraph &graph) const;
  void print(llvm::raw_ostream &os) const;
};

/// What a TensorPlan calls a result of an op of the graph.
std::string resultName(const TensorGraph &graph, mlir::OpResult result);

llvm::json::Value toJson(const Plan &plan);
llvm::Expected<Plan> planFromJson(const llvm::json::Value &value);

} // namespace tilewright

#endif
