#include "passes/plan/tiling/gpu/SwizzledOperands.h"

#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Eligibility.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/tiling/gpu/CopyWidths.h"
#include "passes/target/AllowedProducts.h"
#include "passes/target/Warpgroups.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

std::vector<LayoutStep> SwizzledLayout::layout() const {
  std::vector<int64_t> order;
  for (int64_t dim = 0; dim < static_cast<int64_t>(padded.size()); ++dim)
    if (dim != laneDim && dim != kDim)
      order.push_back(dim);
  order.insert(order.end(), {laneDim, kDim});
  return {{"pad", padded},
          {"permute", order},
          {kSplitStep.str(), {shape.lines, padded[kDim] / shape.step, shape.step}},
          {"permute", {1, 0, 2}},
          {"swizzle", {atom}}};
}

namespace {
/// A contraction of a plan with the tiling of its block.
struct PlannedProduct {
  GroupRoot root;
  ContractionRoles roles;
  MicroKernel kernel;
  GemmTiling tiling;
  std::vector<int64_t> tile; ///< tile of its domain
  int64_t terms = -1;        ///< the only reduced dim of more than one point; -1: none, or several
};
} // namespace

static std::optional<PlannedProduct> productOf(const TensorGraph &graph, const Plan &plan, const GroupPlan &part,
                                               const OpPlan &op, const Target &target) {
  std::vector<GroupRoot> roots = collectRoots(graph, choiceOf(plan, graph, part));
  auto root = llvm::find_if(roots, [&](const GroupRoot &root) { return root.expr == op.id; });
  auto block = llvm::find_if(op.tilings, [](const LevelTiling &tiling) { return tiling.level == tile::Scope::block; });
  const TensorExpr &expr = graph.exprs()[op.id];
  if (root == roots.end() || root->accesses.size() != 2 || block == op.tilings.end() ||
      block->sizes.size() != expr.domain.size())
    return std::nullopt;
  std::optional<ContractionRoles> roles = rolesOf(graph, *root);
  if (!roles)
    return std::nullopt;
  std::optional<MicroKernel> kernel =
      blockMicroKernel(allowingNamed(target, op.microKernel), productTypes(expr, *roles), op.microKernel, {});
  if (!kernel || !isOfWarpgroup(*kernel))
    return std::nullopt;
  PlannedProduct product{*root, *roles, *kernel, {}, block->sizes};
  int64_t longest = 1;
  for (int64_t dim : expr.reductions) {
    longest = std::max(longest, expr.domain[dim]);
    if (expr.domain[dim] > 1)
      product.terms = product.terms < 0 ? dim : -1;
  }
  auto bytes = [&](unsigned input) {
    return tile::elementBytes(cast<RankedTensorType>(root->accesses[input].tensor.getType()).getElementType());
  };
  GemmTile tile{roles->row < 0 ? 1 : block->sizes[roles->row], block->sizes[roles->lane], longest,
                bytes(roles->rowInput), bytes(roles->laneInput)};
  std::optional<GemmTiling> tiling = chooseGemmTiling(tile, part.threads, *kernel, nullptr, kSlicesOf(op.microKernel));
  if (!tiling)
    return std::nullopt;
  product.tiling = *tiling;
  return product;
}

static int64_t tilesOf(const GroupPlan &part) {
  int64_t tiles = 1;
  for (int64_t dim : part.grid)
    tiles *= llvm::divideCeil(part.extents[dim], part.tiles[dim]);
  return tiles;
}

/// Returns the positions of the two dims in the map. Returns nothing unless each is one index and all other indices are
/// constant 0.
static std::optional<std::pair<int64_t, int64_t>> positionsOf(AffineMap map, int64_t lane, int64_t terms) {
  int64_t laneAt = -1, termsAt = -1;
  for (auto [position, index] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (dim && dim.getPosition() == lane && laneAt < 0)
      laneAt = position;
    else if (dim && dim.getPosition() == terms && termsAt < 0)
      termsAt = position;
    else if (auto constant = dyn_cast<AffineConstantExpr>(index); !constant || constant.getValue() != 0)
      return std::nullopt;
  }
  if (laneAt < 0 || termsAt < 0)
    return std::nullopt;
  return std::pair(laneAt, termsAt);
}

