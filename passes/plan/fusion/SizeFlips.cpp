#include "passes/plan/fusion/SizeFlips.h"

#include "passes/graph/Eligibility.h"
#include "passes/plan/fusion/Outline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <regex>

using namespace mlir;
using namespace tilewright;

/// Sizes are searched up to this factor from the one that there is.
static constexpr int64_t kFarthest = 16;
/// A size is found to this part of it.
static constexpr int64_t kPrecision = 16;
static constexpr int64_t kSmallestDim = 16;

/// Returns the text with another size in place of one, in all types of tensors and in the shapes of reshapes.
static std::string withSize(const std::string &text, int64_t size, int64_t other) {
  static const std::regex sized("tensor<[^>]*>|output_shape \\[[^\\]]*\\]");
  std::regex dim("([<x\\[ ])" + std::to_string(size) + "(?=[x,\\]])");
  std::string result;
  auto at = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), sized), end; match != end; ++match) {
    result.append(at, (*match)[0].first);
    result += std::regex_replace(match->str(), dim, "$01" + std::to_string(other));
    at = (*match)[0].second;
  }
  return result.append(at, text.cend());
}

namespace {
/// The choice between one kernel for some ops and one for each piece of them, at any size of a dim.
class Choice {
public:
  Choice(const GroupProblem &problem, std::string text, std::vector<SmallVector<unsigned>> pieces, MLIRContext *context)
      : problem(problem), text(std::move(text)), pieces(std::move(pieces)), context(context) {}

  /// Returns true if one kernel takes less time, or nothing if the ops cannot have this size.
  std::optional<bool> isOneKernel(int64_t size, int64_t other) const {
    ScopedDiagnosticHandler quiet(context, [](Diagnostic &) { return success(); });
    auto module = parseSourceString<ModuleOp>(size == other ? text : withSize(text, size, other), context);
    if (!module)
      return std::nullopt;
    Block &body = (*module->getOps<func::FuncOp>().begin()).getBody().front();
    TensorGraph graph = TensorGraph::build(body);
    GroupProblem own(graph, problem.target, problem.numerics, problem.memo());
    SmallVector<unsigned> all;
    double apart = 0;
    for (const SmallVector<unsigned> &piece : pieces) {
      if (piece.back() >= graph.exprs().size())
        return std::nullopt;
      llvm::append_range(all, piece);
      if (llvm::all_of(piece, [&](unsigned expr) { return isView(graph.exprs()[expr]); }))
        continue;
      EqualGroup group = planEqualGroup(own, piece);
      if (!group.planned)
        return std::nullopt;
      apart += group.planned->predicted.seconds;
    }
    llvm::sort(all);
    EqualGroup whole = planEqualGroup(own, all);
    return whole.planned && whole.planned->predicted.seconds < apart;
  }

  /// Returns the size nearest to this one in a direction for which the choice is another one, or 0.
  int64_t flip(int64_t size, bool upwards) const {
    std::optional<bool> now = isOneKernel(size, size);
    int64_t same = size;
    for (int64_t factor = 2; now && factor <= kFarthest; factor *= 2) {
      int64_t next = upwards ? size * factor : size / factor;
      std::optional<bool> there = next > 0 ? isOneKernel(size, next) : std::nullopt;
      if (!there)
        return 0;
      if (*there != *now)
        return bisect(size, same, next, *now);
      same = next;
    }
    return 0;
  }

private:
  int64_t bisect(int64_t size, int64_t same, int64_t other, bool now) const {
    while (std::abs(other - same) > std::max<int64_t>(1, std::min(same, other) / kPrecision)) {
      int64_t middle = (same + other) / 2;
      std::optional<bool> there = isOneKernel(size, middle);
      if (!there)
        break;
      (*there == now ? same : other) = middle;
    }
    return other;
  }

  const GroupProblem &problem;
  const std::string text;
  const std::vector<SmallVector<unsigned>> pieces; ///< of the function's expressions
  MLIRContext *context;
};
} // namespace

std::string SizeFlips::nearest(ArrayRef<SmallVector<unsigned>> pieces, Value tensor) {
  SmallVector<unsigned> all;
  for (ArrayRef<unsigned> piece : pieces)
    llvm::append_range(all, piece);
  llvm::sort(all);
  std::string text = outlinedText(problem.graph, all), key = text;
  std::vector<SmallVector<unsigned>> numbered;
  for (ArrayRef<unsigned> piece : pieces) {
    SmallVector<unsigned> &own = numbered.emplace_back();
    for (unsigned expr : piece)
      own.push_back(llvm::find(all, expr) - all.begin());
    key += llvm::formatv("|{0:$[,]}", llvm::make_range(own.begin(), own.end()));
  }
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  key += llvm::formatv("|{0:$[,]}", llvm::make_range(shape.begin(), shape.end()));
  auto [entry, isNew] = known.try_emplace(key);
  if (!isNew)
    return entry->second;
  Choice choice(problem, std::move(text), std::move(numbered), problem.graph.exprs().front().op->getContext());
  double nearest = kFarthest + 1;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size < kSmallestDim || llvm::is_contained(shape.take_front(dim), size))
      continue;
    for (bool upwards : {false, true})
      if (int64_t other = choice.flip(size, upwards); other > 0) {
        double factor = upwards ? static_cast<double>(other) / size : static_cast<double>(size) / other;
        if (factor >= nearest)
          continue;
        nearest = factor;
        entry->second = llvm::formatv("dims of at {0} {1} in place of {2}", upwards ? "least" : "most", other, size);
      }
  }
  return entry->second;
}
