// Verifies that a plan can be carried out for a graph. Each check answers one question and returns the first violation
// with its location in the plan. Together, the checks are the contract between planners and rewrites.
#include "passes/graph/Form.h"
#include "passes/layout/Blocking.h"
#include "passes/layout/GemmTiling.h"
#include "passes/plan/apply/HeldTensors.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/grid/ResidentTiles.h"
#include "passes/plan/ir/Partition.h"
#include "passes/plan/space/AssignNests.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/plan/space/WalkedDim.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
class Verifier {
public:
  Verifier(const Plan &plan, const TensorGraph &graph) : plan(plan), graph(graph), numExprs(graph.exprs().size()) {}

  std::string run() {
    for (auto check : {&Verifier::checkNames, &Verifier::checkOps, &Verifier::checkTables, &Verifier::checkEdges,
                       &Verifier::checkStreams, &Verifier::checkOrder, &Verifier::checkParts,
                       &Verifier::checkResidentTiles})
      if (std::string why = (this->*check)(); !why.empty())
        return why;
    return "";
  }

private:
  struct Place {
    unsigned kernel, part;
    bool operator==(const Place &other) const { return kernel == other.kernel && part == other.part; }
  };

  std::string place(unsigned kernel, unsigned part) const {
    return "kernel '" + plan.kernels[kernel].name + "' group " + std::to_string(part);
  }
  static std::string op(unsigned id) { return "op " + std::to_string(id); }
  static std::string edgeName(const EdgePlan &edge) {
    return "edge from op " + std::to_string(edge.producer) + " to op " + std::to_string(edge.consumer) + " input " +
           std::to_string(edge.input);
  }

  /// Checks that kernels have different names that can be symbols of the object code.
  std::string checkNames() {
    llvm::StringSet<> names;
    for (const KernelPlan &kernel : plan.kernels) {
      auto isSymbol = [](char c) { return llvm::isAlnum(c) || c == '_'; };
      if (kernel.name.empty() || llvm::isDigit(kernel.name.front()) || !llvm::all_of(kernel.name, isSymbol))
        return "kernel '" + kernel.name + "': a name is made of letters, digits and underscores";
      if (!names.insert(kernel.name).second)
        return "two kernels have the name '" + kernel.name + "'";
    }
    return "";
  }

  /// Checks that the op has the name that the plan states, if it states one.
  std::string checkOpName(unsigned id, const std::string &name) const {
    StringRef actual = graph.exprs()[id].op->getName().getStringRef();
    return name.empty() || name == actual ? "" : op(id) + " is " + actual.str() + ", not " + name;
  }

  /// Checks that every op exists and appears once, in a kernel or among the ops left to IREE.
  std::string checkOps() {
    std::vector<bool> seen(numExprs);
    auto claim = [&](unsigned id, const std::string &where) -> std::string {
      if (id >= numExprs)
        return where + ": " + op(id) + " does not exist; the graph has " + std::to_string(numExprs) + " ops";
      if (seen[id])
        return where + ": " + op(id) + " is in the plan twice";
      seen[id] = true;
      return "";
    };
    for (auto [k, kernel] : llvm::enumerate(plan.kernels)) {
      if (kernel.groups.empty())
        return "kernel '" + kernel.name + "' has no groups";
      for (auto [p, part] : llvm::enumerate(kernel.groups)) {
        if (part.ops.empty())
          return place(k, p) + " has no ops";
        for (auto [i, entry] : llvm::enumerate(part.ops)) {
          if (std::string why = claim(entry.id, place(k, p)); !why.empty())
            return why;
          if (std::string why = checkOpName(entry.id, entry.op); !why.empty())
            return place(k, p) + ": " + why;
          if (i > 0 && part.ops[i - 1].id > entry.id)
            return place(k, p) + ": ops are not in program order";
          places[entry.id] = {static_cast<unsigned>(k), static_cast<unsigned>(p)};
        }
      }
    }
    for (const LeftOp &left : plan.left) {
      if (std::string why = claim(left.id, "left"); !why.empty())
        return why;
      if (std::string why = checkOpName(left.id, left.op); !why.empty())
        return "left: " + why;
    }
    for (unsigned id = 0; id < numExprs; ++id)
      if (!seen[id])
        return op(id) + " is neither in a kernel nor among the ops left";
    return "";
  }

  /// Checks that no kernel gathers from what it computes.
  std::string checkTables() {
    for (const KernelPlan &kernel : plan.kernels) {
      SmallVector<unsigned> exprs;
      for (const GroupPlan &group : kernel.groups)
        for (const OpPlan &entry : group.ops)
          exprs.push_back(entry.id);
      if (std::optional<Declined> why = whyNotGathered(graph, exprs))
        return "kernel '" + kernel.name + "': " + why->reason + "; it needs a kernel behind that of the other";
    }
    return "";
  }

