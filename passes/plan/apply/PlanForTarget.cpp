// Checks the micro kernels, thread blocks and layouts of a plan against a target.
#include "passes/plan/apply/PlanForTarget.h"

#include "mlir/IR/TypeUtilities.h"
#include "passes/graph/Contraction.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/OpTilings.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/target/KBlocking.h"
#include "passes/target/Occupancy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Returns true if the label has the micro kernel's name and register block. The plan chooses the K of a block, unless
/// threads compute it.
static bool isLabelOf(const MicroKernel &kernel, StringRef label, const Target &target) {
  std::string own = kernel.label(target);
  return (kernel.isOfThreads() ? own : withKBlocking(own, kBlocking(label))) == label;
}

/// Returns true unless a block of the walked dim would end within a step of the micro kernel, which processors cannot
/// compute with that kernel.
static bool takesWholeSteps(const MicroKernel &kernel, const TensorExpr &expr, const GroupPlan &part,
                            const OpPlan &op) {
  int64_t walked = walkedDim(part.extents, part.tiles, part.grid);
  return walked < 0 || part.tiles[walked] % kernel.stepK() == 0 ||
         llvm::none_of(expr.reductions, [&](int64_t dim) { return op.dims[dim] == walked; });
}

static const GroupRoot *rootOf(ArrayRef<GroupRoot> roots, const OpPlan &op) {
  const GroupRoot *root = llvm::find_if(roots, [&](const GroupRoot &root) { return root.expr == op.id; });
  return root == roots.end() ? nullptr : root;
}

/// Returns the micro kernel that the op names among those for its contraction, or null.
static const MicroKernel *namedKernel(ArrayRef<MicroKernel> known, const OpPlan &op) {
  StringRef name = StringRef(op.microKernel).rsplit('-').first;
  const MicroKernel *kernel = llvm::find_if(known, [&](const MicroKernel &kernel) { return kernel.name == name; });
  return kernel == known.end() ? nullptr : kernel;
}

static std::string checkMicroKernel(const TensorGraph &graph, ArrayRef<GroupRoot> roots, const GroupPlan &part,
                                    const OpPlan &op, const Target &target, NumericsMode numerics) {
  std::string named = "names the micro kernel '" + op.microKernel + "'";
  const GroupRoot *root = rootOf(roots, op);
  if (!root || graph.exprs()[op.id].kind != ExprKind::contraction)
    return named + ", but is not a contraction";
  std::vector<MicroKernel> known = microKernelsFor(graph, *root, target, numerics);
  const MicroKernel *kernel = namedKernel(known, op);
  if (!kernel) {
    auto labels = llvm::map_range(known, [&](const MicroKernel &kernel) { return kernel.label(target); });
    return named + "; target '" + target.name + "' has " +
           (known.empty() ? "none for what it multiplies" : "for what it multiplies: " + llvm::join(labels, ", "));
  }
  if (!isLabelOf(*kernel, op.microKernel, target))
    return named + ", which is '" + kernel->label(target) + "' on target '" + target.name + "'";
  if (!kernel->isOfThreads() && !takesWholeSteps(*kernel, graph.exprs()[op.id], part, op))
    return named + ", which takes steps of " + std::to_string(kernel->stepK()) +
           " along K: the tile of the walked dim must be a multiple of it";
  bool rounds = isa<FloatType>(getElementTypeOrSelf(graph.exprs()[op.id].op->getResult(0).getType()));
  if (rounds && !kernel->strict && !op.numerics.reassociates)
    return named + ", which regroups the sum, but its numerics do not allow that (reassociates)";
  return "";
}

static std::string listOf(ArrayRef<int64_t> values) {
  return "[" + llvm::join(llvm::map_range(values, [](int64_t value) { return std::to_string(value); }), ", ") + "]";
}

