// The plan: the one struct that every policy, search and target fills (architecture section 1), and all that the
// rewrites read. It is plain data that prints, converts to JSON and back, and is checked by verify().
#ifndef TILEWRIGHT_PLAN_IR_PLAN_H
#define TILEWRIGHT_PLAN_IR_PLAN_H

#include "dialects/tile/TileDialect.h"
#include "passes/cost/CostTerm.h"
#include "passes/graph/FormChoice.h"
#include "passes/graph/TensorGraph.h"
#include "passes/layout/BlockingChoice.h"
#include "passes/layout/GemmChoice.h"
#include "passes/target/NumericsMode.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tilewright {

/// Tile sizes and loop order of an op at one memory level, over the op's domain.
struct LevelTiling {
  tile::Scope level;
  std::vector<int64_t> sizes, order;
};

/// One step of the recipe of a layout (SwizzledOperands.h).
struct LayoutStep {
  tile::LayoutKind kind = tile::LayoutKind::pad;
  std::vector<int64_t> arguments;

  bool operator==(const LayoutStep &other) const { return kind == other.kind && arguments == other.arguments; }
};

/// The memory space in which a kernel holds a tensor, with lifetime and layout.
struct TensorPlan {
  std::string tensor; ///< "op3.0" (result 0 of op 3) or "in2" (kernel input 2)
  tile::Space space = tile::Space::global;
  tile::Lifetime lifetime = tile::Lifetime::kernel; ///< `stream`: that of the kernel, with stores that bypass caches
  std::vector<LayoutStep> layout; ///< empty: dense row-major
  tile::Access access = tile::Access::derived; ///< on a GPU, how a block accesses its tile of an input or a result
};

/// Traffic of a group's contractions between one level of memory and the next, in the loop order of their code.
struct LevelMovement {
  std::string level; ///< name of a cache
  double bytes = 0;
  double leastBytes = 0; ///< lower bound over all loop orders of one kernel; 0: unknown
  double seconds = 0;    ///< seconds at the bandwidth of the level below
};

struct OpPlan {
  unsigned id;                ///< index in the tensor graph of the block
  std::string op;             ///< op name, for the reader
  tile::Form form = tile::Form::asIs; ///< the algebra used
  Numerics numerics;
  bool root = false;         ///< true if a loop nest of its own computes it (FusionStitching's sub-root)
  std::vector<int64_t> dims; ///< dim of the iteration space for each domain dim; only for roots
  std::vector<LevelTiling> tilings;
  std::string microKernel; ///< empty: none
  std::optional<GemmChoice> gemm; ///< on a GPU, how a block computes a contraction with a micro kernel
  std::optional<BlockingChoice> blocking; ///< on a processor, how a core computes a contraction with a micro kernel
  std::string copies;      ///< on a GPU, operands copied by more or fewer than 16 bytes, with the reason; empty: none
};

/// A fusion group: ops that share an iteration space and depend on each other. A kernel has one group, or several side
/// by side or in phases.
struct GroupPlan {
  std::vector<OpPlan> ops; ///< in program order
  std::vector<int64_t> extents, tiles, grid;
  int64_t vector = -1;
  int64_t workgroups = 1;
  /// On a GPU, `threads` is the size of a block. `group` is how many neighbouring threads share a point of the grid
  /// dims: 1 is FusionStitching's thread composition, up to 32 warp composition, more block composition. It is 0 where
  /// the grid cuts the vector dim.
  int64_t threads = 0, group = 0;
  /// On a GPU, the steps along K of one tile if workgroups share the steps of all tiles (stream-K: Osama et al., PPoPP
  /// 2023). 0: one workgroup computes a whole tile.
  int64_t steps = 0;
  /// On a GPU, the neighbouring blocks that form a cluster, which copies inputs that all blocks read once.
  int64_t cluster = 1;
  std::vector<TensorPlan> tensors;
  std::vector<LevelMovement> movement; ///< by cache, innermost first; empty if the contractions form no chain

  /// Returns the plan of an op of the group.
  const OpPlan &op(unsigned id) const;
  OpPlan &op(unsigned id) { return const_cast<OpPlan &>(std::as_const(*this).op(id)); }
  int64_t numTiles() const;
  /// Returns true if an input has a layout, which then is that of the rhs of the group's only contraction.
  bool hasLayout() const;
};

/// A tensor that groups of two phases access by the same tiles, so each block keeps its tile in shared memory across
/// the barriers between them. Entries with the same tensor of the same writer are one tile, which several phases read.
struct ResidentTile {
  unsigned writer = 0, writerInput = 0; ///< a group of the kernel, and the number of its input
  unsigned reader = 0, readerInput = 0; ///< a group of a later phase and its input; a reshape may lie between the two
  int64_t bytes = 0;                    ///< bytes of one block's tile
  int64_t writerResult = -1; ///< number of the writer's result that it keeps in place of an input; -1: an input