  /// Checks that every edge of the graph has one entry, with a scope that fits the groups of its ends.
  std::string checkEdges() {
    llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> known;
    for (auto [index, edge] : llvm::enumerate(graph.edges()))
      known[{edge.consumer, edge.input}] = index;
    llvm::DenseSet<unsigned> listed;
    for (const EdgePlan &edge : plan.edges) {
      auto found = known.find({edge.consumer, edge.input});
      if (found == known.end())
        return edgeName(edge) + " does not exist";
      const TensorEdge &actual = graph.edges()[found->second];
      if (actual.producer != edge.producer || actual.result != edge.result)
        return edgeName(edge) + ": the input is result " + std::to_string(actual.result) + " of op " +
               std::to_string(actual.producer);
      if (!listed.insert(found->second).second)
        return edgeName(edge) + " is in the plan twice";
      if (std::string why = checkScope(edge); !why.empty())
        return edgeName(edge) + ": " + why;
    }
    for (auto [index, edge] : llvm::enumerate(graph.edges()))
      if (!listed.contains(index))
        return "the edge from op " + std::to_string(edge.producer) + " to op " + std::to_string(edge.consumer) +
               " input " + std::to_string(edge.input) + " is missing";
    return "";
  }

  std::string checkScope(const EdgePlan &edge) const {
    auto from = places.find(edge.producer), to = places.find(edge.consumer);
    bool inside = from != places.end() && to != places.end() && from->second == to->second;
    std::string scope = tile::stringifyScope(edge.scope).str();
    if (from != places.end() && to != places.end() && !inside && from->second.kernel == to->second.kernel)
      return checkBetweenParts(edge, from->second, to->second);
    if (!inside && edge.scope < tile::Scope::launch)
      return "scope " + scope + " needs both ends in one part of one kernel";
    if (inside && edge.scope >= tile::Scope::launch)
      return "scope " + scope + " inside one part";
    if (inside && edge.scope != tile::Scope::thread && edge.scope != tile::Scope::block)
      return "scope " + scope + " cannot be carried out yet; use thread or block";
    if (edge.scope == tile::Scope::thread && !graph.exprs()[edge.producer].oneReliesOnOne())
      return "scope thread out of a reduction";
    if (edge.recompute && edge.scope != tile::Scope::thread)
      return "only thread edges recompute";
    if (edge.unrounded)
      return checkUnrounded(edge);
    return "";
  }

  /// Checks an edge between two groups of one kernel. Groups that depend on each other are phases of the kernel.
  static std::string checkBetweenParts(const EdgePlan &edge, Place from, Place to) {
    if (edge.scope != tile::Scope::grid)
      return "groups of one kernel depend on each other at scope grid only";
    if (from.part > to.part)
      return "its producer's part comes after its consumer's";
    return edge.recompute || edge.unrounded ? "a grid edge neither recomputes nor hands over unrounded values" : "";
  }

  std::string checkUnrounded(const EdgePlan &edge) const {
    if (plan.numerics == NumericsMode::strict)
      return "strict numerics hand over no unrounded values";
    if (edge.scope != tile::Scope::thread)
      return "only thread edges are unrounded";
    if (!mayStayUnrounded(graph, {edge.producer, edge.result, edge.consumer, edge.input}))
      return "it is not a bf16 or f16 value, or its reader needs the stored value: it is moved, compared, or rounded "
             "to integers";
    return "";
  }

  std::string checkStreams() { return plan.verifyStreams(); }

