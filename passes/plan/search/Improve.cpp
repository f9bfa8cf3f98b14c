#include "passes/plan/search/Improve.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace tilewright;

/// Two times differ if they do so by more than this part of the longer one. Otherwise bytes decide, then kernels.
static constexpr double kTie = 1e-5;
/// Number of merges that the search looks ahead.
static constexpr unsigned kMostAhead = 3;

namespace {
/// The saving of a change of a grouping; negative numbers are losses.
struct Saving {
  double seconds = 0, bytes = 0;
  int64_t kernels = 0;
  double involved = 0; ///< seconds of the groups that the change replaces

  void remove(const CostedGroup &group, double perKernel) { add(group, perKernel, 1); }
  void make(const CostedGroup &group, double perKernel) { add(group, perKernel, -1); }

  Saving &operator+=(const Saving &other) {
    seconds += other.seconds;
    bytes += other.bytes;
    kernels += other.kernels;
    involved += other.involved;
    return *this;
  }
  bool isGain() const { return isMoreThan({}); }
  bool isMoreThan(const Saving &other) const {
    if (std::abs(seconds - other.seconds) > kTie * std::max(involved, other.involved))
      return seconds > other.seconds;
    return std::tie(bytes, kernels) > std::tie(other.bytes, other.kernels);
  }

private:
  void add(const CostedGroup &group, double perKernel, int sign) {
    seconds += sign * (group.isView ? 0 : group.seconds + perKernel);
    bytes += sign * group.bytes;
    kernels += group.isView ? 0 : sign;
    involved += sign > 0 ? group.seconds : 0;
  }
};

using Names = SmallVector<unsigned, 4>;

/// A group cut into pieces that run in this order.
using Pieces = SmallVector<const CostedGroup *, 2>;

class Improver {
public:
  Improver(Grouping &state, const SearchLimits &limits)
      : state(state), space(state.searched()), limits(limits), dependences(space.dependences) {}

  void run() {
    joinViews();
    sweep([&](unsigned name) { return mergeBest(name); });
    do
      sweep([&](unsigned name) { return cutBest(name) || mergeBest(name); });
    while (sweep([&](unsigned name) { return mergeAhead(name); }));
  }

private:
  bool mayPlan() const { return space.costs.numPlanned() < limits.mostPlanned; }

  /// Applies a step to every group until no group changes. Returns true if any has.
  bool sweep(llvm::function_ref<bool(unsigned)> step) {
    bool anyChange = false;
    for (bool changed = true; changed && mayPlan();) {
      changed = false;
      for (unsigned name : state.inOrder())
        while (mayPlan() && state.has(name) && step(name))
          changed = anyChange = true;
    }
    return anyChange;
  }

  /// Merges reshapes that follow each other, which cost nothing, so that they are one step between other groups.
  void joinViews() {
    for (unsigned name : state.inOrder())
      for (bool merged = true; merged && state.has(name) && state.group(name).isView;) {
        merged = false;
        for (unsigned reader : state.readersOf(name))
          if (state.group(reader).isView && state.canMerge({name, reader})) {
            name = state.merge({name, reader});
            merged = true;
            break;
          }
      }
  }

  //===--------------------------------------------------------------------===//
  // Merging
  //===--------------------------------------------------------------------===//

  /// Returns the sets of groups that may merge with this one: each neighbour, one behind reshapes, and all readers.
  SmallVector<Names> partnersOf(const Grouping &grouping, unsigned name) const {
    SmallVector<Names> sets;
    for (unsigned other : grouping.neighboursOf(name)) {
      sets.push_back({name, other});
      if (grouping.group(other).isView && !grouping.group(name).isView)
        for (unsigned behind : grouping.neighboursOf(other))
          if (behind != name)
            sets.push_back({name, other, behind});
    }
    Names fan(grouping.readersOf(name));
    fan.insert(fan.begin(), name);
    if (fan.size() > 2)
      sets.push_back(std::move(fan));
    return sets;
  }

  Saving savingOf(const Grouping &grouping, const Names &names, const CostedGroup &merged) const {
    Saving saving;
    for (unsigned name : names)
      saving.remove(grouping.group(name), limits.secondsPerKernel);
    saving.make(merged, limits.secondsPerKernel);
    return saving;
  }

  /// Returns the merge of this group that saves most, even if that is less than nothing, or an empty set.
  std::pair<Names, Saving> bestMerge(const Grouping &grouping, unsigned name) const {
    Names best;
    Saving most;
    for (Names &names : partnersOf(grouping, name)) {
      if (!mayPlan() || !grouping.canMerge(names))
        continue;
      const CostedGroup &merged = grouping.merged(names);
      if (!merged.isPossible())
        continue;
      Saving saving = savingOf(grouping, names, merged);
      if (best.empty() || saving.isMoreThan(most)) {
        most = saving;
        best = std::move(names);
      }
    }
    return {best, most};
  }

  bool mergeBest(unsigned name) {
    auto [names, saving] = bestMerge(state, name);
    if (names.empty() || !saving.isGain())
      return false;
    state.merge(names);
    return true;
  }

