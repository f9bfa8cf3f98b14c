// Merges fusion groups along the edges of the graph, with all their readers at once, and with others that read the same
// tensor. Groups merge if one iteration space serves them and one kernel is not predicted to be clearly slower. The
// order of the merges is fixed, so plans are deterministic; a declined merge is tried again when a group has changed.
#include "passes/cost/Confidence.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/PlannerStep.h"
#include "passes/plan/search/KernelLimits.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Rounding error of two sums of the same seconds.
constexpr double kRounding = 1e-9;

class GroupGrower : PlannerStep {
public:
  GroupGrower(const FusionProblem &problem, PlanDraft &plan)
      : PlannerStep(problem, plan), versions(plan.decisions.parts.size()) {}

  /// Merges along edges, in an order that keeps early merges from preventing better ones. A contraction merges with its
  /// readers before its operands: its readers find a finished tile, whereas every tile of columns reads whole rows of
  /// an operand, so that a norm there may keep out the contraction's own bias.
  void mergeAlongEdges() {
    mergeAlong([&](unsigned producer, unsigned consumer) {
      const PlannedGroup &reader = *decisions.parts[consumer];
      return contracts(*decisions.parts[producer]) && !contracts(reader) && !repeatsElements(reader);
    });
    // A broadcast and a reshape that lay short rows out along a longer one are a single index or buffer to readers.
    mergeAlong([&](unsigned producer, unsigned consumer) { return laysOutRows({producer, consumer}); });
    // Broadcasts merge with their readers before their producers. With their readers they are an index; with a producer
    // such as the sum of a long row that fits no workgroup, they would be a tensor to write.
    mergeAlong([&](unsigned producer, unsigned) { return repeatsElements(*decisions.parts[producer]); });
    // Windows of an image merge with a contraction before the pad in front of them does: contractions can read through
    // windows, but not under a guard.
    mergeAlong([&](unsigned producer, unsigned consumer) {
      const PlannedGroup &reader = *decisions.parts[consumer];
      return movesUnguarded(*decisions.parts[producer]) && (contracts(reader) || movesUnguarded(reader));
    });
    // A pad that is read as a guard merges with its reader before it merges with what computes the image. On a GPU, all
    // nests read under guards.
    mergeAlong([&](unsigned producer, unsigned consumer) {
      return isPad(*decisions.parts[producer]) && isReadOnlyBy(producer, consumer) &&
             (target.traits.threadBlocks || contracts(*decisions.parts[consumer]));
    });
    mergeAlong([](unsigned, unsigned) { return true; });
  }

