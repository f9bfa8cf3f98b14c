// Writes the decisions of a planner as a Plan.
#include "passes/plan/grid/WritePlan.h"
#include "passes/graph/Form.h"

#include "passes/backend/Backend.h"
#include "passes/graph/Bindings.h"
#include "passes/graph/ReducedWalk.h"
#include "passes/layout/GemmTiling.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/space/ContractionKernel.h"
#include "passes/plan/space/OpTilings.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/space/StagedInputs.h"
#include "passes/plan/tiling/cpu/ChainMovement.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"
#include "passes/target/KBlocking.h"
#include "passes/target/Warpgroups.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace tilewright;

namespace {
class PlanWriter {
public:
  PlanWriter(const TensorGraph &graph, const Target &target, NumericsMode numerics, const Decisions &decisions)
      : graph(graph), target(target), numerics(numerics), decisions(decisions) {}

  Plan write(StringRef policy) {
    Plan plan;
    plan.target = target.name;
    plan.policy = policy.str();
    plan.numerics = numerics;
    llvm::StringMap<unsigned> names;
    for (const SmallVector<unsigned> &members : decisions.kernels) {
      KernelPlan &entry = plan.kernels.emplace_back(emitKernel(members));
      entry.name += "_" + std::to_string(names[entry.name]++);
    }
    if (!plan.kernels.empty())
      std::iota(plan.streams.emplace_back(plan.kernels.size()).begin(), plan.streams.back().end(), 0);
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
      plan.edges.push_back(emitEdge(edge));
    for (auto [id, part] : llvm::enumerate(decisions.partOf))
      if (part < 0)
        plan.left.push_back({static_cast<unsigned>(id), opName(id), decisions.reasons[id]});
    return plan;
  }

private:
  std::string opName(unsigned expr) const { return graph.exprs()[expr].op->getName().getStringRef().str(); }

  /// Returns the L2 traffic of a kernel on a GPU, in whole sectors; 0 if it is unknown for some group.
  double l2TrafficBytes(ArrayRef<unsigned> members) const {
    double traffic = 0;
    for (unsigned part : members) {
      const IterationSpace &space = decisions.parts[part]->space;
      if (space.blockWork.movedBytes <= 0)
        return 0;
      traffic += space.blockWork.movedBytes;
      if (space.steps > 0) // traffic of partials between workgroups
        traffic += 2.0 * static_cast<double>(sharedTiles(graph, target, space, space.threads).rowBytes *
                                             (space.workgroups - 1));
    }
    return traffic;
  }

  KernelPlan emitKernel(ArrayRef<unsigned> members) {
    KernelPlan kernel;
    kernel.name = nameOf(members);
    Prediction prediction = predictionOf(graph, decisions, members, target);
    kernel.predicted = prediction.terms();
    unsigned firstInput = 0;
    for (unsigned part : members) {
      kernel.groups.push_back(emitPart(*decisions.parts[part], firstInput));
      firstInput += decisions.parts[part]->space.inputs.size();
    }
    if (const IterationSpace &own = decisions.parts[members[0]]->space;
        members.size() == 1 && own.workgroups == own.numTiles())
      kernel.groups.front().cluster = own.cluster;
    auto placeOf = [&](unsigned part) { return static_cast<unsigned>(llvm::find(members, part) - members.begin()); };
    for (const ResidentTile &resident : decisions.residentInputs)
      if (llvm::is_contained(members, resident.writer))
        kernel.residentTiles.push_back({placeOf(resident.writer), resident.writerInput, placeOf(resident.reader),
                                        resident.readerInput, resident.bytes});
    kernel.bound = boundOf(resourcesOf(kernel, prediction));
    if (double traffic = l2TrafficBytes(members); traffic > 0)
      kernel.predicted.push_back({kRequestedOfL2.str(), tile::Unit::bytes, traffic});
    if (members.size() == 1 && decisions.parts[members[0]]->apartSeconds > 0)
      kernel.predicted.push_back(
          {"a kernel for each contraction", tile::Unit::seconds, decisions.parts[members[0]]->apartSeconds});
    return kernel;
  }

  /// Returns what may bound the kernel. For a chain of contractions, the traffic of its loop order replaces the traffic
  /// of its tensors.
  std::vector<ResourceSeconds> resourcesOf(const KernelPlan &kernel, const Prediction &prediction) const {
    if (kernel.groups.size() != 1 || kernel.groups[0].movement.empty())
      return prediction.resources(target);
    std::vector<ResourceSeconds> resources = {{kArithmetic.str(), prediction.arithmeticSeconds}};
    for (auto [level, below] : llvm::zip(kernel.groups[0].movement, llvm::drop_begin(target.levels)))
      resources.push_back({below.name, level.seconds});
    return resources;
  }