  /// Merges the group with a neighbour although that alone does not pay, and the result with further groups until
  /// everything together does.
  bool mergeAhead(unsigned name) {
    for (const Names &names : partnersOf(state, name)) {
      if (!mayPlan() || !state.canMerge(names))
        continue;
      Grouping trial = state;
      Saving all = savingOf(trial, names, trial.merged(names));
      unsigned merged = trial.merge(names);
      for (unsigned ahead = 1; ahead < kMostAhead; ++ahead) {
        auto [more, saving] = bestMerge(trial, merged);
        if (more.empty())
          break;
        all += saving;
        merged = trial.merge(more);
        if (!all.isGain())
          continue;
        state = std::move(trial);
        return true;
      }
    }
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Cutting and moving
  //===--------------------------------------------------------------------===//

  /// Returns the groups of these expressions: one, or one per component if one is impossible.
  Pieces piecesOf(const ExprSet &set) const {
    const CostedGroup &whole = space.costs.of(set);
    if (whole.isPossible())
      return {&whole};
    Pieces pieces;
    ExprSet rest = set;
    for (unsigned expr : whole.exprs) {
      if (!rest.contains(expr))
        continue;
      ExprSet component(space.graph.exprs().size());
      SmallVector<unsigned> stack = {expr};
      while (!stack.empty()) {
        unsigned next = stack.pop_back_val();
        if (!rest.contains(next))
          continue;
        rest.erase(next);
        component.insert(next);
        llvm::append_range(stack, space.readersOf(next));
        llvm::append_range(stack, space.producersOf(next));
      }
      pieces.push_back(&space.costs.of(component));
    }
    return pieces;
  }

  /// Calls `use` with each way to cut a group in two: in front of an expression and all that depends on it, or behind an
  /// expression and all that it depends on.
  void forEachCut(const CostedGroup &group,
                  llvm::function_ref<void(const ExprSet &front, const ExprSet &back)> use) const {
    std::vector<ExprSet> seen;
    for (unsigned expr : group.exprs)
      for (bool behind : {true, false}) {
        ExprSet back(space.graph.exprs().size());
        for (unsigned other : group.exprs) {
          unsigned from = dependences.nodeOf(expr), to = dependences.nodeOf(other);
          if (behind ? other == expr || dependences.reaches(from, to)
                     : other != expr && !dependences.reaches(to, from))
            back.insert(other);
        }
        ExprSet front = group.set - back;
        if (front.empty() || back.empty() || llvm::is_contained(seen, back))
          continue;
        seen.push_back(back);
        use(front, back);
      }
  }

  static bool arePossible(const Pieces &pieces) {
    return llvm::all_of(pieces, [](const CostedGroup *piece) { return piece->isPossible(); });
  }

  /// Cuts the group, or moves a part of it to another group, in the way that saves most.
  bool cutBest(unsigned name) {
    const CostedGroup &group = state.group(name);
    if (group.exprs.size() < 2)
      return false;
    std::optional<Grouping> best;
    Saving most;
    auto consider = [&](Grouping trial, const Saving &saving) {
      if (saving.isGain() && (!best || saving.isMoreThan(most))) {
        best = std::move(trial);
        most = saving;
      }
    };
    considerDissolving(name, consider);
    forEachCut(group, [&](const ExprSet &front, const ExprSet &back) {
      if (!mayPlan())
        return;
      Pieces pieces = piecesOf(front), others = piecesOf(back);
      llvm::append_range(pieces, others);
      if (!arePossible(pieces))
        return;
      Saving saving;
      saving.remove(group, limits.secondsPerKernel);
      for (const CostedGroup *piece : pieces)
        saving.make(*piece, limits.secondsPerKernel);
      Grouping trial = state;
      trial.split(name, pieces);
      if (saving.isGain())
        consider(trial, saving);
      for (const CostedGroup *piece : pieces)
        considerMoves(trial, *piece, group, saving, consider);
    });
    if (!best)
      return false;
    state = std::move(*best);
    return true;
  }

  /// Considers a kernel for each expression of a group, so that no fusion is kept that is slower than none.
  template <typename Consider> void considerDissolving(unsigned name, Consider consider) const {
    Saving saving;
    saving.remove(state.group(name), limits.secondsPerKernel);
    Pieces pieces;
    for (unsigned expr : state.group(name).exprs) {
      pieces.push_back(&space.alone(expr));
      saving.make(*pieces.back(), limits.secondsPerKernel);
    }
    if (!saving.isGain())
      return;
    Grouping trial = state;
    trial.split(name, pieces);
    consider(std::move(trial), saving);
  }

  /// Considers merging a piece with groups other than the pieces of the group that it was cut from.
  template <typename Consider>
  void considerMoves(const Grouping &cut, const CostedGroup &piece, const CostedGroup &from, const Saving &before,
                     Consider consider) const {
    unsigned name = cut.nameOf(piece.exprs.front());
    for (unsigned other : cut.neighboursOf(name)) {
      Names names = {name, other};
      if (!mayPlan() || from.set.contains(cut.group(other).exprs.front()) || !cut.canMerge(names))
        continue;
      const CostedGroup &merged = cut.merged(names);
      if (!merged.isPossible())
        continue;
      Saving saving = savingOf(cut, names, merged);
      saving += before;
      if (!saving.isGain())
        continue;
      Grouping trial = cut;
      trial.merge(names);
      consider(std::move(trial), saving);
    }
  }

  Grouping &state;
  SearchSpace &space;
  const SearchLimits &limits;
  const Dependences &dependences;
};
} // namespace

Grouping tilewright::improve(Grouping grouping, const SearchLimits &limits) {
  Improver(grouping, limits).run();
  return grouping;
}
