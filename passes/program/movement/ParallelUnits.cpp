// Derives from the thread mapping of a nest which bits of the thread index an element's indices decide. Two accesses
// need a sync at the level of the highest bit in which they differ.
#include "passes/program/movement/ParallelUnits.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

using Bit = ElementUnits::Bit;

std::string UnitLevels::verify() const { return lanes < 1 || warps < 1 || blocks < 1 ? "a level without units" : ""; }

Scope tilewright::scopeOfThreads(int64_t a, int64_t b, const UnitLevels &levels) {
  if (a == b)
    return Scope::thread;
  int64_t size = levels.lanes;
  if (a / size == b / size)
    return Scope::warp;
  size *= levels.warps;
  if (a / size == b / size)
    return Scope::block;
  size *= levels.blocks;
  return levels.blocks > 1 && a / size == b / size ? Scope::cluster : Scope::grid;
}

void ElementUnits::print(llvm::raw_ostream &os) const {
  os << '[';
  llvm::interleaveComma(bits, os, [&](const Bit &bit) {
    switch (bit.kind) {
    case Bit::index:
      os << "d" << bit.dim << "/" << bit.divisor;
      return;
    case Bit::zero:
      os << "0";
      return;
    case Bit::both:
      os << "*";
      return;
    case Bit::unknown:
      os << "?";
    }
  });
  os << ']';
}

namespace {
/// An index of a slice that is one dim of the nest, with or without the tile's offset subtracted.
struct PlainIndex {
  unsigned dim;
  bool lessOffset;
};

std::optional<PlainIndex> plainIndex(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return PlainIndex{dim.getPosition(), false};
  auto sum = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!sum || sum.getKind() != AffineExprKind::Add)
    return std::nullopt;
  auto dim = dyn_cast<AffineDimExpr>(sum.getLHS());
  if (dim && sum.getRHS() == -getAffineSymbolExpr(dim.getPosition(), expr.getContext()))
    return PlainIndex{dim.getPosition(), true};
  return std::nullopt;
}

/// Returns true if the dim has threads past its end that stay active to combine reduced values. They touch the tile's
/// first point.
bool hasStragglers(ComputeOp compute, const NestMapping &mapping, int64_t dim) {
  int64_t width = dim == static_cast<int64_t>(compute.getVector()) ? mapping.lanes : 1;
  int64_t size = compute.getSizes()[dim], step = width << mapping.bits[dim].count;
  return mapping.reduced != 0 && !compute.isReduced(dim) && (size % step != 0 || compute.getExtents()[dim] % size != 0);
}

/// Returns which bits of the thread index the dim decides, given the index of an element that depends on the dim.
Bit bitOf(ComputeOp compute, const NestMapping &mapping, AffineMap map, AccessKind kind, int64_t dim) {
  Bit bit;
  if (kind == AccessKind::accumulator && compute.isReduced(dim)) {
    bit.kind = Bit::zero; // the leading thread holds the combined value
    return bit;
  }
  if (hasStragglers(compute, mapping, dim))
    return bit;
  if (!map.isFunctionOfDim(dim)) {
    bit.kind = kind == AccessKind::load ? Bit::both : Bit::unknown;
    return bit;
  }
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    std::optional<PlainIndex> plain = plainIndex(expr);
    if (!plain || plain->dim != dim)
      continue;
    bit.kind = Bit::index;
    bit.dim = position;
    bit.divisor = dim == static_cast<int64_t>(compute.getVector()) ? mapping.lanes : 1;
    const auto *place = llvm::find(compute.getOffsetDims(), dim);
    if (!plain->lessOffset && place != compute.getOffsetDims().end())
      bit.origin = compute.getOffsets()[place - compute.getOffsetDims().begin()];
    return bit;
  }
  return bit;
}
} // namespace

ElementUnits tilewright::unitsOf(ComputeOp compute, const NestMapping &mapping, AffineMap map, AccessKind kind) {
  ElementUnits units;
  Bit idle;
  // Idle threads take part only if others wait for them, and store nothing.
  idle.kind = kind == AccessKind::load && mapping.reduced != 0 ? Bit::both : Bit::zero;
  units.bits.assign(llvm::Log2_64(mapping.threads), idle);
  for (auto [dim, range] : llvm::enumerate(mapping.bits)) {
    if (range.count == 0)
      continue;
    Bit bit = bitOf(compute, mapping, map, kind, dim);
    for (unsigned i = 0; i < range.count; ++i) {
      units.bits[range.threadBit(i)] = bit;
      bit.divisor *= 2;
    }
  }
  return units;
}

Scope tilewright::handoverScope(const ElementUnits &before, const ElementUnits &after, const UnitLevels &levels) {
  assert(before.bits.size() == after.bits.size() && "blocks of one size");
  for (int64_t bit = static_cast<int64_t>(before.bits.size()) - 1; bit >= 0; --bit)
    if (!(before.bits[bit] == after.bits[bit]) || before.bits[bit].kind == Bit::both)
      return scopeOfThreads(0, int64_t(1) << bit, levels);
  return Scope::thread;
}
