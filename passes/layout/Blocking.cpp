#include "passes/layout/Blocking.h"

#include "passes/layout/WindowSteps.h"
#include "passes/support/Strides.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/KBlocking.h"
#include "passes/target/LaneBytes.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>
#include <numeric>

using namespace mlir;
using namespace tilewright;

/// Most bytes of a copied panel, which is on the stack.
static constexpr int64_t kMostStackBytes = 256 * 1024;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

std::optional<int64_t> tilewright::panelWidth(AffineMap map, int64_t n) {
  for (AffineExpr index : map.getResults()) {
    auto cut = dyn_cast<AffineBinaryOpExpr>(index);
    if (!cut || index.getKind() != AffineExprKind::Mod)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(cut.getLHS());
    auto size = dyn_cast<AffineConstantExpr>(cut.getRHS());
    if (dim && size && dim.getPosition() == n)
      return size.getValue();
  }
  return std::nullopt;
}

/// Returns the elements between one step of `depth` K and the next, or nothing if that depends on the step.
static std::optional<int64_t> stepStride(const OperandAccess &access, int64_t k, int64_t depth) {
  MLIRContext *context = access.map.getContext();
  AffineExpr step = getAffineDimExpr(k, context), apart = getAffineConstantExpr(0, context);
  for (auto [index, stride] : llvm::zip_equal(access.map.getResults(), denseStrides(access.shape)))
    if (index.isFunctionOfDim(k))
      apart = apart + (index.replace(step, step * depth + depth) - index.replace(step, step * depth)) * stride;
  auto constant =
      dyn_cast<AffineConstantExpr>(simplifyAffineExpr(apart, access.map.getNumDims(), access.map.getNumSymbols()));
  return constant ? std::optional(constant.getValue()) : std::nullopt;
}

bool BlockedContraction::blocksK() const {
  return kernel.unit == StepUnit::vector && kBlock > 0 && kBlock < rhs.sizes[k] && reducesOneDim && keepsAccumulators;
}

int64_t BlockedContraction::copiedStepBytes(int64_t vectors) const {
  return vectors * lanes * kernel.depth * (kernel.depth == 1 ? accumulatorBytes : rhs.elementBytes);
}

int64_t BlockedContraction::panelSteps(const BlockingChoice &choice, int64_t all) const {
  int64_t depth = kernel.depth;
  int64_t most = llvm::divideCeil(choice.panelK > 0 ? choice.panelK : kBlock, depth);
  return llvm::alignTo(std::clamp<int64_t>(most, 1, std::max<int64_t>(all / depth, 1)),
                       std::lcm(kernel.stepK() / depth, choice.unroll));
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

/// Returns true if register blocks of this width read whole panels of rhs, or parts of one.
static bool fillsPanels(const TileColumns &columns, int64_t width, const CpuCosts &costs) {
  if (!columns.packed || *columns.packed % width == 0)
    return true;
  bool startsWithPanels = columns.size % width == 0 || columns.size == columns.extent;
  return width % *columns.packed == 0 && width * kLaneBytes <= costs.panelsAtOnce * kCpuLineBytes && startsWithPanels;
}

/// Blocks of one or two rows have more vectors, so that they have enough independent accumulators. Each of their vectors
/// of rhs is an operand in memory, or is used twice, so that registers suffice.
int64_t tilewright::chooseVectors(const MicroKernel &kernel, RegisterBlock block, int64_t rows, int64_t lanes,
                                  const TileColumns &columns, const CpuCosts &costs) {
  bool isDefault = kernel.unit == StepUnit::vector && kernel.block.rows == 0 && kernel.depth == 1;
  if (!isDefault || rows > 2)
    return block.vectors;
  for (int64_t vectors = kIndependentAccumulators / rows; vectors > block.vectors; vectors /= 2)
    if (fillsPanels(columns, vectors * lanes, costs))
      return vectors;
  return block.vectors;
}

/// Returns why panels of rhs cannot be copied, or an empty string.
static std::string whyNotCopied(const BlockedContraction &own) {
  if (own.m < 0)
    return "a vector times a matrix uses each panel once";
  if (!own.reducesOneDim)
    return "K has several dims";
  if (own.packedDepth > 1)
    return "rhs is packed already";
  if (own.kernel.unit == StepUnit::vector && !own.keepsAccumulators)
    return "accumulators would be rounded between panels";
  return "";
}

int64_t tilewright::leastRowsToCopy(const MicroKernel &kernel, RegisterBlock block, int64_t stepBytes, bool blocksK,
                                    const CpuCosts &costs) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  if (kernel.unit == StepUnit::tiles)
    return 1;
  if (kernel.depth > 1)
    return costs.blocksToPack * block.rows;
  if (stepBytes <= kCpuLineBytes) // one line from each place
    return (costs.blocksToCopyLines - 1) * block.rows + 1;
  return blocksK ? (costs.blocksToCopy - 1) * block.rows + 1 : kNever;
}