/// Returns why the operand cannot be read from a swizzled layout, or an empty string.
static std::string whyNotRead(const TensorGraph &graph, const GroupChoice &choice, const PlannedProduct &product) {
  if (roundsToTf32(product.kernel.name))
    return "factors are rounded to tf32 by who copies them";
  const RootAccess &access = product.root.accesses[product.roles.laneInput];
  if (access.producer >= 0 || constantElement(access.tensor))
    return "the operand along its lanes is no tensor of its own";
  int64_t reads = 0;
  for (const GroupRoot &root : collectRoots(graph, choice))
    reads += llvm::count_if(root.accesses, [&](const RootAccess &other) { return other.tensor == access.tensor; });
  if (reads > 1)
    return "its kernel reads the operand along its lanes in another way, too";
  for (auto [dim, size] : llvm::enumerate(product.tile)) {
    int64_t own = static_cast<int64_t>(dim);
    if (size > 1 && own != product.roles.row && own != product.roles.lane && own != product.terms)
      return "its steps are in more than one loop";
  }
  if (product.terms < 0 || access.guard != IntegerSet() || !positionsOf(access.map, product.roles.lane, product.terms))
    return "the operand along its lanes is not read as a matrix of lanes and terms";
  return "";
}

std::optional<SwizzledLayout> tilewright::possibleSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                                 const KernelPlan &kernel, const OpPlan &contraction,
                                                                 const Target &target, std::string &why) {
  const GroupPlan &part = kernel.parts.front();
  auto contractions = llvm::count_if(part.ops, [](const OpPlan &op) { return !op.microKernel.empty(); });
  if (kernel.parts.size() > 1 || contractions > 1) {
    why = "the kernel has other phases or contractions, during which threads begin its copies";
    return std::nullopt;
  }
  std::optional<PlannedProduct> product = productOf(graph, plan, part, contraction, target);
  if (!product) {
    why = "no micro kernel of warpgroups computes it";
    return std::nullopt;
  }
  GroupChoice choice = choiceOf(plan, graph, part);
  why = whyNotRead(graph, choice, *product);
  const GemmTiling &tiling = product->tiling;
  int64_t lane = product->roles.lane, extent = graph.exprs()[contraction.id].domain[lane], size = product->tile[lane];
  if (why.empty() && size < extent && size % kSwizzleLines != 0)
    why = llvm::formatv("tiles of {0} lanes begin inside the {1} lines of a swizzle", size, kSwizzleLines);
  if (!why.empty())
    return std::nullopt;
  const RootAccess &access = product->root.accesses[product->roles.laneInput];
  auto type = cast<RankedTensorType>(access.tensor.getType());
  int64_t bytes = tile::elementBytes(type.getElementType()),
          terms = graph.exprs()[contraction.id].domain[product->terms];
  SwizzledLayout image;
  image.op = contraction.id;
  image.root = product->root;
  image.operand = product->roles.laneInput;
  std::vector<Value> inputs = groupInputs(graph, choice);
  image.input = "in" + std::to_string(llvm::find(inputs, access.tensor) - inputs.begin());
  std::tie(image.laneDim, image.kDim) = *positionsOf(access.map, lane, product->terms);
  // A tile has as many lines as its slot, starting at its first line.
  int64_t across = llvm::divideCeil(extent, size), steps = llvm::divideCeil(terms, tiling.step), tiles = tilesOf(part);
  image.shape = {(across - 1) * size + tiling.lanes, tiling.step};
  image.padded = type.getShape().vec();
  image.padded[image.laneDim] = image.shape.lines;
  image.padded[image.kDim] = steps * tiling.step;
  image.atom = kSwizzleAtomBytes / bytes;
  image.copyBytes = tiling.laneSlotBytes;
  CopiedOperand copied{tiles, steps, copyBytes(graph, product->root, image.operand),
                       static_cast<double>(tiles / across * extent * terms * bytes)};
  image.gain = bulkCopyGain(copied, tiling, part.threads, target);
  return image;
}

