#include "passes/plan/GreedyPlanner.h"

#include "passes/plan/Eligibility.h"
#include "passes/plan/Partition.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kSmallPart = 1024 * 1024; ///< bytes of traffic up to which parts are packed into one kernel

/// Predictions are no closer than this. Within it fewer bytes and fewer launches decide.
constexpr double kRoughness = 1.25;
/// Up to this many bytes waking further workers costs about what they save, so predictions are rougher still.
constexpr double kFewBytes = 512 * 1024, kRoughnessOfFew = 2;

double roughness(double bytes) { return bytes <= kFewBytes ? kRoughnessOfFew : kRoughness; }

std::string microseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g us", seconds * 1e6);
  return text;
}

/// Reason and remedy for an edge that was not taken inside.
struct Declined {
  std::string reason, wouldChange;
};

class GreedyPlanner {
public:
  GreedyPlanner(const TensorGraph &graph, const Target &target, const PlanOptions &options, Block &block)
      : graph(graph), target(target), options(options), block(block), partition(graph, block), reasons(graph.exprs().size()),
        partOf(graph.exprs().size(), -1) {}

  Plan run() {
    classify();
    mergeAlongEdges();
    mergeSiblings();
    trimViews();
    dropSlow();
    regroup();
    pack();
    return emit();
  }

private:
  //===--------------------------------------------------------------------===//
  // Candidates
  //===--------------------------------------------------------------------===//