/// Returns how a tiling differs from the one that the code has, or an empty string. Tiles of a block follow from those
/// of the group, and what a step of the micro kernel covers may be larger than a tile.
static std::string whyNotTiled(const LevelTiling &stated, const LevelTiling &emitted, ArrayRef<int64_t> tile) {
  if (stated.level != emitted.level)
    return "";
  std::string level = "its tiling at level " + tile::stringifyScope(stated.level).str();
  auto inTile = llvm::map_to_vector(llvm::zip(stated.sizes, tile),
                                    [](auto sizes) { return std::min(std::get<0>(sizes), std::get<1>(sizes)); });
  if (stated.level != tile::Scope::block && ArrayRef(inTile) != ArrayRef(emitted.sizes))
    return level + " has sizes " + listOf(stated.sizes) + "; its micro kernel and tile make them " +
           listOf(emitted.sizes);
  if (stated.order != emitted.order)
    return level + " has order " + listOf(stated.order) + "; its loops are nested as " + listOf(emitted.order);
  return "";
}

static std::string checkTilings(const TensorGraph &graph, ArrayRef<GroupRoot> roots, const GroupPlan &part,
                                const OpPlan &op, const Target &target, NumericsMode numerics) {
  if (!op.root || op.tilings.empty())
    return "";
  std::vector<LevelTiling> emitted = {blockTiling(part.tiles, part.grid, op.dims)};
  if (const GroupRoot *root = op.microKernel.empty() ? nullptr : rootOf(roots, op)) {
    std::vector<MicroKernel> known = microKernelsFor(graph, *root, target, numerics);
    if (const MicroKernel *kernel = namedKernel(known, op))
      emitted.push_back(registerTiling(graph, *root, op.dims, part.tiles, *kernel, op.microKernel, op.blocking,
                                       target));
  }
  for (const LevelTiling &stated : op.tilings)
    for (const LevelTiling &own : emitted)
      if (std::string why = whyNotTiled(stated, own, emitted.front().sizes); !why.empty())
        return why;
  return "";
}

static std::string checkThreads(const GroupPlan &part, const Target &target) {
  if (!target.traits.threadBlocks) {
    if (part.threads != 0 || part.group != 0 || part.steps != 0)
      return llvm::formatv("threads {0}, group {1}, steps {2}: a processor has no thread blocks, so they must be 0",
                           part.threads, part.group, part.steps);
    if (part.cluster != 1)
      return llvm::formatv("cluster {0}: a processor has none, so it must be 1", part.cluster);
    return "";
  }
  int64_t lanes = target.gpu.warpLanes, most = target.gpu.threadsPerBlock;
  if (part.threads < lanes || !llvm::isPowerOf2_64(part.threads) || part.threads > most)
    return llvm::formatv("a block of {0} threads: on target '{1}' it must have a power of two from {2} to {3}",
                         part.threads, target.name, lanes, most);
  if (part.group > 0 && !llvm::isPowerOf2_64(part.group))
    return llvm::formatv("groups of {0} threads: the number of threads that share a row must be a power of two",
                         part.group);
  return "";
}

/// Returns why blocks cannot hold the group's tensors as the plan says, or an empty string.
static std::string checkLifetimes(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                  const GroupPlan &part, const Target &target) {
  std::vector<Value> inputs = groupInputs(graph, choiceOf(plan, graph, part));
  unsigned first = firstInputOf(plan, graph, kernel, part);
  int64_t bytes = 0, most = target.costs.cpu.stagedInputBytes;
  for (const TensorPlan &tensor : part.tensors) {
    if (tensor.lifetime == tile::Lifetime::stream && !target.traits.streamsStores)
      return "tensor " + tensor.tensor + " is streamed, but target '" + target.name + "' has no stores past its caches";
    if (tensor.lifetime != tile::Lifetime::workgroup)
      continue;
    if (!target.traits.stagesForWorkgroup)
      return "tensor " + tensor.tensor + " lives for a workgroup, but on target '" + target.name +
             "' inputs that every tile reads stay in caches";
    for (auto [number, input] : llvm::enumerate(inputs))
      bytes += tensor.tensor == "in" + std::to_string(first + number) ? tensorBytes(input) : 0;
    if (bytes > most)
      return llvm::formatv("tensor {0} lives for a workgroup, which would hold {1} bytes of inputs; {2} is the most",
                           tensor.tensor, bytes, most);
  }
  return "";
}