/// Returns true if panels of rhs are copied, once for all rows of a tile. That puts the K of a step side by side, or the
/// steps of a register block one after another, which otherwise may be a page apart. It pays off only if the tile has
/// enough rows; tile registers cannot load anything else.
static bool copiesPanels(const BlockedContraction &own, const BlockingChoice &choice) {
  int64_t width = choice.vectors * own.lanes, packed = panelWidth(own.rhs.map, own.n).value_or(1);
  if (!whyNotCopied(own).empty() ||
      own.rows() < leastRowsToCopy(own.kernel, own.block, width * own.rhs.elementBytes, own.blocksK(), own.costs))
    return false;
  if (own.kernel.unit == StepUnit::tiles || own.kernel.depth > 1)
    return true;
  return own.kBlock * own.copiedStepBytes(choice.vectors) <= kCopiedBlockBytes &&
         stepStride(own.rhs, own.k, 1) != std::max(width, packed % width == 0 ? packed : 1);
}

/// Returns why the next panel cannot be prefetched, or an empty string: row blocks must be left to do it, and panels
/// must follow each other in memory, as must the steps of a panel.
static std::string whyNotPrefetched(const BlockedContraction &own, const BlockingChoice &choice) {
  int64_t stepElements = choice.vectors * own.lanes * own.kernel.depth, size = own.rhs.sizes[own.k];
  int64_t steps = own.blocksK() ? own.panelSteps(choice, size) : size / own.kernel.depth;
  if (own.kernel.unit == StepUnit::tiles)
    return "tile registers are loaded without";
  int64_t inUse = std::min<int64_t>(choice.vectors, llvm::divideCeil(own.rhs.sizes[own.n], own.lanes));
  if (own.rows() <= own.block.rows * choice.vectors / inUse)
    return "one block of rows has all rows of the tile";
  if (choice.panelK > 0)
    return "panels are copied";
  if (!own.rhsInMemory || !own.reducesOneDim || llvm::product_of(own.rhs.shape) <= steps * stepElements ||
      stepStride(own.rhs, own.k, own.kernel.depth) != stepElements)
    return "the panels of rhs do not follow each other in memory";
  int64_t bytes = steps * stepElements * own.rhs.elementBytes;
  return bytes < choice.prefetch ? llvm::formatv("a panel of rhs has {0} bytes", bytes).str() : "";
}

/// Returns the K of a panel that has all of a tile, in whole steps of the micro kernel.
static int64_t longestPanel(const BlockedContraction &own) {
  return llvm::alignTo(own.rhs.sizes[own.k], own.kernel.stepK());
}

/// Returns the steps along K of one iteration of the innermost loop. If one block has all rows, memory is the limit, and
/// loads of several rows that LLVM reorders take twice as long as those of one row after the other (Zen 3).
static int64_t stepsOfIteration(const BlockedContraction &own, const BlockingChoice &choice) {
  if (own.kernel.depth > 1)
    return 1;
  int64_t extent = own.lhs.extents[own.k], size = own.lhs.sizes[own.k];
  if (hasWindows(own.lhs.map, own.k))
    return choice.panelK > 0 ? 1 : windowSteps(own.lhs.map, own.k, extent, size);
  if (own.rows() <= own.block.rows)
    return 1;
  int64_t products = own.block.rows * choice.vectors; // of a step
  int64_t steps = std::clamp<int64_t>(own.costs.unrolledProducts / products, 1, own.costs.unrolledSteps);
  int64_t common = std::gcd(std::gcd(extent, size), std::gcd(choice.panelK, own.kBlock));
  while (common % steps != 0)
    --steps;
  return steps;
}

bool tilewright::multipliesFactors(const BlockedContraction &own, Attribute factors) {
  auto matrix = dyn_cast_or_null<DenseElementsAttr>(factors);
  if (!matrix || own.m < 0 || !own.reducesOneDim || own.kernel.depth != 1 || own.kernel.hasOffset ||
      own.kernel.unit != StepUnit::vector || own.accumulatorBytes != sizeof(float) || own.blocksK())
    return false;
  MLIRContext *context = own.lhs.map.getContext();
  unsigned dims[] = {static_cast<unsigned>(own.m), static_cast<unsigned>(own.k)};
  AffineExpr index[] = {getAffineDimExpr(dims[0], context), getAffineDimExpr(dims[1], context)};
  auto isWhole = [&](unsigned dim) { return own.lhs.sizes[dim] == own.lhs.extents[dim]; };
  auto sizes = llvm::map_range(dims, [&](unsigned dim) { return own.lhs.extents[dim]; });
  return own.lhs.map.getResults() == ArrayRef(index) && llvm::all_of(dims, isWhole) &&
         llvm::equal(matrix.getType().getShape(), sizes);
}

