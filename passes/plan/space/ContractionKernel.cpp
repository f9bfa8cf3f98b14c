#include "passes/plan/space/ContractionKernel.h"

#include "passes/target/MicroKernelChoices.h"
#include "passes/target/Warpgroups.h"

using namespace mlir;
using namespace tilewright;

/// Returns how rhs is packed along K. Kernels that read operands in any order need no packing, so there an rhs of two
/// or four K is just a short one.
static std::optional<PackedK> packedKOf(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
                                        const Target &target) {
  if (target.traits.readsTransposed)
    return std::nullopt;
  const TensorExpr &expr = graph.exprs()[root.expr];
  const RootAccess &rhs = root.accesses[roles.rhsInput];
  return packedK(rhs.map, cast<RankedTensorType>(rhs.tensor.getType()).getShape(), roles.n, expr.domain,
                 [&](int64_t dim) { return llvm::is_contained(expr.reductions, dim); });
}

/// Returns true if a tile micro kernel can load its operands. Tiles of lhs are rows of memory in which K is contiguous.
/// The rhs is packed along K, either in memory or by the kernel, which packs it once for all of M.
static bool canLoadTiles(const TensorExpr &expr, const GroupRoot &root, const ContractionRoles &roles,
                         const std::optional<PackedK> &packed) {
  int64_t dim = packed ? packed->dim : expr.reductions.back();
  AffineMap lhs = root.accesses[roles.lhsInput].map;
  bool isPacked = packed && dim >= 0 && expr.domain[dim] > packed->depth;
  bool canPack = !packed && roles.m >= 0 && expr.reductions.size() == 1;
  return (isPacked || canPack) && lhs.getNumResults() > 0 && unitStrideDim(lhs.getResults().back()) == dim;
}

static std::optional<std::pair<ProductTypes, RhsLayout>> productOf(const TensorGraph &graph, const GroupRoot &root,
                                                                   const Target &target) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  if (expr.kind != ExprKind::contraction || !roles || !whyNoSumOfProducts(expr).empty())
    return std::nullopt;
  std::optional<PackedK> packed = packedKOf(graph, root, *roles, target);
  return std::pair(productTypes(expr, *roles),
                   RhsLayout{packed ? packed->depth : 1, canLoadTiles(expr, root, *roles, packed)});
}

std::vector<MicroKernel> tilewright::microKernelsFor(const TensorGraph &graph, const GroupRoot &root,
                                                     const Target &target, NumericsMode numerics) {
  auto product = productOf(graph, root, target);
  return product ? allMicroKernels(target, product->first, product->second, numerics)
                 : std::vector<MicroKernel>();
}

std::optional<MicroKernel> tilewright::microKernelFor(const TensorGraph &graph, const GroupRoot &root,
                                                      const Target &target, NumericsMode numerics) {
  auto product = productOf(graph, root, target);
  if (!product)
    return std::nullopt;
  return chooseMicroKernel(target, product->first, product->second, numerics);
}

std::optional<MicroKernel> tilewright::warpgroupKernelFor(const TensorGraph &graph, const GroupRoot &root,
                                                          const Target &target, NumericsMode numerics) {
  const TensorExpr &expr = graph.exprs()[root.expr];
  std::optional<ContractionRoles> roles = rolesOf(graph, root);
  if (expr.kind != ExprKind::contraction || !roles || !whyNoSumOfProducts(expr).empty())
    return std::nullopt;
  return warpgroupKernel(target, productTypes(expr, *roles), numerics);
}

/// Returns the dim that advances an innermost index by one, for a whole dim or for blocks of one; -1: none.
static int64_t blockedDim(AffineExpr index) {
  auto cut = dyn_cast<AffineBinaryOpExpr>(index);
  return unitStrideDim(cut && index.getKind() == AffineExprKind::Mod ? cut.getLHS() : index);
}

bool tilewright::liesAlongLanes(const TensorGraph &graph, const GroupRoot &root, const ContractionRoles &roles,
                                const Target &target) {
  AffineMap rhs = root.accesses[roles.rhsInput].map;
  unsigned behind = packedKOf(graph, root, roles, target) ? 2 : 1;
  return blockedDim(rhs.getResult(rhs.getNumResults() - behind)) == roles.n;
}

bool tilewright::lieAlongK(const TensorExpr &expr, AffineMap left, AffineMap right) {
  auto innermost = [](AffineMap map) { return map.getNumResults() == 0 ? -1 : unitStrideDim(map.getResults().back()); };
  int64_t dim = innermost(left);
  return llvm::is_contained(expr.reductions, dim) && innermost(right) == dim;
}