  /// Checks that the partition is acyclic, and that each kernel is listed after those that it depends on.
  std::string checkOrder() {
    if (numExprs == 0)
      return "";
    Partition partition(graph, *graph.exprs()[0].op->getBlock());
    for (const KernelPlan &kernel : plan.kernels)
      for (const GroupPlan &part : kernel.groups)
        for (const OpPlan &entry : part.ops)
          partition.join({kernel.groups[0].ops[0].id, entry.id});
    if (!partition.order())
      return "the partition is cyclic: " + cyclicKernel(partition) +
             " depends on an op outside it that depends on it in turn";
    for (size_t later = 0; later < plan.kernels.size(); ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (partition.reaches(groupOf(partition, later), groupOf(partition, earlier)))
          return "kernel '" + plan.kernels[earlier].name + "' is listed before kernel '" + plan.kernels[later].name +
                 "', on which it depends";
    return "";
  }

  unsigned groupOf(const Partition &partition, unsigned kernel) const {
    return partition.groupOf(plan.kernels[kernel].groups[0].ops[0].id);
  }
  std::string cyclicKernel(const Partition &partition) const {
    for (size_t kernel = 0; kernel < plan.kernels.size(); ++kernel)
      if (partition.reaches(groupOf(partition, kernel), groupOf(partition, kernel)))
        return "kernel '" + plan.kernels[kernel].name + "'";
    return "a kernel";
  }

  /// Checks resident tiles. Both groups must access the same elements, as a block finds a tile by its own number.
  std::string checkResidentTiles() {
    for (const KernelPlan &kernel : plan.kernels) {
      Phases phases = phasesOf(plan, kernel);
      for (const ResidentTile &resident : kernel.residentTiles)
        if (std::string why = whyNotResident(kernel, phases, resident); !why.empty())
          return llvm::formatv("kernel '{0}' cannot keep {1} {2} of group {3} for group {4}: {5}", kernel.name,
                               resident.writerResult < 0 ? "input" : "result",
                               std::max<int64_t>(resident.writerInput, resident.writerResult), resident.writer,
                               resident.reader, why);
    }
    return "";
  }

  std::string whyNotResident(const KernelPlan &kernel, const Phases &phases, const ResidentTile &resident) const {
    auto phaseOf = [&](unsigned part) {
      auto begins = [&](ArrayRef<unsigned> phase) { return phase.front() == part; };
      return llvm::find_if(phases, begins) - phases.begin();
    };
    if (resident.reader >= kernel.groups.size() || phaseOf(resident.writer) >= phaseOf(resident.reader) ||
        phaseOf(resident.reader) == static_cast<int64_t>(phases.size()))
      return "the groups are not the first ones of a phase and of a later phase";
    IterationSpace writer = spaceOf(kernel.groups[resident.writer]), reader = spaceOf(kernel.groups[resident.reader]);
    bool isResult = resident.writerResult >= 0;
    if (isResult && resident.writerInput != 0)
      return "it is a result or an input (writerInput must be 0 beside writerResult)";
    std::vector<Value> written =
        isResult ? groupOutputs(graph, choiceOf(plan, graph, kernel.groups[resident.writer])) : writer.inputs;
    size_t number = isResult ? static_cast<size_t>(resident.writerResult) : resident.writerInput;
    if (number >= written.size() || resident.readerInput >= reader.inputs.size())
      return isResult ? "there is no such result or input" : "there is no such input";
    for (const IterationSpace *space : {&writer, &reader})
      if (std::string why = whyNotOneTile(*space); !why.empty())
        return why;
    if (llvm::count_if(kernel.residentTiles, [&](const ResidentTile &other) { return other.isReadAs(resident); }) > 1)
      return "another one is for the same input";
    return whyNotAlike(graph, writer, written[number], reader, reader.inputs[resident.readerInput]);
  }

  IterationSpace spaceOf(const GroupPlan &part) const {
    IterationSpace space;
    GroupChoice choice = choiceOf(plan, graph, part);
    space.roots = plannedRoots(graph, choice, part);
    space.extents = part.extents;
    space.tiles = part.tiles;
    space.grid = part.grid;
    space.workgroups = part.workgroups;
    space.steps = part.steps;
    space.vector = part.vector; // the dim of maxima that are read while they are accumulated, in one nest
    space.threads = part.threads;
    space.numerics = plan.numerics;
    space.inputs = groupInputs(graph, choice);
    return space;
  }

  std::string checkParts() {
    for (auto [k, kernel] : llvm::enumerate(plan.kernels))
      for (auto [p, part] : llvm::enumerate(kernel.groups))
        if (std::string why = checkPart(kernel, part); !why.empty())
          return place(k, p) + ": " + why;
    return "";
  }

  std::string checkPart(const KernelPlan &kernel, const GroupPlan &part) const {
    if (std::string why = checkSpace(part); !why.empty())
      return why;
    if (part.steps > 0 && plan.numerics == NumericsMode::strict)
      return "workgroups that share tiles add up in another order than the graph, and numerics are strict";
    GroupChoice choice = choiceOf(plan, graph, part);
    std::vector<GroupRoot> roots = plannedRoots(graph, choice, part);
    for (const OpPlan &entry : part.ops)
      if (std::string why = checkOp(part, choice, entry); !why.empty())
        return op(entry.id) + ": " + why;
    for (const GroupRoot &root : roots)
      if (std::string why = checkTileLocal(part, root); !why.empty())
        return op(root.expr) + ": " + why;
    IterationSpace space = spaceOf(part);
    assignNests(graph, choice, space);
    if (std::string why = whyNotHeld(plan, graph, kernel, part, space); !why.empty())
      return why;
    if (std::string why = whyNotShared(graph, choice, space, part, plan.numerics); !why.empty())
      return why;
    return checkWalk(part, choice, roots);
  }

  static std::string checkSpace(const GroupPlan &part) {
    int64_t rank = part.extents.size();
    if (part.tiles.size() != part.extents.size())
      return "expected one tile per extent";
    llvm::SmallSet<int64_t, 8> grid;
    for (int64_t dim : part.grid)
      if (dim < 0 || dim >= rank || !grid.insert(dim).second)
        return "grid must name dims of the space, without repetition";
    if (part.vector < -1 || part.vector >= rank)
      return "vector must name a dim of the space, or be -1";
    uint64_t tiles = 1;
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t extent = part.extents[dim], tile = part.tiles[dim];
      if (extent <= 0 || tile <= 0 || tile > extent)
        return "tile " + std::to_string(tile) + " does not fit extent " + std::to_string(extent) + " of dim " +
               std::to_string(dim);
      if (!grid.contains(dim) && tile != extent && dim != walkedDim(part.extents, part.tiles, part.grid))
        return "dim " + std::to_string(dim) + " is not in the grid, and another one is walked in blocks, so its tile " +
               "must be its extent";
      if (grid.contains(dim))
        tiles = llvm::SaturatingMultiply<uint64_t>(tiles, llvm::divideCeil(extent, tile));
    }
    if (part.steps < 0)
      return "a tile has " + std::to_string(part.steps) + " steps";
    uint64_t most = llvm::SaturatingMultiply<uint64_t>(tiles, std::max<int64_t>(1, part.steps));
    if (part.workgroups < 1 || static_cast<uint64_t>(part.workgroups) > most)
      return std::to_string(part.workgroups) + " workgroups for " + std::to_string(tiles) + " tiles" +
             (part.steps > 0 ? " of " + std::to_string(part.steps) + " steps" : "");
    if (part.threads < 0 || part.group < 0 || part.group > part.threads)
      return "groups of " + std::to_string(part.group) + " in a block of " + std::to_string(part.threads) + " threads";
    return "";
  }