static std::string checkCluster(const KernelPlan &kernel, const GroupPlan &part, const Target &target) {
  int64_t most = largestCluster(target);
  if (part.cluster == 1)
    return "";
  if (part.cluster < 1 || part.cluster > most || !llvm::isPowerOf2_64(part.cluster))
    return llvm::formatv("clusters of {0} blocks: target '{1}' {2}", part.cluster, target.name,
                         most > 1 ? llvm::formatv("supports powers of two up to {0}", most).str() : "has no clusters");
  if (kernel.groups.size() > 1 || part.workgroups != part.numTiles())
    return llvm::formatv("clusters of {0} blocks are for kernels of one group whose blocks have one tile each",
                         part.cluster);
  return "";
}

static std::string checkPart(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                             const GroupPlan &part, const Target &target) {
  if (std::string why = checkThreads(part, target); !why.empty())
    return why;
  if (std::string why = checkLifetimes(plan, graph, kernel, part, target); !why.empty())
    return why;
  std::vector<GroupRoot> roots = collectRoots(graph, choiceOf(plan, graph, part));
  for (const OpPlan &op : part.ops)
    if (!op.microKernel.empty())
      if (std::string why = checkMicroKernel(graph, roots, part, op, target, plan.numerics); !why.empty())
        return "op " + std::to_string(op.id) + ": " + why;
  for (const OpPlan &op : part.ops) {
    if (op.gemm && (!target.traits.threadBlocks || op.microKernel.empty()))
      return "op " + std::to_string(op.id) + ": gemm: only a contraction with a micro kernel on a GPU has one";
    if (op.blocking && (target.traits.threadBlocks || op.microKernel.empty()))
      return "op " + std::to_string(op.id) +
             ": blocking: only a contraction with a micro kernel on a processor has one";
    if (std::string why = checkTilings(graph, roots, part, op, target, plan.numerics); !why.empty())
      return "op " + std::to_string(op.id) + ": " + why;
  }
  bool contracts = llvm::any_of(part.ops, [](const OpPlan &op) { return !op.microKernel.empty(); });
  if (contracts && part.group > 1)
    return llvm::formatv("groups of {0} threads: micro kernels share out the rows of its contractions, so it must be 0, "
                         "or 1",
                         part.group);
  for (const TensorPlan &tensor : part.tensors)
    if (contracts && target.traits.threadBlocks && tensor.access == tile::Access::whole)
      return "tensor " + tensor.tensor + ": access: the group's contractions copy their operands step by step";
  if (!target.traits.threadBlocks)
    for (const TensorPlan &tensor : part.tensors)
      if (!tensor.layout.empty() || tensor.access != tile::Access::derived)
        return "tensor " + tensor.tensor + (tensor.layout.empty() ? " has an access" : " has a layout") +
               ", which only GPUs support";
  return "";
}

std::string tilewright::whyNotFor(const Plan &plan, const TensorGraph &graph, const Target &target) {
  if (!plan.target.empty() && plan.target != target.name)
    return "made for target '" + plan.target + "', carried out for '" + target.name + "'";
  for (const KernelPlan &kernel : plan.kernels) {
    if (!kernel.residentTiles.empty() && !target.traits.threadBlocks)
      return "kernel '" + kernel.name + "' has resident tiles, which only GPUs support";
    if (kernel.residentBlocks && !target.traits.threadBlocks)
      return "kernel '" + kernel.name + "': residentBlocks: a processor has no thread blocks, so it must be null";
    for (auto [p, part] : llvm::enumerate(kernel.groups))
      for (const std::string &why : {checkPart(plan, graph, kernel, part, target), checkCluster(kernel, part, target)})
        if (!why.empty())
          return "kernel '" + kernel.name + "' group " + std::to_string(p) + ": " + why;
  }
  return "";
}

void tilewright::followTiles(Plan &plan) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &part : kernel.groups)
      for (OpPlan &op : part.ops)
        for (LevelTiling &tiling : op.tilings)
          if (tiling.level == tile::Scope::block && op.root)
            for (auto [size, place] : llvm::zip(tiling.sizes, op.dims))
              size = place < 0 ? 1 : part.tiles[place];
}
