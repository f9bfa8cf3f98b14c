// What a planner decided, in the form in which it decides, and the Plan that says the same.
#ifndef TILEWRIGHT_PLAN_GRID_WRITEPLAN_H
#define TILEWRIGHT_PLAN_GRID_WRITEPLAN_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/PlannedGroup.h"
#include <map>

namespace tilewright {

/// Why an edge was not taken inside, and what would have to differ.
struct Declined {
  std::string reason, wouldChange;
};

/// What blocks keep of an input from one part to another of their kernel; see ResidentTile.
struct ResidentInput {
  unsigned writer, writerInput, reader, readerInput; ///< parts, and inputs of theirs
  int64_t bytes;
};

/// Why a reshape is left.
inline constexpr llvm::StringLiteral kBorderView = "a reshape at the border of a kernel: a view, nothing to compute";

struct Decisions {
  std::vector<std::optional<PlannedGroup>> parts;    ///< empty: merged into another, or dropped
  std::vector<int64_t> partOf;                      ///< by expression; -1: left
  std::vector<std::string> reasons;                 ///< why an expression is left, by expression
  std::vector<llvm::SmallVector<unsigned>> kernels; ///< the parts of each, in launch order
  std::vector<ResidentInput> kept;
  std::map<std::pair<unsigned, unsigned>, Declined> declined;    ///< by producing and consuming part
  std::map<std::pair<unsigned, unsigned>, std::string> barriers; ///< the same: why one of the grid stands between them
};

/// Of a kernel of so many parts: what several of them read, or hand on, is bound once.
int64_t countBindings(const TensorGraph &graph, const Decisions &decisions, llvm::ArrayRef<unsigned> parts,
                      const Target &target);

Plan writePlan(const TensorGraph &graph, const Target &target, llvm::StringRef policy, NumericsMode numerics,
               const Decisions &decisions);

} // namespace tilewright

#endif