  std::string checkOp(const GroupPlan &part, const GroupChoice &choice, const OpPlan &entry) const {
    const TensorExpr &expr = graph.exprs()[entry.id];
    bool root = isRoot(graph, choice, entry.id);
    if (root != entry.root)
      return root ? "must be a root: it is reduced, read outside the group, or through a block edge"
                  : "is marked as a root, but nothing reads its result as one";
    llvm::SmallSet<tile::Scope, 2> levels;
    for (const LevelTiling &tiling : entry.tilings) {
      if (tiling.sizes.size() != expr.domain.size() || tiling.order.size() != expr.domain.size())
        return "a tiling must have one size and one entry of order per domain dim";
      if (std::string why = checkTiling(expr, tiling); !why.empty())
        return "its tiling at level " + tile::stringifyScope(tiling.level).str() + " " + why;
      if (!levels.insert(tiling.level).second)
        return "has two tilings at level " + tile::stringifyScope(tiling.level).str();
    }
    OpPlan inGraph = entry; // whyNotShared checks the form of sums that share a barrier
    if (hasOwnMoments(entry))
      inGraph.form = formOf(expr);
    if (std::string why = checkNumerics(expr, inGraph, plan.numerics); !why.empty())
      return why;
    if (entry.gemm)
      if (std::string why = whyNoGemm(*entry.gemm); !why.empty())
        return "gemm: " + why;
    if (entry.blocking)
      if (std::string why = whyNoBlocking(*entry.blocking); !why.empty())
        return "blocking: " + why;
    if (!root)
      return "";
    return checkDims(part, expr, entry.dims, mayLackGridDims(choice, entry.id));
  }

  /// Returns true if the op adds up squares with its mean's sum because blocks share its rows, and not in the graph.
  bool hasOwnMoments(const OpPlan &entry) const {
    return entry.form == tile::Form::twoMomentVariance && entry.root &&
           formOf(graph.exprs()[entry.id]) == tile::Form::asIs && plan.numerics != NumericsMode::strict;
  }

  static std::string checkTiling(const TensorExpr &expr, const LevelTiling &tiling) {
    if (tiling.level != tile::Scope::block && tiling.level != tile::Scope::thread)
      return "cannot be carried out: tiles are of block or thread";
    for (auto [size, extent] : llvm::zip(tiling.sizes, expr.domain))
      if (size < 1 || size > extent)
        return "has size " + std::to_string(size) + " along a dim of extent " + std::to_string(extent);
    std::vector<int64_t> order(tiling.order);
    llvm::sort(order);
    for (auto [dim, place] : llvm::enumerate(order))
      if (place != static_cast<int64_t>(dim))
        return "must have each dim once in its order";
    return "";
  }