static TensorPlan *inputNamed(GroupPlan &part, StringRef name) {
  auto found = llvm::find_if(part.tensors, [&](const TensorPlan &tensor) { return tensor.tensor == name; });
  return found == part.tensors.end() ? nullptr : &*found;
}

static std::string copiesWith(const TensorGraph &graph, const SwizzledLayout &image) {
  std::string others = narrowCopies(graph, image.root, /*shifts=*/false, /*but=*/image.operand);
  return llvm::formatv("operand {0} copied {1} bytes at a time, from images of its tiles", image.operand,
                       image.copyBytes)
             .str() +
         (others.empty() ? "" : ", " + others);
}

static bool namesWarpgroup(const OpPlan &op) { return StringRef(op.microKernel).starts_with(kWarpgroupKernel); }

/// Returns the swizzled layout of a weight if it pays to store the weight that way.
static std::optional<SwizzledLayout> bestSwizzledLayout(const TensorGraph &graph, const Plan &plan,
                                                        const KernelPlan &kernel, const OpPlan &op,
                                                        const Target &target, std::string &why) {
  std::optional<SwizzledLayout> image = possibleSwizzledLayout(graph, plan, kernel, op, target, why);
  if (!image)
    return std::nullopt;
  Value weight = image->root.accesses[image->operand].tensor;
  if (!isKnownAtLoad(graph, computedAtLoad(graph), weight) || !isMadeOfParameters(weight))
    why = "the operand along its lanes is no weight of a parameter file";
  else if (!image->gain.pays())
    why =
        llvm::formatv("{0:F3} us of copying instructions would be spared, and filled up tiles take {1:F3} us longer to "
                      "read",
                      image->gain.savedSeconds * 1e6, image->gain.addedSeconds * 1e6);
  else
    return image;
  return std::nullopt;
}

void tilewright::chooseSwizzledOperands(Plan &plan, const TensorGraph &graph, const Target &target) {
  for (KernelPlan &kernel : plan.kernels)
    for (GroupPlan &part : kernel.parts)
      for (OpPlan &op : part.ops) {
        std::string why;
        std::optional<SwizzledLayout> image;
        if (namesWarpgroup(op))
          image = bestSwizzledLayout(graph, plan, kernel, op, target, why);
        if (TensorPlan *input = image ? inputNamed(part, image->input) : nullptr) {
          input->layout = image->layout();
          op.copies = copiesWith(graph, *image);
        }
      }
}

std::vector<PlainCopies> tilewright::plainCopies(const Plan &plan, const TensorGraph &graph, const Target &target) {
  std::vector<PlainCopies> plain;
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &part : kernel.parts)
      for (const OpPlan &op : part.ops) {
        bool isLaidOut = llvm::any_of(part.tensors, [](const TensorPlan &tensor) { return !tensor.layout.empty(); });
        std::string why;
        if (!namesWarpgroup(op) || isLaidOut)
          continue;
        if (bestSwizzledLayout(graph, plan, kernel, op, target, why))
          why = "the plan says so";
        plain.push_back({op.id, why});
      }
  return plain;
}

std::string tilewright::whyNotLaidOut(const Plan &plan, const TensorGraph &graph, const Target &target) {
  auto isSame = [](const LayoutStep &a, const LayoutStep &b) { return a.kind == b.kind && a.arguments == b.arguments; };
  for (const KernelPlan &kernel : plan.kernels)
    for (const GroupPlan &part : kernel.parts)
      for (const TensorPlan &tensor : part.tensors) {
        if (tensor.layout.empty())
          continue;
        std::string why = "no contraction of warpgroups reads it";
        bool fits = false;
        for (const OpPlan &op : part.ops) {
          if (!namesWarpgroup(op))
            continue;
          std::optional<SwizzledLayout> image = possibleSwizzledLayout(graph, plan, kernel, op, target, why);
          fits |= image && image->input == tensor.tensor && llvm::equal(image->layout(), tensor.layout, isSame);
          if (image)
            why = "it is not that of its tiles' images";
        }
        if (!fits)
          return "kernel '" + kernel.name + "' cannot read " + tensor.tensor + " in the layout that is given: " + why;
      }
  return "";
}
