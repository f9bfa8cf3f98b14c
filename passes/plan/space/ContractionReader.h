// Reads a contraction of a planned group as the passes on programs will find it in its loop nest: the dims that are M
// and N, the size of a tile along each dim, and how the operands lie in memory.
#ifndef TILEWRIGHT_PLAN_SPACE_CONTRACTIONREADER_H
#define TILEWRIGHT_PLAN_SPACE_CONTRACTIONREADER_H

#include "passes/plan/ir/Plan.h"
#include "passes/plan/space/IterationSpace.h"

#include "llvm/Support/FormatVariadic.h"

namespace tilewright {

/// The members describe the contraction that was found last.
class ContractionReader {
public:
  ContractionReader(const Plan &plan, const TensorGraph &graph, const GroupPlan &group);

protected:
  /// Finds the contraction of an op. Declines with the reason if it has no loop nest, M or N in this group.
  OrDeclined<ContractionRoles> find(const OpPlan &op);

  const TensorExpr &expr() const { return graph.exprs()[root->expr]; }
  bool isReduced(int64_t dim) const { return llvm::is_contained(expr().reductions, dim); }
  const RootAccess &lhs() const { return root->accesses[lhsInput]; }
  const RootAccess &rhs() const { return root->accesses[1 - lhsInput]; }
  /// Returns the shape of the tensor, or of the buffer with its tile.
  llvm::SmallVector<int64_t> shapeOf(const RootAccess &access) const;
  static int64_t bytesOf(const RootAccess &access);

  const Plan &plan;
  const TensorGraph &graph;
  const GroupPlan &group;
  GroupChoice choice;
  std::vector<GroupRoot> roots;
  const GroupRoot *root = nullptr; ///< the contraction
  llvm::ArrayRef<int64_t> dims;    ///< dim of the space for each of its dims
  llvm::SmallVector<int64_t> sizes, extents, nest, reduced;
  int64_t m = -1, n = -1;
  unsigned lhsInput = 0;

private:
  void placeDims();
  bool findRoles(const ContractionRoles &roles);
};

/// Calls `visit` with each op of the plan that has a micro kernel and with the reader of its group, which `makeReader`
/// makes, until it returns a reason.
template <typename AnyPlan, typename MakeReader, typename Visit>
std::string forEachContraction(AnyPlan &plan, MakeReader makeReader, Visit visit) {
  for (auto &kernel : plan.kernels)
    for (auto [number, group] : llvm::enumerate(kernel.groups)) {
      if (llvm::all_of(group.ops, [](const OpPlan &op) { return op.microKernel.empty(); }))
        continue;
      auto reader = makeReader(kernel, group);
      for (auto &op : group.ops)
        if (!op.microKernel.empty())
          if (std::string why = visit(op, reader); !why.empty())
            return llvm::formatv("kernel '{0}' group {1}: op {2}: {3}", kernel.name, number, op.id, why);
    }
  return "";
}

} // namespace tilewright

#endif
