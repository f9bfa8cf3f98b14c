#include "passes/plan/space/ContractionReader.h"

#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;

ContractionReader::ContractionReader(const Plan &plan, const TensorGraph &graph, const GroupPlan &group)
    : plan(plan), graph(graph), group(group), choice(choiceOf(plan, graph, group)),
      roots(plannedRoots(graph, choice, group)) {}

OrDeclined<ContractionRoles> ContractionReader::find(const OpPlan &op) {
  auto decline = [](StringRef why) { return Declined{why.str(), "other tiles, or no micro kernel"}; };
  auto found = llvm::find_if(roots, [&](const GroupRoot &root) { return root.expr == op.id; });
  if (found == roots.end() || found->accesses.size() != 2)
    return decline("it is not a contraction of two tensors with a loop nest of its own");
  root = &*found;
  dims = op.dims;
  placeDims();
  std::optional<ContractionRoles> roles = rolesOf(graph, *root);
  if (!roles)
    return decline("both operands, or none, change along the innermost dim of the result");
  if (reduced.empty())
    return decline("none of its reduced dims is a dim of the space");
  if (!findRoles(*roles))
    return decline("no dim of its tile is that of one operand only, which N has to be");
  return *roles;
}

/// Finds the dims of the loop nest, in its order, with their tile sizes and extents.
void ContractionReader::placeDims() {
  sizes.assign(dims.size(), 1);
  extents.assign(dims.size(), 1);
  nest.clear();
  reduced.clear();
  for (auto [dim, place] : llvm::enumerate(dims)) {
    if (place < 0)
      continue;
    sizes[dim] = group.tiles[place];
    extents[dim] = group.extents[place];
    nest.push_back(dim);
  }
  llvm::sort(nest, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
  llvm::copy_if(nest, std::back_inserter(reduced), [&](int64_t dim) { return isReduced(dim); });
}

/// Finds M and N, and the operand that does not vary along N.
bool ContractionReader::findRoles(const ContractionRoles &roles) {
  n = dims[roles.n] >= 0 ? roles.n : -1;
  auto vector = llvm::find(dims, group.vector);
  if (n < 0 && group.vector >= 0 && vector != dims.end())
    n = vector - dims.begin();
  for (int64_t dim : llvm::reverse(nest))
    if (n < 0 && sizes[dim] > 1)
      n = dim;
  if (n < 0 || isReduced(n))
    return false;
  bool isFirst = root->accesses[0].map.isFunctionOfDim(n);
  if (isFirst == root->accesses[1].map.isFunctionOfDim(n))
    return false;
  lhsInput = isFirst ? 1 : 0;
  m = -1;
  for (int64_t dim : nest)
    if (!isReduced(dim) && dim != n && lhs().map.isFunctionOfDim(dim) && !rhs().map.isFunctionOfDim(dim) &&
        (m < 0 || sizes[dim] >= sizes[m]))
      m = dim;
  return true;
}

SmallVector<int64_t> ContractionReader::shapeOf(const RootAccess &access) const {
  if (access.producer < 0)
    return llvm::to_vector(cast<RankedTensorType>(access.tensor.getType()).getShape());
  ArrayRef<int64_t> places = group.op(access.producer).dims;
  AffineMap written = graph.exprs()[access.producer].results[access.result];
  return llvm::map_to_vector(written.getResults(), [&](AffineExpr index) -> int64_t {
    int64_t dim = pureDim(index);
    return dim < 0 || places[dim] < 0 ? 1 : group.tiles[places[dim]];
  });
}

int64_t ContractionReader::bytesOf(const RootAccess &access) {
  return tile::elementBytes(cast<RankedTensorType>(access.tensor.getType()).getElementType());
}
