#include "passes/plan/tiling/gpu/SwizzledOperands.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/space/OpTilings.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/plan/tiling/gpu/PlannedGemms.h"
#include "passes/target/Warpgroups.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

std::vector<LayoutStep> SwizzledLayout::layout() const {
  std::vector<int64_t> order;
  for (int64_t dim = 0; dim < static_cast<int64_t>(padded.size()); ++dim)
    if (dim != nDim && dim != kDim)
      order.push_back(dim);
  order.insert(order.end(), {nDim, kDim});
  using tile::LayoutKind;
  return {{LayoutKind::pad, padded},
          {LayoutKind::permute, order},
          {LayoutKind::split, {shape.lines, padded[kDim] / shape.step, shape.step}},
          {LayoutKind::permute, {1, 0, 2}},
          {LayoutKind::swizzle, {atom}}};
}

namespace {
/// A contraction of a plan with the tiling of its block.
struct PlannedProduct {
  GroupRoot root;
  ContractionRoles roles;
  MicroKernel kernel;
  GemmTiling tiling;
  std::vector<int64_t> tile; ///< tile of its domain
  int64_t k = -1;            ///< the only reduced dim of more than one point; -1: none, or several
};
} // namespace

static std::optional<PlannedProduct> productOf(const TensorGraph &graph, const Plan &plan, const KernelPlan &planned,
                                               const GroupPlan &group, const OpPlan &op, const Target &target) {
  std::vector<GroupRoot> roots = collectRoots(graph, choiceOf(plan, graph, group));
  auto root = llvm::find_if(roots, [&](const GroupRoot &root) { return root.expr == op.id; });
  const TensorExpr &expr = graph.exprs()[op.id];
  if (root == roots.end() || root->accesses.size() != 2)
    return std::nullopt;
  std::optional<ContractionRoles> roles = rolesOf(graph, *root);
  if (!roles)
    return std::nullopt;
  std::optional<MicroKernel> kernel =
      blockMicroKernel(target, productTypes(expr, *roles), op.microKernel, {}, plan.numerics);
  if (!kernel || !isOfWarpgroup(*kernel))
    return std::nullopt;
  PlannedProduct product{*root, *roles, *kernel, {}, blockTiling(group.tiles, group.grid, op.dims).sizes};
  int64_t loops = 0;
  for (int64_t dim : expr.reductions)
    if (expr.domain[dim] > 1)
      product.k = ++loops == 1 ? dim : -1;
  std::optional<GemmTiling> tiling = plannedTiling(plan, graph, planned, group, op, target);
  if (!tiling)
    return std::nullopt;
  product.tiling = *tiling;
  return product;
}

/// Returns the positions of the two dims in the map. Returns nothing unless each is one index and all other indices are
/// constant 0.
static std::optional<std::pair<int64_t, int64_t>> positionsOf(AffineMap map, int64_t n, int64_t k) {
  int64_t nAt = -1, kAt = -1;
  for (auto [position, index] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (dim && dim.getPosition() == n && nAt < 0)
      nAt = position;
    else if (dim && dim.getPosition() == k && kAt < 0)
      kAt = position;
    else if (auto constant = dyn_cast<AffineConstantExpr>(index); !constant || constant.getValue() != 0)
      return std::nullopt;
  }
  if (nAt < 0 || kAt < 0)
    return std::nullopt;
  return std::pair(nAt, kAt);
}

/// Returns why the operand cannot be read from a swizzled layout, or an empty string.
static std::string whyNotRead(const TensorGraph &graph, const GroupChoice &choice, const PlannedProduct &product) {
  if (product.kernel.roundsToTf32)
    return "its operands are rounded to tf32 by the threads that copy them";
  const RootAccess &access = product.root.accesses[product.roles.rhsInput];
  if (access.producer >= 0 || constantElement(access.tensor))
    return "its rhs is not a tensor in memory";
  int64_t reads = 0;
  for (const GroupRoot &root : collectRoots(graph, choice))
    reads += llvm::count_if(root.accesses, [&](const RootAccess &other) { return other.tensor == access.tensor; });
  if (reads > 1)
    return "its kernel also reads rhs in another way";
  for (auto [dim, size] : llvm::enumerate(product.tile)) {
    int64_t own = static_cast<int64_t>(dim);
    if (size > 1 && own != product.roles.m && own != product.roles.n && own != product.k)
      return "its steps along K are in more than one loop";
  }
  if (product.k < 0 || access.guard != IntegerSet() || !positionsOf(access.map, product.roles.n, product.k))
    return "its rhs is not read as a matrix of N by K";
  return "";
}

