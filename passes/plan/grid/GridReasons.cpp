#include "passes/plan/grid/GridReasons.h"

#include "passes/plan/grid/KernelPhases.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Returns the reason why two groups could not be one group, without the reasons about kernels added later.
static std::string whyNotOnePart(const Declined &declined) {
  StringRef reason = declined.reason;
  return reason.take_front(reason.find("scope launch")).rtrim("; ").str();
}

/// Returns pairs of a producing group and a group that reads its results.
static SmallVector<std::pair<unsigned, unsigned>> edgesBetween(const GridContext &context, const KernelPair &pair) {
  SmallVector<std::pair<unsigned, unsigned>> edges;
  for (unsigned producer : pair.producers)
    for (unsigned reader : pair.readers)
      if (readsResultsOf(context.graph, context.part(reader).choice, context.part(producer).choice))
        edges.push_back({producer, reader});
  return edges;
}

SmallVector<unsigned> KernelPair::parts() const {
  SmallVector<unsigned> both(producers);
  llvm::append_range(both, readers);
  return both;
}

Declined tilewright::tooManyBindings(int64_t bindings, const Target &target) {
  return {llvm::formatv("one kernel at scope grid has {0} bindings; the target has {1}", bindings, target.maxBindings),
          "a target with more bindings"};
}

static std::string whyNotQuicker(const KernelPair &pair, const std::string &cut, const Target &target) {
  if (!cut.empty())
    return cut;
  double apart = pair.seconds * 1e6;
  if (pair.repeats)
    return llvm::formatv(
        "one kernel would have the same code twice, and is not predicted to take {0:f0}% less than the "
        "{1:f2} us of two",
        100 * target.costs.confidence.forms, apart);
  return llvm::formatv("in one kernel, whose blocks have one size, they are predicted slower than the {0:f2} us of two "
                       "kernels",
                       apart);
}

Declined tilewright::notQuicker(const GridContext &context, const KernelPair &pair, const Declined &why) {
  return {"scope launch and not grid: " + whyNotQuicker(pair, why.reason, context.target),
          context.allowed ? why.wouldChange : "scope grid allowed"};
}

void tilewright::sayApart(const GridContext &context, const KernelPair &pair, const Declined &why,
                          Decisions &decisions) {
  for (std::pair<unsigned, unsigned> edge : edgesBetween(context, pair)) {
    Declined &declined = decisions.declined[edge];
    // Next to a contraction, the reason against block scope is kept as well.
    bool keepsReason = context.contracts(edge.first) || context.contracts(edge.second);
    std::string inBlock = keepsReason ? whyNotOnePart(declined) : "";
    if (inBlock.empty())
      declined = why;
    else
      declined.reason = inBlock + "; " + why.reason;
  }
}

void tilewright::sayJoined(const GridContext &context, const KernelPair &pair, double seconds, Decisions &decisions) {
  for (std::pair<unsigned, unsigned> edge : edgesBetween(context, pair)) {
    std::string &reason = decisions.barriers[edge];
    reason = llvm::formatv(
        "one kernel with a barrier of the grid here is predicted to take {0:f2} us, two kernels {1:f2} us",
        seconds * 1e6, pair.seconds * 1e6);
    auto known = decisions.declined.find(edge);
    if (std::string inBlock = known == decisions.declined.end() ? "" : whyNotOnePart(known->second); !inBlock.empty())
      reason += "; in one block for both: " + inBlock;
  }
}

void tilewright::sayCut(ArrayRef<unsigned> pieces, double seconds, double whole, Decisions &decisions) {
  for (unsigned piece : pieces)
    decisions.barriers[{piece, pieces.back()}] =
        llvm::formatv("with a barrier of the grid here the kernel is predicted to take {0:f2} us, with one block for "
                      "both ends {1:f2} us",
                      seconds * 1e6, whole * 1e6);
}

void tilewright::sayRowsWhole(std::pair<unsigned, unsigned> edge, const Declined &why, Decisions &decisions) {
  bool inOneKernel = llvm::any_of(decisions.kernels, [&](ArrayRef<unsigned> parts) {
    return llvm::is_contained(parts, edge.first) && llvm::is_contained(parts, edge.second);
  });
  std::string &reason = inOneKernel ? decisions.barriers[edge] : decisions.declined[edge].reason;
  reason += (reason.empty() ? "" : "; ") + ("with rows that blocks share instead: " + why.reason);
}