  /// Merges a group with all of its readers at once, if merging with a single one does not pay: while one reader is
  /// outside, the tensor must be written, over other dims than the pieces that readers take of it (as the results of a
  /// split do). Groups with contractions are excluded, because each reader and operand pays by itself.
  void mergeFans() {
    for (unsigned group = 0; group < decisions.parts.size(); ++group) {
      if (!decisions.parts[group])
        continue;
      llvm::SmallSetVector<unsigned, 4> fan;
      fan.insert(group);
      bool readElsewhere = false;
      for (unsigned expr : decisions.parts[group]->choice.exprs) {
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

  /// Merges independent groups that read the same tensor, so that it is read once (Souffle 5.1: spatial reuse).
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

  /// Returns false if this merge was declined and neither group has changed since.
  bool isNewPair(unsigned a, unsigned b) const {
    auto known = tried.find({a, b});
    return known == tried.end() || known->second.first != versions[a] || known->second.second != versions[b];
  }

  void decline(unsigned a, unsigned b, Declined why) {
    tried[{a, b}] = {versions[a], versions[b]};
    decisions.declined[{a, b}] = std::move(why);
  }

  bool tryMerge(unsigned a, unsigned b, Declined &why) { return tryMerge({a, b}, why); }

  /// Merges all groups into the first one. On failure sets `why` and changes nothing.
  bool tryMerge(ArrayRef<unsigned> groups, Declined &why) {
    unsigned a = groups.front();
    if (llvm::any_of(groups, [&](unsigned group) { return isApart(group); })) {
      why = {kUnfused.str(), "a fix for the pass that failed"};
      return false;
    }
    if (!llvm::all_of(groups.drop_front(), [&](unsigned b) { return partition.canMerge(groupOf(a), groupOf(b)); })) {
      why = {"another op depends on the producer's kernel and the consumer's kernel on it",
             "taking the ops between the two into the kernel"};
      return false;
    }
    SmallVector<unsigned> exprs;
    for (unsigned group : groups)
      llvm::append_range(exprs, decisions.parts[group]->choice.exprs);
    llvm::sort(exprs);
    if (std::optional<Declined> large = whyTooLarge(graph, exprs)) {
      why = *large;
      return false;
    }
    OrDeclined<PlannedGroup> merged = planGroup(this->groups, exprs);
    if (!merged) {
      why = merged.why();
      return false;
    }
    // Separate kernels are priced with the bytes of all of them as working set: each finds in the caches what the
    // others leave there.
    double both = 0, separate = 0, together = merged->predicted.seconds;
    for (unsigned group : groups)
      both += decisions.parts[group]->predicted.bytes;
    for (unsigned group : groups)
      separate += secondsOf(*decisions.parts[group], both);
    bool free = llvm::any_of(groups, [&](unsigned group) { return isFree(*decisions.parts[group]); });
    bool savesBytes = merged->predicted.bytes < both;
    double error = contracts(*merged) ? target.costs.confidence.contractions : errorOf(*merged);
    if (isFaster(separate, together, free ? kRounding : savesBytes ? error : 0) && !laysOutRows(groups)) {
      why = {"one kernel is predicted slower: " + microseconds(together) + " against " + microseconds(separate),
             "a launch that costs " + microseconds(together - separate) + " more"};
      return false;
    }
    merged->apartSeconds = apartSeconds(groups, both);
    for (unsigned group : groups.drop_front()) {
      partition.merge(groupOf(a), groupOf(group));
      for (unsigned expr : decisions.parts[group]->choice.exprs)
        decisions.partOf[expr] = a;
      decisions.parts[group].reset();
    }
    decisions.parts[a] = std::move(*merged);
    ++versions[a];
    return true;
  }

  /// Returns true for a group that only reads its source under a guard.
  bool isPad(const PlannedGroup &group) const {
    const TensorExpr &expr = graph.exprs()[group.choice.exprs.front()];
    return group.choice.exprs.size() == 1 && expr.kind == ExprKind::movement && expr.inputs.size() == 1 &&
           expr.inputs[0].guard != IntegerSet();
  }

  /// Returns true if no other group reads the results of a group.
  bool isReadOnlyBy(unsigned producer, unsigned consumer) const {
    return llvm::all_of(decisions.parts[producer]->choice.exprs, [&](unsigned expr) {
      return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
        int64_t reader = decisions.partOf[graph.edges()[edge].consumer];
        return reader == static_cast<int64_t>(producer) || reader == static_cast<int64_t>(consumer);
      });
    });
  }

  /// Returns true for a broadcast and a reshape of it, in this order.
  bool laysOutRows(ArrayRef<unsigned> groups) const {
    return groups.size() == 2 && repeatsElements(*decisions.parts[groups[0]]) && isFree(*decisions.parts[groups[1]]);
  }

  /// Returns the predicted seconds with a kernel of its own for each contraction, or 0 if there is one at most.
  double apartSeconds(ArrayRef<unsigned> groups, double bytes) const {
    double seconds = 0;
    int64_t contractions = 0;
    for (unsigned number : groups) {
      const PlannedGroup &group = *decisions.parts[number];
      contractions += group.apartSeconds > 0 ? 2 : contracts(group);
      seconds += group.apartSeconds > 0 ? group.apartSeconds : secondsOf(group, bytes);
    }
    return contractions > 1 ? seconds : 0;
  }

  struct Versions {
    unsigned first, second;
  };

  std::vector<unsigned> versions;                          ///< number of merges into each group
  std::map<std::pair<unsigned, unsigned>, Versions> tried; ///< versions of two groups when their merge was declined
};
} // namespace

PlanDraft tilewright::growGroups(const FusionProblem &problem, PlanDraft plan) {
  GroupGrower grower(problem, plan);
  grower.mergeAlongEdges();
  grower.mergeFans();
  grower.mergeSiblings();
  return plan;
}
