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
  if (choice.kOutermost)
    return "K is the outermost loop, so the panel behind this one is not the next";
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

/// Returns why the loop along K cannot be outside of the one along N, or an empty string.
static std::string whyNotOutermost(const BlockedContraction &own, const BlockingChoice &choice) {
  if (!own.blocksK())
    return "no loop takes blocks of K, which the micro kernel's third size names";
  return choice.panelK > 0 ? "panels are copied once for all rows of a tile, inside the loop along N" : "";
}

/// Returns why the last block along N cannot have one vector more, or an empty string. A block of that vector alone
/// would have many rows, each with an address, for which there are too few registers.
static std::string whyNotWider(const BlockedContraction &own, const BlockingChoice &choice) {
  int64_t width = choice.vectors * own.lanes, size = own.rhs.sizes[own.n], last = own.rhs.extents[own.n] % size;
  if (own.kernel.unit != StepUnit::vector || own.kernel.depth > 1 || own.kernel.hasOffset || own.hasFactors)
    return "its micro kernel has blocks of one width";
  if (choice.vectors != own.block.vectors)
    return llvm::formatv("only blocks of {0} vectors, as the micro kernel has, have a wider one", own.block.vectors);
  if (own.rows() <= own.block.rows)
    return "one block of rows has all rows of the tile";
  if (own.block.rows * choice.vectors / (choice.vectors + 1) <= 1)
    return "a wider block would have one row";
  if (size % width == 0 && last % width == 0)
    return "whole blocks fill a tile along N";
  int64_t bytes =
      choice.panelK > 0 ? own.panelSteps(choice, own.rhs.sizes[own.k]) * own.copiedStepBytes(choice.vectors + 1) : 0;
  return bytes <= kCopiedBlockBytes
             ? ""
             : llvm::formatv("a wider copied panel takes {0} bytes; {1} is the most", bytes, kCopiedBlockBytes).str();
}

/// Returns the numbers of vectors that register blocks of a tile have along N.
static SmallVector<int64_t> vectorsOfBlocks(const BlockedContraction &own, const BlockingChoice &choice) {
  int64_t width = choice.vectors * own.lanes, size = own.rhs.sizes[own.n];
  SmallVector<int64_t> found;
  for (int64_t columns : {size, own.rhs.extents[own.n] % size}) {
    int64_t rest = columns % width;
    if (columns >= width)
      found.push_back(choice.vectors);
    if (rest > 0)
      found.push_back(llvm::divideCeil(rest, own.lanes));
    if (rest > 0 && rest <= own.lanes && choice.widerLast)
      found.push_back(choice.vectors + 1);
  }
  return found;
}

/// Returns the rows of the last row block of a tile where it has fewer than others, else 0. Blocks of fewer vectors
/// have more rows.
static int64_t rowsLeft(const BlockedContraction &own, const BlockingChoice &choice, int64_t vectors) {
  int64_t together = own.block.rows * choice.vectors / vectors;
  return own.rows() < together ? 0 : own.rows() % together;
}

/// Returns why no last block of rows can share its rows with the one before it, or an empty string.
static std::string whyNotEven(const BlockedContraction &own, const BlockingChoice &choice) {
  if (own.kernel.unit == StepUnit::tiles)
    return "tile registers take the rows that are left";
  if (own.m < 0 || own.hasFactors)
    return "one block of rows has all rows of the tile";
  if (own.rhs.extents[own.m] % own.rows() != 0)
    return "the last tile has fewer rows than others";
  bool isUneven = llvm::any_of(vectorsOfBlocks(own, choice),
                               [&](int64_t vectors) { return rowsLeft(own, choice, vectors) > 0; });
  return isUneven ? "" : "no block of rows has fewer than others";
}

/// Returns the accumulators below which last blocks of rows share theirs, or 0 if all keep the units busy.
static int64_t evenRowsBelow(const BlockedContraction &own, const BlockingChoice &choice) {
  bool isIdle = whyNotEven(own, choice).empty() && llvm::any_of(vectorsOfBlocks(own, choice), [&](int64_t vectors) {
    int64_t rows = rowsLeft(own, choice, vectors);
    return rows > 0 && leavesIdle(rows, vectors);
  });
  return isIdle ? kIndependentAccumulators : 0;
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
    return choice.panelK > 0 ? 1 : windowSteps(own.lhs.map, own.k, extent, size, own.costs);
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
  // If one block has all rows, no panel is read again, and the rows of rhs are read from end to end, which gives the
  // highest memory bandwidth.
  choice.kOutermost = own.blocksK() && own.rows() <= own.block.rows;
  if (!choice.kOutermost && copiesPanels(own, choice)) {
    int64_t bytes = std::min(own.costs.copiedPanelBytes, kMostStackBytes / 2);
    int64_t steps = std::max<int64_t>(bytes / own.copiedStepBytes(choice.vectors), 1);
    int64_t most = llvm::alignTo(steps * own.kernel.depth, own.kernel.stepK());
    choice.panelK = own.blocksK() ? own.kBlock : std::min(most, longestPanel(own));
  }
  choice.unroll = stepsOfIteration(own, choice);
  choice.prefetch = own.costs.prefetchedPanelBytes;
  if (!whyNotPrefetched(own, choice).empty())
    choice.prefetch = 0;
  choice.widerLast = whyNotWider(own, choice).empty();
  choice.evenRows = evenRowsBelow(own, choice);
  return choice;
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

std::string tilewright::whyNoBlocking(const BlockingChoice &choice) {
  for (auto [name, value] : {std::pair("vectors", choice.vectors), std::pair("unroll", choice.unroll)})
    if (value < 1 || value > tile::BlockingAttr::kMost)
      return llvm::formatv("{0} must be between 1 and {1}, not {2}", name, tile::BlockingAttr::kMost, value);
  for (auto [name, value] : {std::pair("panelK", choice.panelK), std::pair("prefetch", choice.prefetch),
                             std::pair("evenRows", choice.evenRows)})
    if (value < 0)
      return llvm::formatv("{0} must not be negative, but is {1}", name, value);
  return "";
}

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
  if (std::string why = choice.prefetch == 0 ? "" : whyNotPrefetched(own, choice); !why.empty())
    return "prefetch: no panel can be prefetched: " + why;
  if (std::string why = choice.kOutermost ? whyNotOutermost(own, choice) : ""; !why.empty())
    return "kOutermost: " + why;
  if (std::string why = choice.widerLast ? whyNotWider(own, choice) : ""; !why.empty())
    return "widerLast: no block has another vector: " + why;
  std::string why = choice.evenRows == 0 ? "" : whyNotEven(own, choice);
  return why.empty() ? "" : "evenRows: no rows are shared: " + why;
}