  /// Names a kernel after its most characteristic arithmetic: what it reduces with, then functions, then the rest.
  std::string nameOf(ArrayRef<unsigned> members) const {
    llvm::SetVector<StringRef> reduced, special, plain;
    bool contracts = false;
    for (unsigned part : members)
      for (unsigned id : decisions.parts[part]->choice.exprs) {
        const TensorExpr &expr = graph.exprs()[id];
        contracts |= expr.kind == ExprKind::contraction;
        if (expr.kind == ExprKind::contraction)
          continue;
        expr.op->walk([&](Operation *op) {
          StringRef name = op->getName().getStringRef(), dialect = op->getName().getDialectNamespace();
          if ((dialect != "arith" && dialect != "math") || op->hasTrait<OpTrait::ConstantLike>())
            return;
          name.consume_front("arith.");
          name.consume_front("math.");
          (!expr.oneReliesOnOne() ? reduced : dialect == "math" ? special : plain).insert(name);
        });
      }
    llvm::SmallVector<StringRef> words;
    if (contracts)
      words.push_back("contract");
    if (!reduced.empty())
      words.push_back("reduce");
    for (StringRef word : llvm::concat<const StringRef>(reduced, special, plain))
      if (words.size() < 4 && !llvm::is_contained(words, word))
        words.push_back(word);
    return words.empty() ? "move" : llvm::join(words, "_");
  }

  GroupPlan emitPart(const PlannedGroup &part, unsigned firstInput) {
    GroupPlan plan;
    plan.extents = part.space.extents;
    plan.tiles = part.space.tiles;
    plan.grid = part.space.grid;
    plan.vector = part.space.vector;
    plan.workgroups = part.space.workgroups;
    plan.threads = part.space.threads;
    plan.group = part.space.group;
    plan.steps = part.space.steps;
    for (unsigned id : part.choice.exprs)
      plan.ops.push_back(emitOp(part, id));
    emitTensors(part, firstInput, plan);
    if (part.space.threads == 0) // on a GPU, blocks share the L2, whose traffic is predicted for the whole kernel
      plan.movement = movementOfGroup(graph, part, target);
    return plan;
  }

  OpPlan emitOp(const PlannedGroup &part, unsigned id) const {
    const TensorExpr &expr = graph.exprs()[id];
    OpPlan plan;
    plan.id = id;
    plan.op = opName(id);
    plan.form = formOf(expr);
    if (plan.form == tile::Form::onlineSoftmax && llvm::none_of(part.space.roots, [&](const GroupRoot &root) {
          return root.reference == static_cast<int64_t>(id);
        }))
      plan.form = tile::Form::asIs;
    if (isOnlineSoftmaxOfBlocks(plan.form))
      plan.form = formOfBlocks(part.space);
    auto root = llvm::find_if(part.space.roots, [&](const GroupRoot &root) { return root.expr == id; });
    plan.root = root != part.space.roots.end();
    if (plan.root && sharesBarrierOfMean(graph, part.space, *root))
      plan.form = tile::Form::twoMomentVariance;
    std::optional<MicroKernel> kernel = plan.root ? kernelOf(part, *root) : std::nullopt;
    bool regrouped = kernel ? !kernel->strict : plan.root && regroups(part, expr, root->dims);
    plan.numerics =
        decideNumerics(expr, numerics, regrouped || (kernel && (part.space.kSlices > 1 || part.space.steps > 0)));
    if (!plan.root)
      return plan;
    plan.dims.assign(root->dims.begin(), root->dims.end());
    if (kernel)
      plan.microKernel = withKBlocking(kernel->label(target), kPerBlock(graph, *root, part.space, target));
    plan.tilings.push_back(blockTiling(part.space.tiles, part.space.grid, root->dims));
    if (kernel)
      plan.tilings.push_back(
          registerTiling(graph, *root, plan.dims, part.space.tiles, *kernel, plan.microKernel, std::nullopt,
                         target));
    return plan;
  }

  std::optional<MicroKernel> kernelOf(const PlannedGroup &part, const GroupRoot &root) const {
    if (isOfThreads(part) && isOfWarpgroup(part.space.block))
      return warpgroupKernelFor(graph, root, target, numerics);
    return microKernelFor(graph, root, target, numerics);
  }

  static tile::Form formOfBlocks(const IterationSpace &space) {
    if (space.blocksPerTile() == 1)
      return tile::Form::asIs;
    return space.counted ? tile::Form::onlineSoftmaxWithBound : tile::Form::onlineSoftmaxOfBlocks;
  }