  void classify() {
    std::vector<int64_t> folded = foldsIntoContraction(graph);
    std::vector<bool> atLoad = computedAtLoad(graph);
    for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
      reasons[id] = whyNotEligible(expr);
      if (!reasons[id].empty())
        continue;
      if (atLoad[id])
        reasons[id] = "depends on weights and constants alone: IREE computes it once at load";
      else if (folded[id] >= 0)
        reasons[id] = "IREE folds it into its " + opName(folded[id]);
      else if (llvm::all_of(expr.op->getResults(), [](Value result) { return result.use_empty(); }))
        reasons[id] = "nothing reads it";
      else
        startPart(id);
    }
  }

  std::string opName(unsigned expr) const { return graph.exprs()[expr].op->getName().getStringRef().str(); }

  void startPart(unsigned id) {
    std::optional<PlannedPart> part = planPart(graph, id, target, &reasons[id]);
    if (!part)
      return;
    partOf[id] = parts.size();
    parts.push_back(std::move(part));
    versions.push_back(0);
  }

  /// A part of reshapes alone costs nothing: whoever reads it reads the dense tensor.
  bool isFree(const PlannedPart &part) const {
    return llvm::all_of(part.choice.exprs, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
  }
  double secondsOf(const PlannedPart &part) const { return isFree(part) ? 0 : part.predicted.seconds; }

  //===--------------------------------------------------------------------===//
  // Growing parts
  //===--------------------------------------------------------------------===//

  void mergeAlongEdges() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [index, edge] : llvm::enumerate(graph.edges())) {
        int64_t producer = partOf[edge.producer], consumer = partOf[edge.consumer];
        if (producer < 0 || consumer < 0 || producer == consumer || !isNewPair(producer, consumer))
          continue;
        Declined why;
        if (tryMerge(producer, consumer, why))
          changed = true;
        else
          declined[{producer, consumer}] = {versions[producer], versions[consumer], why};
      }
    }
  }

  bool isNewPair(unsigned a, unsigned b) const {
    auto known = declined.find({a, b});
    return known == declined.end() || known->second.first != versions[a] || known->second.second != versions[b];
  }

  bool tryMerge(unsigned a, unsigned b, Declined &why) {
    if (!partition.canMerge(groupOf(a), groupOf(b))) {
      why = {"another op depends on the producer's kernel and the consumer's kernel on it",
             "the ops between the two taken into the kernel"};
      return false;
    }
    SmallVector<unsigned> exprs(parts[a]->choice.exprs);
    llvm::append_range(exprs, parts[b]->choice.exprs);
    llvm::sort(exprs);
    std::string reason;
    std::optional<PlannedPart> merged = planPart(graph, exprs, target, &reason);
    if (!merged) {
      why = {reason, "a target with more memory for a workgroup or more bindings"};
      return false;
    }
    double separate = secondsOf(*parts[a]) + secondsOf(*parts[b]), together = merged->predicted.seconds;
    bool free = isFree(*parts[a]) || isFree(*parts[b]);
    bool savesBytes = merged->predicted.bytes < parts[a]->predicted.bytes + parts[b]->predicted.bytes;
    double allowed = free ? separate * (1 + 1e-9) : savesBytes ? separate * roughness(merged->predicted.bytes) : separate;
    if (together > allowed) {
      why = {"one kernel is predicted slower: " + microseconds(together) + " against " + microseconds(separate),
             "a launch that costs " + microseconds(together - separate) + " more"};
      return false;
    }
    partition.merge(groupOf(a), groupOf(b));
    for (unsigned expr : parts[b]->choice.exprs)
      partOf[expr] = a;
    parts[a] = std::move(merged);
    parts[b].reset();
    ++versions[a];
    return true;
  }

  unsigned groupOf(unsigned part) const { return partition.groupOf(parts[part]->choice.exprs.front()); }

  /// Independent parts that read a tensor in common read it once together (Souffle 5.1: spatial reuse).
  void mergeSiblings() {
    for (const TensorReuse &reuse : graph.reuse()) {
      if (!reuse.spatial || tensorBytes(reuse.tensor) <= kBytesOfScalar)
        continue;
      for (size_t i = 0; i < reuse.readers.size(); ++i)
        for (size_t j = i + 1; j < reuse.readers.size(); ++j) {
          int64_t a = partOf[reuse.readers[i]], b = partOf[reuse.readers[j]];
          Declined why;
          if (a >= 0 && b >= 0 && a != b && parts[a] && parts[b] && isNewPair(a, b) && !tryMerge(a, b, why))
            declined[{a, b}] = {versions[a], versions[b], why};
        }
    }
  }

  /// Reshapes at the border of a part: outside it they are free, inside they only make indices harder.
  void trimViews() {
    for (std::optional<PlannedPart> &part : parts)
      while (part) {
        auto view = llvm::find_if(part->choice.exprs, [&](unsigned expr) { return isBorderView(*part, expr); });
        if (view == part->choice.exprs.end())
          break;
        unsigned expr = *view;
        SmallVector<unsigned> rest(part->choice.exprs);
        llvm::erase(rest, expr);
        std::optional<PlannedPart> trimmed;
        if (!rest.empty() && !(trimmed = planPart(graph, rest, target)))
          break;
        part = std::move(trimmed);
        leave(expr, "a reshape at the border of a kernel: a view, nothing to compute");
      }
  }

  bool isBorderView(const PlannedPart &part, unsigned expr) const {
    if (!isView(graph.exprs()[expr]))
      return false;
    auto inside = [&](unsigned other) { return part.choice.contains(other); };
    bool read = llvm::any_of(graph.outEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].consumer); });
    bool fed = llvm::any_of(graph.inEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].producer); });
    return !read || !fed;
  }

  void leave(unsigned expr, std::string reason) {
    partOf[expr] = -1;
    reasons[expr] = std::move(reason);
  }

  //===--------------------------------------------------------------------===//
  // Against IREE alone
  //===--------------------------------------------------------------------===//

  void dropSlow() {
    for (std::optional<PlannedPart> &part : parts) {
      if (!part)
        continue;
      std::string why = whyNotFaster(*part);
      if (why.empty())
        continue;
      for (unsigned expr : part->choice.exprs)
        leave(expr, why);
      part.reset();
    }
  }

  std::string whyNotFaster(const PlannedPart &part) const {
    bool computes = llvm::any_of(part.choice.exprs, [&](unsigned expr) {
      return graph.exprs()[expr].kind != ExprKind::movement;
    });
    if (!computes)
      return "movement that no kernel of ours computes with";
    std::vector<SmallVector<unsigned>> alone = dispatchesOfIree(graph, part.choice.exprs);
    if (alone.size() <= 1)
      return options.takeSingles ? "" : "IREE runs it as one dispatch by itself";
    // Each of its dispatches is charged what a kernel of ours would be for the same ops.
    double ours = part.predicted.seconds, theirs = 0;
    for (ArrayRef<unsigned> dispatch : alone) {
      std::optional<PlannedPart> planned = planPart(graph, dispatch, target);
      if (!planned)
        return "";
      theirs += planned->predicted.seconds;
    }
    if (ours > theirs * roughness(part.predicted.bytes))
      return "IREE alone is predicted faster: " + microseconds(theirs) + " against " + microseconds(ours);
    return "";
  }

  //===--------------------------------------------------------------------===//
  // Packing
  //===--------------------------------------------------------------------===//

  /// Groups without what was trimmed and dropped since they grew. Taking members at the border away makes no cycle.
  void regroup() {
    partition = Partition(graph, block);
    for (const std::optional<PlannedPart> &part : parts)
      if (part)
        for (unsigned expr : part->choice.exprs)
          partition.merge(partition.groupOf(part->choice.exprs.front()), partition.groupOf(expr));
  }

  /// Small independent parts run side by side in one launch (FusionStitching 4.1: kernel packing).
  void pack() {
    for (unsigned index = 0; index < parts.size(); ++index)
      if (parts[index])
        kernels.push_back({index});
    if (!options.pack)
      return;
    for (size_t a = 0; a < kernels.size(); ++a)
      for (size_t b = a + 1; b < kernels.size();) {
        if (!mayPack(kernels[a], kernels[b])) {
          ++b;
          continue;
        }
        partition.merge(groupOf(kernels[a].front()), groupOf(kernels[b].front()));
        llvm::append_range(kernels[a], kernels[b]);
        kernels.erase(kernels.begin() + b);
      }
  }

  bool isSmall(unsigned part) const {
    return parts[part]->work.globalBytes() <= kSmallPart || parts[part]->space.workgroups == 1;
  }
  int64_t bindings(ArrayRef<unsigned> kernel) const {
    int64_t count = 0;
    for (unsigned part : kernel)
      count += parts[part]->space.inputs.size() + parts[part]->space.outputs.size();
    return count;
  }
  Prediction predict(ArrayRef<unsigned> kernel) const {
    return predictKernel(llvm::map_to_vector(kernel, [&](unsigned part) { return parts[part]->work; }), target);
  }

  bool mayPack(ArrayRef<unsigned> a, ArrayRef<unsigned> b) const {
    if (!llvm::all_of(llvm::concat<const unsigned>(a, b), [&](unsigned part) { return isSmall(part); }))
      return false;
    if (bindings(a) + bindings(b) > target.maxBindings)
      return false;
    unsigned left = groupOf(a.front()), right = groupOf(b.front());
    if (partition.reaches(left, right) || partition.reaches(right, left))
      return false;
    SmallVector<unsigned> both(a);
    llvm::append_range(both, b);
    return predict(both).seconds < predict(a).seconds + predict(b).seconds;
  }

  //===--------------------------------------------------------------------===//
  // Writing the plan
  //===--------------------------------------------------------------------===//

  Plan emit() const {
    Plan plan;
    plan.target = target.name;
    plan.policy = options.policy;
    emitKernels(plan);
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
      plan.edges.push_back(emitEdge(edge));
    for (auto [id, part] : llvm::enumerate(partOf))
      if (part < 0)
        plan.left.push_back({static_cast<unsigned>(id), opName(id), reasons[id]});
    return plan;
  }

  void emitKernels(Plan &plan) const {
    llvm::DenseMap<unsigned, const SmallVector<unsigned> *> byGroup;
    for (const SmallVector<unsigned> &kernel : kernels)
      byGroup[groupOf(kernel.front())] = &kernel;
    auto sequence = partition.order();
    assert(sequence && "merges keep the partition acyclic");
    llvm::StringMap<unsigned> names;
    for (const std::vector<Operation *> &ops : *sequence) {
      int64_t id = graph.indexOf(ops.front());
      auto kernel = id < 0 ? byGroup.end() : byGroup.find(partition.groupOf(id));
      if (kernel == byGroup.end())
        continue;
      KernelPlan &entry = plan.kernels.emplace_back(emitKernel(*kernel->second));
      entry.name += "_" + std::to_string(names[entry.name]++);
    }
    if (!plan.kernels.empty())
      std::iota(plan.streams.emplace_back(plan.kernels.size()).begin(), plan.streams.back().end(), 0);
  }

  KernelPlan emitKernel(ArrayRef<unsigned> members) const {
    KernelPlan kernel;
    kernel.name = nameOf(members);
    kernel.predicted = predict(members).terms;
    unsigned firstInput = 0;
    for (unsigned part : members) {
      kernel.parts.push_back(emitPart(*parts[part], firstInput));
      firstInput += parts[part]->space.inputs.size();
    }
    return kernel;
  }

  /// The arithmetic that says most about a kernel: what it reduces with, then functions, then the rest.
  std::string nameOf(ArrayRef<unsigned> members) const {
    llvm::SetVector<StringRef> reduced, special, plain;
    for (unsigned part : members)
      for (unsigned id : parts[part]->choice.exprs) {
        const TensorExpr &expr = graph.exprs()[id];
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
    if (!reduced.empty())
      words.push_back("reduce");
    for (StringRef word : llvm::concat<const StringRef>(reduced, special, plain))
      if (words.size() < 4 && !llvm::is_contained(words, word))
        words.push_back(word);
    return words.empty() ? "move" : llvm::join(words, "_");
  }

  PartPlan emitPart(const PlannedPart &part, unsigned firstInput) const {
    PartPlan plan;
    plan.extents = part.space.extents;
    plan.tiles = part.space.tiles;
    plan.grid = part.space.grid;
    plan.vector = part.space.vector;
    plan.workgroups = part.space.workgroups;
    for (unsigned id : part.choice.exprs)
      plan.ops.push_back(emitOp(part, id));
    emitTensors(part, firstInput, plan);
    return plan;
  }

  OpPlan emitOp(const PlannedPart &part, unsigned id) const {
    const TensorExpr &expr = graph.exprs()[id];
    OpPlan plan;
    plan.id = id;
    plan.op = opName(id);
    plan.form = "as-is";
    auto root = llvm::find_if(part.space.roots, [&](const PartRoot &root) { return root.expr == id; });
    plan.root = root != part.space.roots.end();
    if (!expr.oneReliesOnOne())
      plan.numerics = numericsOf(part, expr, root->dims);
    if (!plan.root)
      return plan;
    plan.dims.assign(root->dims.begin(), root->dims.end());
    plan.tilings.push_back(tilingOf(part, root->dims));
    return plan;
  }

  static LevelTiling tilingOf(const PlannedPart &part, ArrayRef<int64_t> dims) {
    LevelTiling tiling{tile::Scope::block, {}, {}};
    for (auto [dim, place] : llvm::enumerate(dims)) {
      tiling.sizes.push_back(place < 0 ? 1 : part.space.tiles[place]);
      tiling.order.push_back(dim);
    }
    llvm::sort(tiling.order, [&](int64_t a, int64_t b) { return std::pair(dims[a], a) < std::pair(dims[b], b); });
    return tiling;
  }

  static Numerics numericsOf(const PlannedPart &part, const TensorExpr &expr, ArrayRef<int64_t> dims) {
    Type element = getElementTypeOrSelf(expr.op->getResult(0).getType());
    Numerics numerics;
    bool narrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
    llvm::raw_string_ostream(numerics.accumulation) << (narrow ? Float32Type::get(element.getContext()) : element);
    numerics.reassociates = isa<FloatType>(element) && part.space.vector >= 0 &&
                            llvm::any_of(expr.reductions, [&](int64_t dim) { return dims[dim] == part.space.vector; });
    if (narrow)
      for (int64_t dim : expr.reductions)
        numerics.roundingsRemoved += expr.domain[dim] - 1;
    return numerics;
  }

  void emitTensors(const PlannedPart &part, unsigned firstInput, PartPlan &plan) const {
    const IndexSpace &space = part.space;
    for (auto [i, tensor] : llvm::enumerate(space.inputs)) {
      std::string name = "in" + std::to_string(firstInput + i);
      if (llvm::is_contained(space.workgroupStaged, tensor))
        plan.tensors.push_back({name, tile::Space::block, "workgroup", {}});
      else if (llvm::is_contained(space.tileStaged, tensor))
        plan.tensors.push_back({name, tile::Space::block, "tile", {}});
      else
        plan.tensors.push_back({name, tile::Space::global, "kernel", {}});
    }
    auto nameOfResult = [&](Value result) {
      return "op" + std::to_string(graph.indexOf(result.getDefiningOp())) + "." +
             std::to_string(cast<OpResult>(result).getResultNumber());
    };
    for (const PartRoot &root : space.roots)
      for (Value result : graph.exprs()[root.expr].op->getResults())
        if (!space.readingNests(result).empty())
          plan.tensors.push_back({nameOfResult(result), tile::Space::block, "tile", {}});
    for (Value tensor : space.outputs)
      plan.tensors.push_back({nameOfResult(tensor), tile::Space::global, "kernel", {}});
  }

  EdgePlan emitEdge(unsigned index) const {
    const TensorEdge &edge = graph.edges()[index];
    EdgePlan plan{edge.producer, edge.result, edge.consumer, edge.input, tile::Scope::launch, false, "", 0, 0, ""};
    int64_t bytes = tensorBytes(graph.exprs()[edge.producer].op->getResult(edge.result));
    int64_t from = partOf[edge.producer], to = partOf[edge.consumer];
    if (from >= 0 && from == to) {
      const EdgeChoice &choice = parts[from]->edges.find(index)->second;
      plan.scope = choice.scope;
      plan.recompute = choice.recompute;
      plan.reason = choice.reason;
      plan.bytes = choice.scope == tile::Scope::block ? 2 * bytes : 0;
      plan.seconds = plan.bytes / target.level(tile::Space::block).bandwidth;
      plan.wouldChange = choice.scope == tile::Scope::thread ? "" : wouldChangeBlock(edge.producer);
      return plan;
    }
    plan.bytes = 2 * bytes;
    plan.seconds = plan.bytes / target.level(tile::Space::global).bandwidth;
    Declined why = whyLaunch(edge, from, to);
    plan.reason = why.reason;
    plan.wouldChange = why.wouldChange;
    return plan;
  }

  std::string wouldChangeBlock(unsigned producer) const {
    return graph.exprs()[producer].oneReliesOnOne() ? "fewer nests that read it, or a cheaper expression"
                                                    : "scope warp, which this target does not have";
  }

  Declined whyLaunch(const TensorEdge &edge, int64_t from, int64_t to) const {
    if (to < 0)
      return {"op " + std::to_string(edge.consumer) + " stays with IREE: " + reasons[edge.consumer],
              "op " + std::to_string(edge.consumer) + " in a kernel of ours"};
    if (from < 0)
      return {"op " + std::to_string(edge.producer) + " stays with IREE: " + reasons[edge.producer],
              "op " + std::to_string(edge.producer) + " in a kernel of ours"};
    auto known = declined.find({static_cast<unsigned>(from), static_cast<unsigned>(to)});
    if (known != declined.end())
      return known->second.why;
    return {"the two kernels were planned apart", "another order of merging"};
  }

  struct Attempt {
    unsigned first, second; ///< versions of the two parts
    Declined why;
  };

  static constexpr int64_t kBytesOfScalar = 8;

  const TensorGraph &graph;
  const Target &target;
  const PlanOptions &options;
  Block &block;
  Partition partition;
  std::vector<std::string> reasons; ///< why an expression is left, by expression
  std::vector<int64_t> partOf;      ///< by expression; -1: left
  std::vector<std::optional<PlannedPart>> parts;
  std::vector<unsigned> versions;
  std::map<std::pair<unsigned, unsigned>, Attempt> declined;
  std::vector<SmallVector<unsigned>> kernels; ///< parts of each
};
} // namespace

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options) {
  if (graph.exprs().empty())
    return Plan{target.name, options.policy, {}, {}, {}, {}};
  return GreedyPlanner(graph, target, options, *graph.exprs().front().op->getBlock()).run();
}
