// Merges fusion groups along the edges of the graph, and those that read a tensor in common, as long as one iteration
// space serves both and one kernel is predicted to be no slower.
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// What contractions take is known better.
constexpr double kRoughnessOfContractions = 1.1;

/// Instructions that a merged kernel may have, about. LLVM allocates registers in a time that grows with their square:
/// 1 s for 100 exponentials, 3 s for 200, 15 s for 400.
constexpr int64_t kMostInstructions = 2048, kInstructionsOfSpecial = 16;

int64_t instructionsOf(const TensorExpr &expr) {
  return expr.arithmetic() / std::max<int64_t>(1, expr.domainSize()) + kInstructionsOfSpecial * specialOps(expr);
}

class GroupGrower : PlannerStep {
public:
  explicit GroupGrower(PlannerState &state) : PlannerStep(state), versions(state.decisions.parts.size()) {}

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

private:
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

  struct Versions {
    unsigned first, second;
  };

  static constexpr int64_t kBytesOfScalar = 8;

  std::vector<unsigned> versions;                          ///< of parts; grows with each merge
  std::map<std::pair<unsigned, unsigned>, Versions> tried; ///< the versions of two parts that did not merge
};
} // namespace

void tilewright::growGroups(PlannerState &state) {
  GroupGrower grower(state);
  grower.mergeAlongEdges();
  grower.mergeFans();
  grower.mergeSiblings();
}