  /// Returns true for a root that reduces nothing and that only its group reads. Tiles along grid dims that it lacks
  /// keep its values or recompute them.
  bool mayLackGridDims(const GroupChoice &choice, unsigned id) const {
    const TensorExpr &expr = graph.exprs()[id];
    return expr.oneReliesOnOne() && llvm::none_of(expr.op->getResults(),
                                                  [&](Value result) { return leavesGroup(graph, choice, result); });
  }

  static std::string checkDims(const GroupPlan &part, const TensorExpr &expr, const std::vector<int64_t> &dims,
                               bool mayLackGrid) {
    if (dims.size() != expr.domain.size())
      return "dims must have an entry for each of the " + std::to_string(expr.domain.size()) + " domain dims";
    llvm::SmallSet<int64_t, 8> used;
    for (auto [dim, place] : llvm::enumerate(dims)) {
      if (!hasPlace(expr, dim)) {
        if (place != -1)
          return "domain dim " + std::to_string(dim) + " has one point, so its entry in dims must be -1";
        continue;
      }
      if (place < 0 || place >= static_cast<int64_t>(part.extents.size()) || !used.insert(place).second)
        return "domain dim " + std::to_string(dim) + " has no dim of its own in the iteration space";
      if (part.extents[place] != expr.domain[dim])
        return "domain dim " + std::to_string(dim) + " of extent " + std::to_string(expr.domain[dim]) +
               " is mapped to dim " + std::to_string(place) + " of extent " + std::to_string(part.extents[place]);
    }
    for (int64_t dim : part.grid) {
      auto own = llvm::find(dims, dim);
      if (own == dims.end() && !mayLackGrid)
        return "lacks grid dim " + std::to_string(dim);
    }
    return "";
  }

  /// Checks the walked dim: a dim outside the grid whose tile is smaller than its extent.
  std::string checkWalk(const GroupPlan &part, const GroupChoice &choice, ArrayRef<GroupRoot> roots) const {
    int64_t dim = walkedDim(part.extents, part.tiles, part.grid);
    if (dim < 0)
      return "";
    Walk walk = walkAlong(graph, choice, roots, dim);
    std::string name = "dim " + std::to_string(dim);
    if (!walk.refused.empty())
      return name + " is not in the grid, so its tile must be its extent: it cannot be walked in blocks, because " +
             walk.refused;
    if (walk.maximum < 0)
      return "";
    tile::Form form = part.op(roots[walk.maximum].expr).form;
    std::string needed =
        ", so its form must be '" + tile::stringifyForm(tile::Form::onlineSoftmaxOfBlocks).str() + "'";
    if (!isOnlineSoftmaxOfBlocks(form))
      return op(roots[walk.maximum].expr) + ": is used while " + name + " is walked" + needed;
    if (form == tile::Form::onlineSoftmaxWithBound && !walk.mayEnd)
      return op(roots[walk.maximum].expr) + ": more than exponentials relative to it depends on blocks of " + name +
             needed;
    return "";
  }

  /// Checks that a root reads other roots' elements only at its own index along grid dims.
  std::string checkTileLocal(const GroupPlan &part, const GroupRoot &root) const {
    const std::vector<int64_t> &dims = part.op(root.expr).dims;
    for (const RootAccess &access : root.accesses) {
      if (access.producer < 0)
        continue;
      const std::vector<int64_t> &produced = part.op(access.producer).dims;
      AffineMap written = graph.exprs()[access.producer].results[access.result];
      for (auto [write, read] : llvm::zip(written.getResults(), access.map.getResults())) {
        int64_t writtenDim = pureDim(write), readDim = pureDim(read);
        int64_t place = writtenDim < 0 ? -1 : produced[writtenDim];
        if (place >= 0 && llvm::is_contained(part.grid, place) && (readDim < 0 || dims[readDim] != place))
          return "reads op " + std::to_string(access.producer) + " across tiles of grid dim " + std::to_string(place);
      }
    }
    return "";
  }

  const Plan &plan;
  const TensorGraph &graph;
  size_t numExprs;
  llvm::DenseMap<unsigned, Place> places;
};
} // namespace

std::string Plan::verify(const TensorGraph &graph) const {
  std::string why = whyNotRecorded(forms, recordedForms(graph));
  return why.empty() ? Verifier(*this, graph).run() : why;
}