BlockingChoice tilewright::chooseBlocking(const BlockedContraction &own) {
  BlockingChoice choice;
  choice.vectors =
      chooseVectors(own.kernel, own.block, own.rows(), own.lanes,
                    {own.rhs.sizes[own.n], own.rhs.extents[own.n], panelWidth(own.rhs.map, own.n)}, own.costs);
  if (own.hasFactors) {
    choice.unroll = 1;
    choice.panelK = choice.prefetch = 0;
    return choice;
  }
  if (copiesPanels(own, choice)) {
    int64_t bytes = std::min(own.costs.copiedPanelBytes, kMostStackBytes / 2);
    int64_t steps = std::max<int64_t>(bytes / own.copiedStepBytes(choice.vectors), 1);
    int64_t most = llvm::alignTo(steps * own.kernel.depth, own.kernel.stepK());
    choice.panelK = own.blocksK() ? own.kBlock : std::min(most, longestPanel(own));
  }
  choice.unroll = stepsOfIteration(own, choice);
  choice.prefetch = own.costs.prefetchedPanelBytes;
  if (!whyNotPrefetched(own, choice).empty())
    choice.prefetch = 0;
  return choice;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

static std::string whyNotVectors(const BlockedContraction &own, int64_t vectors) {
  std::optional<int64_t> packed = panelWidth(own.rhs.map, own.n);
  if (packed && own.kernel.unit == StepUnit::vector && own.packedDepth == 1 && *packed % own.lanes != 0 &&
      *packed < own.rhs.extents[own.n] && own.rhs.extents[own.k] > 1)
    return llvm::formatv("vectors: rhs is packed in panels of {0}, which are no whole vectors of {1}", *packed,
                         own.lanes);
  if (vectors == own.block.vectors)
    return "";
  if (own.kernel.unit == StepUnit::tiles)
    return llvm::formatv("vectors: blocks of tile registers have {0}, not {1}", own.block.vectors, vectors);
  if (packed && *packed % (vectors * own.lanes) != 0 && vectors * own.lanes % *packed != 0)
    return llvm::formatv("vectors: blocks of {0} vectors of {1} do not fill the panels of {2} that rhs is packed in",
                         vectors, own.lanes, *packed);
  return "";
}

static std::string whyNotUnrolled(const BlockedContraction &own, int64_t unroll, int64_t panelK) {
  int64_t common = std::gcd(own.lhs.sizes[own.k], own.lhs.extents[own.k]);
  if (unroll > 1 && own.kernel.depth > 1)
    return llvm::formatv("unroll: each step takes {0} elements of K, so it must be 1, not {1}", own.kernel.depth,
                         unroll);
  if (common % unroll != 0)
    return llvm::formatv("unroll: {0} does not divide {1}, the K of {2}", unroll, common,
                         own.lhs.sizes[own.k] == own.lhs.extents[own.k] ? "the contraction" : "a block");
  if (panelK % unroll != 0)
    return llvm::formatv("unroll: {0} does not divide {1}, the K of a copied panel", unroll, panelK);
  return "";
}

static std::string whyNotPanels(const BlockedContraction &own, const BlockingChoice &choice) {
  if (choice.panelK == 0)
    return own.kernel.unit == StepUnit::tiles && own.packedDepth == 1
               ? "panelK: tile registers load rhs from copied panels only"
               : "";
  if (std::string why = whyNotCopied(own); !why.empty())
    return "panelK: panels are not copied: " + why;
  if (own.blocksK() && choice.panelK != own.kBlock)
    return llvm::formatv("panelK: the micro kernel takes blocks of {0} along K, so panels cannot have {1}", own.kBlock,
                         choice.panelK);
  if (choice.panelK % own.kernel.stepK() != 0 && !own.blocksK())
    return llvm::formatv("panelK: {0} is no multiple of the {1} elements of K that the micro kernel takes at once",
                         choice.panelK, own.kernel.stepK());
  if (choice.panelK > longestPanel(own))
    return llvm::formatv("panelK: a tile has {0} along K, so panels cannot have {1}", longestPanel(own),
                         choice.panelK);
  int64_t bytes = (own.panelSteps(choice, own.rhs.sizes[own.k]) + own.kernel.stepK() / own.kernel.depth) *
                  own.copiedStepBytes(choice.vectors);
  if (bytes > kMostStackBytes)
    return llvm::formatv("panelK: a panel takes {0} bytes of the stack; {1} is the most", bytes, kMostStackBytes);
  if (own.kernel.unit == StepUnit::tiles && !own.keepsAccumulators &&
      own.panelSteps(choice, own.rhs.sizes[own.k]) * own.kernel.depth < own.rhs.sizes[own.k])
    return "panelK: accumulators would be rounded between panels";
  return "";
}

std::string tilewright::whyNotBlocked(const BlockedContraction &own, const BlockingChoice &choice) {
  if (own.hasFactors && (choice.unroll != 1 || choice.panelK != 0 || choice.prefetch != 0))
    return "unroll, panelK and prefetch: lhs is known, so rhs is read once, in place";
  for (std::string why : {whyNotVectors(own, choice.vectors), whyNotUnrolled(own, choice.unroll, choice.panelK),
                          whyNotPanels(own, choice)})
    if (!why.empty())
      return why;
  std::string why = choice.prefetch == 0 ? "" : whyNotPrefetched(own, choice);
  return why.empty() ? "" : "prefetch: no panel can be prefetched: " + why;
}