  /// Returns true if a root adds in another order than its domain's. This happens if threads of a block or lanes share
  /// a sum, or if the innermost of several loops has an accumulator of its own.
  bool regroups(const PlannedGroup &part, const TensorExpr &expr, ArrayRef<int64_t> dims) const {
    if (expr.kind == ExprKind::contraction)
      return false;
    auto loops = llvm::count_if(expr.reductions, [&](int64_t dim) { return expr.domain[dim] > 1; });
    return loops > 1 || (loops == 1 && isOfThreads(part)) || reducesLanes(part, expr, dims);
  }

  /// Returns true on a GPU, where several threads share every reduction, since the few columns of a tile would leave
  /// most of them idle.
  static bool isOfThreads(const PlannedGroup &part) { return part.space.threads > 0; }

  /// Returns true if the dim that fills the lanes of a root's nest is reduced. It is the space's vector dim, or the
  /// nest's innermost tiled dim if the root does not have that one.
  static bool reducesLanes(const PlannedGroup &part, const TensorExpr &expr, ArrayRef<int64_t> dims) {
    int64_t lanes = part.space.vector;
    if (!llvm::is_contained(dims, lanes)) {
      lanes = -1;
      for (int64_t place : dims)
        if (place >= 0 && part.space.tiles[place] > 1)
          lanes = std::max(lanes, place);
    }
    return lanes >= 0 && llvm::any_of(expr.reductions, [&](int64_t dim) { return dims[dim] == lanes; });
  }

  void emitTensors(const PlannedGroup &part, unsigned firstInput, GroupPlan &plan) const {
    const IterationSpace &space = part.space;
    SmallVector<tile::Lifetime> lifetimes = StagedInputs(graph, part.choice, space, plan.ops).choose(target);
    for (auto [i, lifetime] : llvm::enumerate(lifetimes)) {
      tile::Space held = lifetime == tile::Lifetime::kernel ? tile::Space::global : tile::Space::block;
      plan.tensors.push_back({"in" + std::to_string(firstInput + i), held, lifetime, {}});
    }
    auto nameOfResult = [&](Value result) { return resultName(graph, cast<OpResult>(result)); };
    for (const GroupRoot &root : space.roots)
      for (Value result : graph.exprs()[root.expr].op->getResults())
        if (!space.readingNests(result).empty())
          plan.tensors.push_back({nameOfResult(result), tile::Space::block, tile::Lifetime::tile, {}});
    for (Value tensor : space.outputs) {
      bool streamed = llvm::is_contained(space.streamed, tensor);
      plan.tensors.push_back({nameOfResult(tensor),
                              tile::Space::global,
                              streamed ? tile::Lifetime::stream : tile::Lifetime::kernel,
                              {}});
    }
  }

  EdgePlan emitEdge(unsigned index) const {
    const TensorEdge &edge = graph.edges()[index];
    EdgePlan plan;
    std::tie(plan.producer, plan.result, plan.consumer, plan.input) =
        std::tie(edge.producer, edge.result, edge.consumer, edge.input);
    int64_t bytes = tensorBytes(graph.exprs()[edge.producer].op->getResult(edge.result));
    int64_t from = decisions.partOf[edge.producer], to = decisions.partOf[edge.consumer];
    if (from >= 0 && from == to) {
      const EdgeChoice &choice = decisions.parts[from]->edges.find(index)->second;
      plan.scope = choice.scope;
      plan.recompute = choice.recompute;
      plan.unrounded = numerics != NumericsMode::strict && choice.scope == tile::Scope::thread &&
                       mayStayUnrounded(graph, edge) && isRounded(graph, edge);
      plan.reason = choice.reason;
      plan.bytes = choice.scope == tile::Scope::block ? 2 * bytes : 0;
      plan.seconds = plan.bytes / target.level(tile::Space::block).bandwidth;
      plan.wouldChange = choice.scope == tile::Scope::thread ? "" : wouldChangeBlock(edge.producer);
      return plan;
    }
    plan.bytes = 2 * bytes;
    plan.seconds = plan.bytes / target.level(tile::Space::global).bandwidth;
    if (from >= 0 && to >= 0 && kernelOf(from) == kernelOf(to)) {
      plan.scope = tile::Scope::grid;
      plan.seconds = target.gpu.gridBarrierSeconds;
      auto why = decisions.barriers.find({static_cast<unsigned>(from), static_cast<unsigned>(to)});
      plan.reason = why != decisions.barriers.end()
                        ? why->second
                        : "a barrier between other phases of the kernel already separates the two";
      plan.wouldChange = "equal tiles of the two groups";
      return plan;
    }
    Declined why = whyLaunch(edge, from, to);
    plan.reason = why.reason;
    plan.wouldChange = why.wouldChange;
    return plan;
  }

  unsigned kernelOf(unsigned part) const {
    auto holds = [&](ArrayRef<unsigned> members) { return llvm::is_contained(members, part); };
    return llvm::find_if(decisions.kernels, holds) - decisions.kernels.begin();
  }