  bool isSameTile(const ResidentTile &other) const {
    return writer == other.writer && writerInput == other.writerInput && writerResult == other.writerResult;
  }
  bool isReadAs(const ResidentTile &other) const {
    return reader == other.reader && readerInput == other.readerInput;
  }
};

/// The name of a kernel's predicted traffic between its SMs and the L2.
inline constexpr llvm::StringLiteral kRequestedOfL2 = "requested of L2";

struct KernelPlan {
  std::string name;
  std::vector<GroupPlan> groups;
  std::vector<ResidentTile> residentTiles;
  std::vector<CostTerm> predicted; ///< always has "bytes" and "seconds"
  std::string bound; ///< the slowest resource: "arithmetic", "latency", or the level whose bandwidth limits the kernel
  /// On a GPU, how many blocks shall be resident on an SM at once: registers per thread are bounded so that they fit.
  /// Nothing: it is left open.
  std::optional<int64_t> residentBlocks = std::nullopt;

  /// Returns the threads of a block, which all groups share; 0 on CPUs.
  int64_t threads() const;
};

/// A producer-consumer edge. Every edge between two tensor expressions of the block has exactly one entry.
struct EdgePlan {
  unsigned producer, result, consumer, input;
  tile::Scope scope = tile::Scope::launch;
  bool recompute = false;
  bool unrounded = false; ///< true if a bf16 or f16 value is handed over before it is rounded
  std::string reason;     ///< reason for this scope, or why no inner one is possible
  int64_t bytes = 0;      ///< predicted traffic of the edge at its scope
  double seconds = 0;
  std::string wouldChange; ///< condition for an inner scope; empty if the scope is innermost
  std::string place = "";  ///< at scope grid: where the consumer finds the tensor, and why; otherwise empty
};

/// An op that Tilewright leaves to IREE, with the reason.
struct LeftOp {
  unsigned id;
  std::string op, reason;
};

/// A block of a loop with kernels of its own. Loops come in program order, each before those in it.
struct LoopPlan {
  std::string op;            ///< op name, for the reader
  unsigned firstOp = 0;      ///< number of the first op of its block; the others follow
  unsigned ops = 0;          ///< how many tensor expressions the block has
  int64_t steps = -1;        ///< how often the block runs in a call; -1: not known before the program runs
  /// True if the kernel of the block runs all steps, false if each step launches kernels. A plan that leaves it out has
  /// it decided where it is carried out.
  std::optional<bool> oneKernel;
  std::string reason;        ///< why each step launches kernels, for the reader
};

/// The ops of the function's block are numbered from 0, and those of loops follow, block by block.
struct Plan {
  std::string target, policy;
  NumericsMode numerics = NumericsMode::standard;
  std::vector<KernelPlan> kernels;            ///< in launch order
  std::vector<std::vector<unsigned>> streams; ///< indices into `kernels`; one stream today
  std::vector<EdgePlan> edges; ///< by consumer, then by input
  std::vector<LeftOp> left;
  std::vector<FormChoice> forms; ///< of the graph's ops, in the order in which passes chose them
  std::vector<LoopPlan> loops;   ///< blocks of loops with kernels of their own (PlanLoops.h)
  bool isGiven = false;          ///< true if it is from a file, whose JSON does not say so

  /// Returns true for a plan that states forms and leaves everything else to the policy.
  bool statesFormsOnly() const {
    return !forms.empty() && kernels.empty() && edges.empty() && left.empty() && loops.empty();
  }
  const EdgePlan *edge(unsigned consumer, unsigned input) const;
  /// Returns an empty string if the plan of one block is legal for its graph, else the error and its place. It rejects
  /// unknown or repeated ops, missing edges, scopes that do not fit the partition (launch inside a kernel, block across
  /// kernels), a cyclic partition, tiles and dims that do not fit, a reduction with a thread out-edge, and block edges
  /// across tiles of the grid, and forms that the graph does not offer or that it does not have.
  std::string verify(const TensorGraph &graph) const;
  /// Returns why kernels are not launched once each, in the order in which they are listed, or an empty string.
  std::string verifyStreams() const;
  void print(llvm::raw_ostream &os) const;
};

/// Returns the name that a TensorPlan uses for a result of an op of the graph.
std::string resultName(const TensorGraph &graph, mlir::OpResult result);

llvm::json::Value toJson(const Plan &plan);
llvm::json::Value toJson(const FormChoice &form); ///< without locations
llvm::Expected<Plan> planFromJson(const llvm::json::Value &value);

/// Reads a plan from a JSON file. Errors name the file.
llvm::Expected<Plan> readPlan(llvm::StringRef path);

} // namespace tilewright

#endif