std::optional<SwizzledLayout> tilewright::possibleSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                                 const KernelPlan &kernel, const OpPlan &contraction,
                                                                 const Target &target, std::string &why) {
  const GroupPlan &group = kernel.groups.front();
  auto contractions = llvm::count_if(group.ops, [](const OpPlan &op) { return !op.microKernel.empty(); });
  if (kernel.groups.size() > 1 || contractions > 1) {
    why = "the kernel has other phases or contractions, during which threads start its copies";
    return std::nullopt;
  }
  std::optional<PlannedProduct> product = productOf(graph, plan, kernel, group, contraction, target);
  if (!product) {
    why = "no warpgroup micro kernel computes it";
    return std::nullopt;
  }
  GroupChoice choice = choiceOf(plan, graph, group);
  why = whyNotRead(graph, choice, *product);
  const GemmTiling &tiling = product->tiling;
  int64_t n = product->roles.n, extent = graph.exprs()[contraction.id].domain[n], size = product->tile[n];
  if (why.empty() && size < extent && size % kSwizzleLines != 0)
    why = llvm::formatv("tiles with N = {0} do not begin at multiples of the {1} lines of a swizzle", size,
                        kSwizzleLines);
  if (!why.empty())
    return std::nullopt;
  const RootAccess &access = product->root.accesses[product->roles.rhsInput];
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t bytes = tile::elementBytes(type.getElementType()), k = graph.exprs()[contraction.id].domain[product->k];
  SwizzledLayout swizzled;
  swizzled.op = contraction.id;
  swizzled.root = product->root;
  swizzled.operand = product->roles.rhsInput;
  std::vector<Value> inputs = groupInputs(graph, choice);
  swizzled.input = "in" + std::to_string(llvm::find(inputs, access.tensor) - inputs.begin());
  std::tie(swizzled.nDim, swizzled.kDim) = *positionsOf(access.map, n, product->k);
  // A tile has as many lines as its slot, starting at its first line.
  int64_t across = llvm::divideCeil(extent, size), steps = llvm::divideCeil(k, tiling.step), tiles = group.numTiles();
  swizzled.shape = {(across - 1) * size + tiling.n, tiling.step};
  swizzled.padded = type.getShape().vec();
  swizzled.padded[swizzled.nDim] = swizzled.shape.lines;
  swizzled.padded[swizzled.kDim] = steps * tiling.step;
  swizzled.atom = kSwizzleAtomBytes / bytes;
  CopiedOperand copied{tiles, steps, copyBytes(graph, product->root, swizzled.operand),
                       static_cast<double>(tiles / across * extent * k * bytes)};
  swizzled.gain = bulkCopyGain(copied, tiling, group.threads, target);
  return swizzled;
}

static TensorPlan *inputNamed(GroupPlan &group, StringRef name) {
  auto found = llvm::find_if(group.tensors, [&](const TensorPlan &tensor) { return tensor.tensor == name; });
  return found == group.tensors.end() ? nullptr : &*found;
}

/// Returns the swizzled layout of a weight if it pays to store the weight that way.
static std::optional<SwizzledLayout> bestSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                        const KernelPlan &kernel, const OpPlan &op,
                                                        const Target &target, std::string &why) {
  std::optional<SwizzledLayout> swizzled = possibleSwizzledLayout(graph, plan, kernel, op, target, why);
  if (!swizzled)
    return std::nullopt;
  Value weight = swizzled->root.accesses[swizzled->operand].tensor;
  if (!isKnownAtLoad(graph, computedAtLoad(graph), weight) || !isMadeOfParameters(weight))
    why = "its rhs is no weight of a parameter file";
  else if (!swizzled->gain.pays())
    why = llvm::formatv("it would save {0:F3} us of copy instructions, but padded tiles take {1:F3} us longer to "
                        "read",
                        swizzled->gain.savedSeconds * 1e6, swizzled->gain.addedSeconds * 1e6);
  else
    return swizzled;
  return std::nullopt;
}

void tilewright::chooseSwizzledOperands(Plan &plan, const TensorGraph &graph, const Target &target) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &group : kernel.groups)
      for (OpPlan &op : group.ops) {
        std::string why;
        std::optional<SwizzledLayout> swizzled;
        if (namesWarpgroup(op.microKernel))
          swizzled = bestSwizzledLayout(graph, plan, kernel, op, target, why);
        if (TensorPlan *input = swizzled ? inputNamed(group, swizzled->input) : nullptr) {
          input->layout = swizzled->layout();
          op.gemm->rhsCopy = 0;
        }
      }
}

std::vector<PlainCopies> tilewright::plainCopies(const Plan &plan, const TensorGraph &graph, const Target &target) {
  std::vector<PlainCopies> plain;
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &group : kernel.groups)
      for (const OpPlan &op : group.ops) {
        std::string why;
        if (!namesWarpgroup(op.microKernel) || group.hasLayout())
          continue;
        if (bestSwizzledLayout(graph, plan, kernel, op, target, why))
          why = "the plan says so";
        plain.push_back({op.id, why});
      }
  return plain;
}

std::string tilewright::whyNotLaidOut(const Plan &plan, const TensorGraph &graph, const Target &target) {
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &group : kernel.groups)
      for (const TensorPlan &tensor : group.tensors) {
        if (tensor.layout.empty())
          continue;
        std::string why = "no contraction of warpgroups reads it";
        bool fits = false;
        for (const OpPlan &op : group.ops) {
          if (!namesWarpgroup(op.microKernel))
            continue;
          std::optional<SwizzledLayout> swizzled = possibleSwizzledLayout(graph, plan, kernel, op, target, why);
          fits |= swizzled && swizzled->input == tensor.tensor && swizzled->layout() == tensor.layout;
          if (swizzled)
            why = "it is not the swizzled layout that its tiles need";
        }
        if (!fits)
          return "kernel '" + kernel.name + "' cannot read " + tensor.tensor + " in the layout that is given: " + why;
      }
  return "";
}