  std::string wouldChangeBlock(unsigned producer) const {
    return graph.exprs()[producer].oneReliesOnOne() ? "fewer nests that read it, or a cheaper expression"
                                                    : "scope warp, which this target does not have";
  }

  /// Returns the only group that reads the expression through reshapes at a kernel's border; -1: none.
  int64_t partBehind(unsigned expr) const {
    while (decisions.partOf[expr] < 0 && decisions.reasons[expr] == kBorderView && graph.outEdges(expr).size() == 1)
      expr = graph.edges()[graph.outEdges(expr).front()].consumer;
    return decisions.partOf[expr];
  }

  Declined whyLaunch(const TensorEdge &edge, int64_t from, int64_t to) const {
    int64_t reader = to < 0 ? partBehind(edge.consumer) : to;
    auto known = decisions.declined.find({static_cast<unsigned>(from), static_cast<unsigned>(reader)});
    if (from >= 0 && reader >= 0 && known != decisions.declined.end())
      return known->second;
    if (to < 0)
      return {"op " + std::to_string(edge.consumer) + " stays with IREE: " + decisions.reasons[edge.consumer],
              "op " + std::to_string(edge.consumer) + " in a kernel of ours"};
    if (from < 0)
      return {"op " + std::to_string(edge.producer) + " stays with IREE: " + decisions.reasons[edge.producer],
              "op " + std::to_string(edge.producer) + " in a kernel of ours"};
    return {"the two kernels were planned separately", "another order of merging"};
  }

  const TensorGraph &graph;
  const Target &target;
  NumericsMode numerics;
  const Decisions &decisions;
};
} // namespace

int64_t tilewright::countBindings(const TensorGraph &graph, const Decisions &decisions, ArrayRef<unsigned> parts,
                                  const Target &target) {
  llvm::SetVector<Value> outputs, inputs;
  for (unsigned part : parts)
    outputs.insert_range(decisions.parts[part]->space.outputs);
  for (unsigned part : parts)
    for (Value input : decisions.parts[part]->space.inputs)
      if (!outputs.contains(input))
        inputs.insert(input);
  auto isPrivate = [&](Value output) {
    unsigned made = graph.indexOf(output.getDefiningOp());
    return !graph.escapes(made) && llvm::all_of(graph.outEdges(made), [&](unsigned edge) {
      int64_t reader = decisions.partOf[graph.edges()[edge].consumer];
      return reader >= 0 && llvm::is_contained(parts, static_cast<unsigned>(reader));
    });
  };
  return countBindings(inputs.getArrayRef(), outputs.getArrayRef(), isPrivate, target);
}

Prediction tilewright::predictionOf(const TensorGraph &graph, const Decisions &decisions, ArrayRef<unsigned> kernel,
                                    const Target &target) {
  Phases phases = splitIntoPhases(kernel.size(), [&](unsigned reader, unsigned producer) {
    return readsResultsOf(graph, decisions.parts[kernel[reader]]->choice, decisions.parts[kernel[producer]]->choice);
  });
  std::vector<std::vector<GroupWork>> works;
  for (ArrayRef<unsigned> phase : phases) {
    std::vector<GroupWork> &own = works.emplace_back();
    for (unsigned part : phase)
      own.push_back(decisions.parts[kernel[part]]->work);
  }
  return works.size() == 1 ? estimate(works.front(), target) : predictPhases(works, target);
}

Plan tilewright::writePlan(const TensorGraph &graph, const Target &target, StringRef policy, NumericsMode numerics,
                           const Decisions &decisions) {
  Plan plan = PlanWriter(graph, target, numerics, decisions).write(policy);
  backendOf(target).finishPlan(plan, graph, target, [&](unsigned op) -> const PlannedGroup & {
    return *decisions.parts[decisions.partOf[op]];
  });
  return plan;
}

void tilewright::addLeastMovement(Plan &plan, const TensorGraph &graph, const Target &target,
                                  const Decisions &decisions) {
  std::vector<OperatorChain> chains;
  std::vector<std::vector<LevelMovement> *> movements;
  for (auto [kernel, members] : llvm::zip_equal(plan.kernels, decisions.kernels))
    for (auto [group, part] : llvm::zip_equal(kernel.groups, members)) {
      if (group.movement.empty())
        continue;
      const PlannedGroup &planned = *decisions.parts[part];
      llvm::append_range(chains, chainsOf(graph, planned.choice.exprs, planned.space));
      movements.resize(chains.size(), &group.movement);
    }
  if (chains.empty())
    return;
  std::vector<std::vector<double>> least = leastMovement(chains, target, graph.exprs().front().op->getContext());
  for (auto [movement, bytes] : llvm::zip_equal(movements, least))
    for (auto [level, fewest] : llvm::zip(*movement, bytes))
      level.leastBytes += fewest;
}
