#include "passes/plan/scopes/ChooseScopes.h"
#include "passes/plan/fusion/GreedyPlanner.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/grid/JoinAtGrid.h"
#include "passes/plan/ir/Partition.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/fusion/PlanRestrictions.h"
#include "passes/plan/grid/WritePlan.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kSmallPart = 1024 * 1024; ///< bytes of traffic up to which parts are packed into one kernel

constexpr llvm::StringLiteral kLoneMovement = "movement that no kernel of ours computes with";

constexpr double kLaunchesOfSmall = 8; ///< the same for contractions on a GPU, in the time of a launch

/// Predictions are no closer than this. Within it fewer bytes and fewer launches decide.
constexpr double kRoughness = 1.25;
/// Up to this many bytes waking further workers costs about what they save, so predictions are rougher still.
constexpr double kFewBytes = 512 * 1024, kRoughnessOfFew = 2;

/// What contractions take is known better.
constexpr double kRoughnessOfContractions = 1.1;

/// What a dispatch of IREE's takes on a CPU in the time of a kernel of ours for the same ops: the geometric mean of the
/// 41 patterns of `stitch` that are one dispatch each (docs/benchmarks.md).
constexpr double kTimesOfIreeOnCpu = 1.9;

/// Instructions that a merged kernel may have, about. LLVM allocates registers in a time that grows with their square:
/// 1 s for 100 exponentials, 3 s for 200, 15 s for 400.
constexpr int64_t kMostInstructions = 2048, kInstructionsOfSpecial = 16;

int64_t instructionsOf(const TensorExpr &expr) {
  return expr.arithmetic() / std::max<int64_t>(1, expr.domainSize()) + kInstructionsOfSpecial * specialOps(expr);
}

double roughness(double bytes) { return bytes <= kFewBytes ? kRoughnessOfFew : kRoughness; }

std::string microseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g us", seconds * 1e6);
  return text;
}

class GreedyPlanner {
public:
  GreedyPlanner(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                const PlanRestrictions &restrictions, Block &block)
      : graph(graph), target(target), options(options), restrictions(restrictions), block(block),
        partition(graph, block) {
    decisions.reasons.resize(graph.exprs().size());
    decisions.partOf.assign(graph.exprs().size(), -1);
    keepApart();
  }

  Plan run() {
    classify();
    leaveLastViews();
    mergeAlongEdges();
    mergeFans();
    mergeSiblings();
    handTransposesOn();
    trimViews();
    dropSlow();
    regroup();
    pack();
    joinAtGrid(graph, target, partition, decisions, options.gridSync);
    leaveLoneSlices();
    leaveLoneDispatches();
    orderKernels();
    return writePlan(graph, target, options.policy, options.numerics, decisions);
  }

private:
  void keepApart() {
    for (unsigned expr = 0; expr < graph.exprs().size(); ++expr)
      if (!restrictions.fuse || restrictions.unfused.contains(expr))
        partition.keepApart(expr);
  }

  //===--------------------------------------------------------------------===//
  // Candidates
  //===--------------------------------------------------------------------===//

