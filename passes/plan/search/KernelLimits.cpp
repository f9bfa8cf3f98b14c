#include "passes/plan/search/KernelLimits.h"

#include "passes/graph/Eligibility.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

/// Upper bound on the estimated instructions of a kernel, and the estimate for a special function. The time of LLVM's
/// register allocation grows with their square: 1 s for 100 exponentials, 3 s for 200, 15 s for 400.
static constexpr int64_t kMostInstructions = 2048, kInstructionsOfSpecial = 16;

static int64_t instructionsOf(const TensorExpr &expr) {
  return expr.arithmetic() / std::max<int64_t>(1, expr.domainSize()) + kInstructionsOfSpecial * specialOps(expr);
}

std::optional<Declined> tilewright::whyTooLarge(const TensorGraph &graph, ArrayRef<unsigned> exprs) {
  int64_t instructions = 0;
  for (unsigned expr : exprs)
    instructions += instructionsOf(graph.exprs()[expr]);
  if (instructions <= kMostInstructions)
    return std::nullopt;
  return Declined{llvm::formatv("one kernel would have some {0} instructions: more than {1} take long to compile",
                                instructions, kMostInstructions),
                  "fewer ops in a row"};
}