  void classify() {
    std::vector<bool> atLoad = computedAtLoad(graph), layOut = layOutWeights(graph), irees(graph.exprs().size());
    for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
      decisions.reasons[id] = restrictions.left.contains(id) ? kLeftByRestriction.str() : whyNotEligible(expr);
      if (expr.kind != ExprKind::contraction)
        continue;
      if (decisions.reasons[id].empty() && !atLoad[id])
        startPart(id);
      irees[id] = decisions.partOf[id] < 0 && !atLoad[id];
    }
    std::vector<int64_t> folded = foldsIntoContraction(graph, irees);
    for (auto [id, expr] : llvm::enumerate(graph.exprs())) {
      if (decisions.partOf[id] >= 0 || !decisions.reasons[id].empty())
        continue;
      if (atLoad[id] && layOut[id])
        decisions.reasons[id] = "lays a weight out for its kernel: done at compile time, in the parameter file (where "
                                "there is none to write, once at load)";
      else if (atLoad[id] && isView(expr))
        decisions.reasons[id] = "a reshape of weights and constants: a view, nothing to compute";
      else if (atLoad[id])
        decisions.reasons[id] = "depends on weights and constants alone: IREE computes it once at load";
      else if (folded[id] >= 0)
        decisions.reasons[id] = "IREE folds it into its " + opName(folded[id]);
      else if (llvm::all_of(expr.op->getResults(), [](Value result) { return result.use_empty(); }))
        decisions.reasons[id] = "nothing reads it";
      else
        startPart(id);
    }
  }

  /// Reshapes of results that no part reads: they end at a border whatever is merged, and until then would keep the
  /// dims before them apart from those behind.
  void leaveLastViews() {
    for (unsigned expr = graph.exprs().size(); expr-- > 0;) {
      auto isTaken = [&](unsigned edge) { return decisions.partOf[graph.edges()[edge].consumer] >= 0; };
      if (decisions.partOf[expr] < 0 || !isView(graph.exprs()[expr]) || llvm::any_of(graph.outEdges(expr), isTaken))
        continue;
      decisions.parts[decisions.partOf[expr]].reset();
      leave(expr, kBorderView);
    }
  }

  std::string opName(unsigned expr) const { return graph.exprs()[expr].op->getName().getStringRef().str(); }

  void startPart(unsigned id) {
    std::optional<PlannedGroup> part = planGroup(graph, id, target, &decisions.reasons[id]);
    if (!part)
      return;
    decisions.partOf[id] = decisions.parts.size();
    decisions.parts.push_back(std::move(part));
    versions.push_back(0);
  }

  /// A part of reshapes alone costs nothing: whoever reads it reads the dense tensor.
  bool isFree(const PlannedGroup &part) const {
    return llvm::all_of(part.choice.exprs, [&](unsigned expr) { return isView(graph.exprs()[expr]); });
  }
  double secondsOf(const PlannedGroup &part, double workingSetBytes) const {
    return isFree(part) ? 0 : predictKernel(part.work, target, workingSetBytes).seconds;
  }

  //===--------------------------------------------------------------------===//
  // Growing parts
  //===--------------------------------------------------------------------===//

  /// What follows a contraction comes before what it reads: after it, a tile is at hand; in front of it, every tile of
  /// columns reads whole rows, so that a norm there may keep its own bias out.
  void mergeAlongEdges() {
    mergeAlong([&](unsigned producer, unsigned consumer) {
      const PlannedGroup &reader = *decisions.parts[consumer];
      return contracts(*decisions.parts[producer]) && !contracts(reader) && !repeatsElements(reader);
    });
    // What lays short rows out along a longer one is a broadcast and a reshape: to readers one index or buffer.
    mergeAlong([&](unsigned producer, unsigned consumer) { return laysOutRows({producer, consumer}); });
    // Broadcasts before what is behind them: with their readers they are an index, with the sum of a long row that fits
    // no workgroup they are a tensor to write.
    mergeAlong([&](unsigned producer, unsigned) { return repeatsElements(*decisions.parts[producer]); });
    // The windows of an image before the pad behind them: a contraction reads through the one, not under a guard.
    mergeAlong([&](unsigned producer, unsigned consumer) {
      const PlannedGroup &reader = *decisions.parts[consumer];
      return movesUnguarded(*decisions.parts[producer]) && (contracts(reader) || movesUnguarded(reader));
    });
    mergeAlong([](unsigned, unsigned) { return true; });
  }

  void mergeAlong(llvm::function_ref<bool(unsigned producer, unsigned consumer)> mayMerge) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto [index, edge] : llvm::enumerate(graph.edges())) {
        int64_t producer = decisions.partOf[edge.producer], consumer = decisions.partOf[edge.consumer];
        if (producer < 0 || consumer < 0 || producer == consumer || !mayMerge(producer, consumer) ||
            !isNewPair(producer, consumer))
          continue;
        Declined why;
        if (tryMerge(producer, consumer, why))
          changed = true;
        else
          decline(producer, consumer, std::move(why));
      }
    }
  }

  bool isNewPair(unsigned a, unsigned b) const {
    auto known = tried.find({a, b});
    return known == tried.end() || known->second.first != versions[a] || known->second.second != versions[b];
  }

  void decline(unsigned a, unsigned b, Declined why) {
    tried[{a, b}] = {versions[a], versions[b]};
    decisions.declined[{a, b}] = std::move(why);
  }

  bool tryMerge(unsigned a, unsigned b, Declined &why) { return tryMerge({a, b}, why); }

  /// Makes the first part what all of them are together.
  bool tryMerge(ArrayRef<unsigned> parts, Declined &why) {
    unsigned a = parts.front();
    if (llvm::any_of(parts, [&](unsigned part) { return isApart(part); })) {
      why = {kUnfused.str(), "the fault in that pass mended"};
      return false;
    }
    if (!llvm::all_of(parts.drop_front(), [&](unsigned b) { return partition.canMerge(groupOf(a), groupOf(b)); })) {
      why = {"another op depends on the producer's kernel and the consumer's kernel on it",
             "the ops between the two taken into the kernel"};
      return false;
    }
    SmallVector<unsigned> exprs;
    for (unsigned part : parts)
      llvm::append_range(exprs, decisions.parts[part]->choice.exprs);
    llvm::sort(exprs);
    int64_t instructions = 0;
    for (unsigned expr : exprs)
      instructions += instructionsOf(graph.exprs()[expr]);
    if (instructions > kMostInstructions) {
      why = {llvm::formatv("one kernel would have some {0} instructions: more than {1} take long to compile",
                           instructions, kMostInstructions),
             "fewer ops in a row"};
      return false;
    }
    std::string reason;
    std::optional<PlannedGroup> merged = planGroup(graph, exprs, target, &reason);
    if (!merged) {
      why = {reason, "a target with more memory for a workgroup or more bindings"};
      return false;
    }
    // One after the other touch what both touch: neither finds its tensors closer than the other leaves them.
    double both = 0, separate = 0, together = merged->predicted.seconds;
    for (unsigned part : parts)
      both += decisions.parts[part]->predicted.bytes;
    for (unsigned part : parts)
      separate += secondsOf(*decisions.parts[part], both);
    bool free = llvm::any_of(parts, [&](unsigned part) { return isFree(*decisions.parts[part]); });
    bool savesBytes = merged->predicted.bytes < both;
    double rough = contracts(*merged) ? kRoughnessOfContractions : roughness(merged->predicted.bytes);
    double allowed = separate * (free ? 1 + 1e-9 : savesBytes ? rough : 1);
    if (together > allowed && !laysOutRows(parts)) {
      why = {"one kernel is predicted slower: " + microseconds(together) + " against " + microseconds(separate),
             "a launch that costs " + microseconds(together - separate) + " more"};
      return false;
    }
    merged->apartSeconds = apartSeconds(parts, both);
    for (unsigned part : parts.drop_front()) {
      partition.merge(groupOf(a), groupOf(part));
      for (unsigned expr : decisions.parts[part]->choice.exprs)
        decisions.partOf[expr] = a;
      decisions.parts[part].reset();
    }
    decisions.parts[a] = std::move(merged);
    ++versions[a];
    return true;
  }

  bool isApart(unsigned part) const {
    return llvm::any_of(decisions.parts[part]->choice.exprs, [&](unsigned expr) { return partition.isApart(expr); });
  }

  bool laysOutRows(ArrayRef<unsigned> parts) const {
    return parts.size() == 2 && repeatsElements(*decisions.parts[parts[0]]) && isFree(*decisions.parts[parts[1]]);
  }

  /// What parts would take with a kernel for each contraction, if several have any or one has several.
  double apartSeconds(ArrayRef<unsigned> parts, double bytes) const {
    double seconds = 0;
    int64_t contractions = 0;
    for (unsigned number : parts) {
      const PlannedGroup &part = *decisions.parts[number];
      contractions += part.apartSeconds > 0 ? 2 : contracts(part);
      seconds += part.apartSeconds > 0 ? part.apartSeconds : secondsOf(part, bytes);
    }
    return contractions > 1 ? seconds : 0;
  }

  /// A part with all that read it, where it gains from none of them alone: as long as one is outside, the tensor has to
  /// be written, over other dims than the pieces that the readers take of it (the parts of a split). Contractions gain
  /// from their readers and operands one by one.
  void mergeFans() {
    for (unsigned part = 0; part < decisions.parts.size(); ++part) {
      if (!decisions.parts[part])
        continue;
      llvm::SmallSetVector<unsigned, 4> fan;
      fan.insert(part);
      bool readElsewhere = false;
      for (unsigned expr : decisions.parts[part]->choice.exprs) {
        readElsewhere |= graph.escapes(expr);
        for (unsigned edge : graph.outEdges(expr)) {
          int64_t reader = decisions.partOf[graph.edges()[edge].consumer];
          readElsewhere |= reader < 0;
          if (reader >= 0)
            fan.insert(reader);
        }
      }
      Declined why;
      bool anyContracts = llvm::any_of(fan, [&](unsigned each) { return contracts(*decisions.parts[each]); });
      if (fan.size() > 2 && !readElsewhere && !anyContracts)
        tryMerge(fan.getArrayRef(), why);
    }
  }

  unsigned groupOf(unsigned part) const { return partition.groupOf(decisions.parts[part]->choice.exprs.front()); }

  /// Independent parts that read a tensor in common read it once together (Souffle 5.1: spatial reuse).
  void mergeSiblings() {
    for (const TensorReuse &reuse : graph.reuse()) {
      if (!reuse.spatial || tensorBytes(reuse.tensor) <= kBytesOfScalar)
        continue;
      for (size_t i = 0; i < reuse.readers.size(); ++i)
        for (size_t j = i + 1; j < reuse.readers.size(); ++j) {
          int64_t a = decisions.partOf[reuse.readers[i]], b = decisions.partOf[reuse.readers[j]];
          Declined why;
          if (a >= 0 && b >= 0 && a != b && isNewPair(a, b) && !tryMerge(a, b, why))
            decline(a, b, std::move(why));
        }
    }
  }

  /// On GPUs a transpose that another part alone reads goes there, where both are predicted to take less time then:
  /// what it transposes is written as threads have it, and read by another index. While parts grow it is taken by
  /// whoever makes it.
  void handTransposesOn() {
    for (unsigned expr = graph.exprs().size(); expr-- > 0 && target.backend == Backend::cuda;)
      if (int64_t reader = onlyReaderElsewhere(expr); reader >= 0 && permutesElements(graph.exprs()[expr]))
        handOn(expr, reader);
  }

  static bool permutesElements(const TensorExpr &expr) {
    return expr.kind == ExprKind::movement && expr.inputs.size() == 1 && expr.inputs[0].guard == IntegerSet() &&
           !isView(expr) && expr.inputs[0].map.isPermutation();
  }

  /// The part of all readers of a part's op, if it is one and another one; -1 if not.
  int64_t onlyReaderElsewhere(unsigned expr) const {
    if (decisions.partOf[expr] < 0 || graph.escapes(expr) || graph.outEdges(expr).empty())
      return -1;
    int64_t reader = decisions.partOf[graph.edges()[graph.outEdges(expr).front()].consumer];
    bool isOnly = reader != decisions.partOf[expr] && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
                    return decisions.partOf[graph.edges()[edge].consumer] == reader;
                  });
    return isOnly ? reader : -1;
  }

  /// By time, and where that stays by what blocks ask the L2 for.
  static bool isBetter(const PlannedGroup &a, const PlannedGroup &b, const PlannedGroup &thanA, const PlannedGroup &thanB) {
    double seconds = a.predicted.seconds + b.predicted.seconds,
           before = thanA.predicted.seconds + thanB.predicted.seconds;
    auto asked = [](const PlannedGroup &part) { return part.space.blockWork.movedBytes; };
    return seconds < before || (seconds == before && asked(a) + asked(b) < asked(thanA) + asked(thanB));
  }

  void handOn(unsigned expr, unsigned reader) {
    if (isApart(decisions.partOf[expr]) || isApart(reader))
      return;
    std::optional<PlannedGroup> &from = decisions.parts[decisions.partOf[expr]], &to = decisions.parts[reader];
    SmallVector<unsigned> rest(from->choice.exprs), more(to->choice.exprs);
    llvm::erase(rest, expr);
    more.insert(llvm::lower_bound(more, expr), expr);
    std::optional<PlannedGroup> without = rest.empty() ? std::nullopt : planGroup(graph, rest, target);
    std::optional<PlannedGroup> with = without ? planGroup(graph, more, target) : std::nullopt;
    if (!with || !isBetter(*without, *with, *from, *to))
      return;
    without->apartSeconds = from->apartSeconds;
    with->apartSeconds = to->apartSeconds;
    from = std::move(without);
    to = std::move(with);
    decisions.partOf[expr] = reader;
  }

  /// Reshapes at the border of a part: outside it they are free, inside they only make indices harder.
  void trimViews() {
    for (std::optional<PlannedGroup> &part : decisions.parts)
      while (part) {
        auto view = llvm::find_if(part->choice.exprs, [&](unsigned expr) { return isBorderView(*part, expr); });
        if (view == part->choice.exprs.end())
          break;
        unsigned expr = *view;
        SmallVector<unsigned> rest(part->choice.exprs);
        llvm::erase(rest, expr);
        std::optional<PlannedGroup> trimmed;
        if (!rest.empty() && !(trimmed = planGroup(graph, rest, target)))
          break;
        if (trimmed)
          trimmed->apartSeconds = part->apartSeconds;
        part = std::move(trimmed);
        leave(expr, kBorderView);
      }
  }

  bool isBorderView(const PlannedGroup &part, unsigned expr) const {
    if (!isView(graph.exprs()[expr]))
      return false;
    auto inside = [&](unsigned other) { return part.choice.contains(other); };
    bool read = llvm::any_of(graph.outEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].consumer); });
    bool fed = llvm::any_of(graph.inEdges(expr), [&](unsigned edge) { return inside(graph.edges()[edge].producer); });
    return !read || !fed;
  }

  void leave(unsigned expr, StringRef reason) {
    decisions.partOf[expr] = -1;
    decisions.reasons[expr] = reason.str();
  }

  //===--------------------------------------------------------------------===//
  // Against IREE alone
  //===--------------------------------------------------------------------===//

  void dropSlow() {
    for (std::optional<PlannedGroup> &part : decisions.parts) {
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

  /// Concats and pads: IREE makes a dispatch of each piece.
  bool movesInPieces(unsigned expr) const {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    return tensorExpr.inputs.size() > 1 ||
           llvm::any_of(tensorExpr.inputs, [](const TensorAccess &access) { return access.guard != IntegerSet(); });
  }

  /// Windows that overlap: whoever reads them had better read what is behind them.
  bool repeatsElements(const PlannedGroup &part) const {
    return llvm::all_of(part.choice.exprs, [&](unsigned expr) {
      const TensorExpr &windows = graph.exprs()[expr];
      return windows.kind == ExprKind::movement && windows.inputs.size() == 1 &&
             windows.domainSize() > cast<RankedTensorType>(windows.inputs[0].tensor.getType()).getNumElements();
    });
  }

  bool movesUnguarded(const PlannedGroup &part) const {
    return llvm::all_of(part.choice.exprs, [&](unsigned expr) {
      return graph.exprs()[expr].kind == ExprKind::movement && !movesInPieces(expr);
    });
  }

  /// On a GPU, what a kernel of ours computes is sliced by strides: alone, a launch that copies, and with that kernel
  /// at scope grid one of its phases.
  bool slicesOurs(const PlannedGroup &part) const {
    return target.backend == Backend::cuda && movesUnguarded(part) &&
           llvm::any_of(part.choice.exprs, [&](unsigned expr) {
             return isStridedSlice(expr) && llvm::any_of(graph.inEdges(expr), [&](unsigned edge) {
                      return decisions.partOf[graph.edges()[edge].producer] >= 0;
                    });
           });
  }

  bool isStridedSlice(unsigned expr) const {
    auto slice = dyn_cast<tensor::ExtractSliceOp>(graph.exprs()[expr].op);
    return slice && !isContiguous(slice);
  }

  /// Behind the outermost dim that has more than one element in the slice, all dims are whole.
  static bool isContiguous(tensor::ExtractSliceOp slice) {
    ArrayRef<int64_t> sizes = slice.getStaticSizes(), whole = slice.getSourceType().getShape();
    const int64_t *longer = llvm::find_if(sizes, [](int64_t size) { return size != 1; });
    size_t behind = longer == sizes.end() ? sizes.size() : longer - sizes.begin() + 1;
    return slice.hasUnitStride() && sizes.drop_front(behind) == whole.drop_front(behind);
  }

  bool feedsContractionsOnly(unsigned expr) const {
    return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
      unsigned consumer = graph.edges()[edge].consumer;
      const TensorExpr &reader = graph.exprs()[consumer];
      return (reader.kind == ExprKind::contraction && decisions.partOf[consumer] < 0) ||
             (reader.kind == ExprKind::movement && feedsContractionsOnly(consumer));
    });
  }

  bool contracts(const PlannedGroup &part) const {
    return llvm::any_of(part.choice.exprs,
                        [&](unsigned expr) { return graph.exprs()[expr].kind == ExprKind::contraction; });
  }

  std::string whyNotFaster(const PlannedGroup &part) const {
    if (contracts(part))
      return ""; // measured: register blocks run at 95% of the machine's peak, IREE's contractions at 70%
    bool computes =
        llvm::any_of(part.choice.exprs, [&](unsigned expr) { return graph.exprs()[expr].kind != ExprKind::movement; });
    if (slicesOurs(part))
      return ""; // until it is known whether it shares a kernel
    if (!computes && llvm::none_of(part.choice.exprs, [&](unsigned expr) { return movesInPieces(expr); }))
      return kLoneMovement.str();
    if (!computes && llvm::all_of(part.choice.exprs, [&](unsigned expr) { return feedsContractionsOnly(expr); }))
      return "movement for a contraction alone: IREE's own";
    std::vector<SmallVector<unsigned>> alone = dispatchesOfIree(graph, part.choice.exprs);
    if (alone.size() <= 1)
      return options.takeSingles ? "" : "IREE runs it as one dispatch by itself";
    // Each of its dispatches is charged what a kernel of ours would be for the same ops, as far as is measured.
    std::vector<PlannedGroup> dispatches;
    double bytes = 0;
    for (ArrayRef<unsigned> dispatch : alone) {
      std::optional<PlannedGroup> planned = planGroup(graph, dispatch, target);
      if (!planned)
        return "";
      bytes += planned->predicted.bytes;
      dispatches.push_back(std::move(*planned));
    }
    double ours = part.predicted.seconds, theirs = 0;
    for (const PlannedGroup &dispatch : dispatches)
      theirs += secondsOf(dispatch, bytes);
    theirs *= target.backend == Backend::cpu ? kTimesOfIreeOnCpu : 1;
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
    keepApart();
    for (const std::optional<PlannedGroup> &part : decisions.parts)
      if (part)
        for (unsigned expr : part->choice.exprs)
          partition.merge(partition.groupOf(part->choice.exprs.front()), partition.groupOf(expr));
  }

  /// Small independent parts run side by side in one launch (FusionStitching 4.1: kernel packing).
  void pack() {
    for (unsigned index = 0; index < decisions.parts.size(); ++index)
      if (decisions.parts[index])
        decisions.kernels.push_back({index});
    if (!options.pack)
      return;
    for (size_t a = 0; a < decisions.kernels.size(); ++a)
      for (size_t b = a + 1; b < decisions.kernels.size();) {
        if (!mayPack(decisions.kernels[a], decisions.kernels[b])) {
          ++b;
          continue;
        }
        partition.merge(groupOf(decisions.kernels[a].front()), groupOf(decisions.kernels[b].front()));
        llvm::append_range(decisions.kernels[a], decisions.kernels[b]);
        decisions.kernels.erase(decisions.kernels.begin() + b);
      }
  }

  /// A contraction on a GPU is small while a launch takes as long as a good part of it.
  bool isSmall(unsigned part) const {
    const PlannedGroup &planned = *decisions.parts[part];
    bool isShort = target.backend == Backend::cuda && contracts(planned) &&
                   planned.predicted.seconds < kLaunchesOfSmall * target.launchSeconds;
    return planned.work.globalBytes() <= kSmallPart || planned.space.workgroups == 1 || isShort;
  }
  /// Blocks of one launch have one size, and the tiles of a contraction are chosen for theirs.
  bool haveOneBlockSize(ArrayRef<unsigned> parts) const {
    bool anyContracts = llvm::any_of(parts, [&](unsigned part) { return contracts(*decisions.parts[part]); });
    return !anyContracts || llvm::all_of(parts, [&](unsigned part) {
      return decisions.parts[part]->space.threads == decisions.parts[parts.front()]->space.threads;
    });
  }
  double secondsOf(ArrayRef<unsigned> kernel, double workingSetBytes) const {
    auto workOf = [&](unsigned part) { return decisions.parts[part]->work; };
    return predictKernel(llvm::map_to_vector(kernel, workOf), target, workingSetBytes).seconds;
  }
  double bytesOf(ArrayRef<unsigned> kernel) const {
    double bytes = 0;
    for (unsigned part : kernel)
      bytes += decisions.parts[part]->predicted.bytes;
    return bytes;
  }

  bool mayPack(ArrayRef<unsigned> a, ArrayRef<unsigned> b) const {
    if (!llvm::all_of(llvm::concat<const unsigned>(a, b),
                      [&](unsigned part) { return isSmall(part) && !isApart(part); }))
      return false;
    SmallVector<unsigned> both(a);
    llvm::append_range(both, b);
    if (countBindings(graph, decisions, both, target) > target.maxBindings)
      return false;
    unsigned left = groupOf(a.front()), right = groupOf(b.front());
    if (partition.reaches(left, right) || partition.reaches(right, left))
      return false;
    if (!haveOneBlockSize(both))
      return false;
    double bytes = bytesOf(both);
    return secondsOf(both, bytes) < secondsOf(a, bytes) + secondsOf(b, bytes);
  }

  /// Slices that share no kernel: IREE copies as well.
  void leaveLoneSlices() {
    llvm::erase_if(decisions.kernels, [&](ArrayRef<unsigned> kernel) {
      if (!llvm::all_of(kernel, [&](unsigned part) { return movesUnguarded(*decisions.parts[part]); }))
        return false;
      for (unsigned part : kernel) {
        for (unsigned expr : decisions.parts[part]->choice.exprs)
          leave(expr, kLoneMovement);
        decisions.parts[part].reset();
      }
      return true;
    });
  }

  /// Where none of our kernels fuses what IREE would not, ours are as good but stand between contractions and the
  /// packing that IREE fuses into their neighbours (measured: a CNN's average pool alone costs 2% of the model that
  /// way).
  void leaveLoneDispatches() {
    bool contractionsLeft = false;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      contractionsLeft |= expr.kind == ExprKind::contraction && decisions.partOf[id] < 0;
    if (!contractionsLeft ||
        !llvm::all_of(decisions.kernels, [&](ArrayRef<unsigned> kernel) { return isLoneDispatch(kernel); }))
      return;
    for (ArrayRef<unsigned> kernel : decisions.kernels)
      for (unsigned expr : decisions.parts[kernel.front()]->choice.exprs)
        leave(expr,
              "no kernel here fuses more than IREE alone, which can fuse packing for its contractions into this one");
    decisions.kernels.clear();
    decisions.parts.assign(decisions.parts.size(), std::nullopt);
  }

  bool isLoneDispatch(ArrayRef<unsigned> kernel) const {
    return kernel.size() == 1 && !contracts(*decisions.parts[kernel.front()]) &&
           dispatchesOfIree(graph, decisions.parts[kernel.front()]->choice.exprs).size() <= 1;
  }

  /// Kernels in an order in which they can be launched.
  void orderKernels() {
    llvm::DenseMap<unsigned, SmallVector<unsigned>> byGroup;
    for (const SmallVector<unsigned> &kernel : decisions.kernels)
      byGroup[groupOf(kernel.front())] = kernel;
    decisions.kernels.clear();
    auto sequence = partition.order();
    assert(sequence && "merges keep the partition acyclic");
    for (const std::vector<Operation *> &ops : *sequence) {
      int64_t id = graph.indexOf(ops.front());
      auto kernel = id < 0 ? byGroup.end() : byGroup.find(partition.groupOf(id));
      if (kernel != byGroup.end())
        decisions.kernels.push_back(kernel->second);
    }
  }

  struct Versions {
    unsigned first, second;
  };

  static constexpr int64_t kBytesOfScalar = 8;

  const TensorGraph &graph;
  const Target &target;
  const PlanOptions &options;
  const PlanRestrictions &restrictions;
  Block &block;
  Partition partition;
  Decisions decisions;
  std::vector<unsigned> versions;                          ///< of parts; grows with each merge
  std::map<std::pair<unsigned, unsigned>, Versions> tried; ///< the versions of two parts that did not merge
};
} // namespace

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options) {
  return makePlan(graph, target, options, PlanRestrictions());
}

Plan tilewright::makePlan(const TensorGraph &graph, const Target &target, const PlanOptions &options,
                          const PlanRestrictions &restrictions) {
  if (graph.exprs().empty())
    return Plan{target.name, options.policy, options.numerics, {}, {}, {}, {}};
  Target machine = forNumerics(target, options.numerics);
  return GreedyPlanner(graph, machine, options, restrictions, *graph.exprs().front().op->getBlock()).run();
}

std::optional<double> tilewright::plannedSeconds(const TensorGraph &graph, const Target &target,
                                                 const PlanOptions &options) {
  Plan plan = makePlan(graph, target, options);
  if (llvm::any_of(plan.left, [&](const LeftOp &op) { return graph.exprs()[op.id].kind != ExprKind::movement; }))
    return std::nullopt;
  double seconds = 0;
  for (const KernelPlan &kernel : plan.kernels)
    for (const CostTerm &term : kernel.predicted)
      if (term.name == "seconds")
        seconds += term.value;
  return seconds;
}
