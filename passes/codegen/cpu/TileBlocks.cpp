// Emits register blocks whose accumulators are in AMX's tile registers. A row of a tile is loaded from, or stored to,
// contiguous memory.
#include "passes/codegen/cpu/ContractionLoops.h"
#include "passes/codegen/cpu/TileRegisters.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
class TileBlocks : public ContractionLoops {
public:
  TileBlocks(OpBuilder &builder, const ContractionNest &nest, const BlockingChoice &blocking)
      : ContractionLoops(builder, nest, blocking), tiles(builder, loc, kernel) {}

  bool canEmit() override { return ContractionLoops::canEmit() && canLoadTiles(); }

  void emit() override {
    ContractionLoops::emit();
    tiles.release();
  }

private:
  int64_t rowsTogether(int64_t) override { return block.rows; }

  void prepareBlocks(int64_t rows) override {
    if (!configuration)
      configuration = allocateOnStack({kTileRowBytes}, builder.getI8Type());
    tiles.configure(configuration, rows);
  }

  bool stopsBetweenPanels(int64_t k) override { return !hasOnePanel(k); }

  // --- layout of the operands --------------------------------------------------------------------------------------

  /// Returns true if the rows of tiles are contiguous and evenly spaced in memory, and packed operands have whole
  /// steps.
  bool canLoadTiles() {
    SliceType lhsType = contraction.lhs.getSlice().getType();
    AffineMap lhs = contraction.lhs.getMap(), rhs = contraction.rhs.getMap();
    if (contraction.lhs.getGuard())
      return false;
    for (int64_t k = 1; k < kernel.stepK(); ++k)
      if (distance(lhsType, lhs, 0, {0, 0}, {0, k}) != k)
        return false;
    if (contraction.m >= 0 && !rowsApart(lhsType, lhs))
      return false;
    if (!isPackedInDepth())
      return copiesPanels();
    SliceType rhsType = contraction.rhs.getSlice().getType();
    for (int64_t n = 1; n < width(); ++n)
      if (distance(rhsType, rhs, 0, {0, n}, {0, 0}) != n * depth)
        return false;
    return groupsApart() && holdsWholeSteps();
  }

  /// Returns the distance from one row of a tile to the next, in elements, or nothing if rows are not evenly spaced.
  std::optional<int64_t> rowsApart(SliceType type, AffineMap map) {
    std::optional<int64_t> apart = distance(type, map, {0, 0, 0}, {1, 0, 0});
    for (int64_t row = 2; apart && row < block.rows; ++row)
      if (distance(type, map, {0, 0, 0}, {row, 0, 0}) != row * *apart)
        return std::nullopt;
    return apart;
  }

  /// Returns the distance from one group of K to the next, in elements, or nothing if groups are not evenly spaced. The
  /// K of a group lie side by side.
  std::optional<int64_t> groupsApart() {
    SliceType type = contraction.rhs.getSlice().getType();
    AffineMap map = contraction.rhs.getMap();
    std::optional<int64_t> apart = distance(type, map, 0, {0, 0}, {0, depth});
    for (int64_t group = 2; apart && group < kTileRows; ++group)
      if (distance(type, map, 0, {0, 0}, {0, group * depth}) != group * *apart)
        return std::nullopt;
    return apart;
  }

  /// Returns true if the packed operand is padded to whole steps along the one dim that counts groups of K.
  bool holdsWholeSteps() {
    AffineMap map = contraction.rhs.getMap();
    ArrayRef<int64_t> shape = contraction.rhs.getSlice().getType().getShape();
    int64_t counting = 0;
    bool whole = true;
    for (auto [index, size] : llvm::drop_end(llvm::zip_equal(map.getResults(), shape)))
      if (index.isFunctionOfDim(layout.dim)) {
        ++counting;
        whole &= size % kTileRows == 0;
      }
    return counting == 1 && whole;
  }

  /// Returns true if tiles of accumulators can be loaded from and stored to their slice directly. Otherwise, they are
  /// copied by vectors, by way of the stack.
  bool accumulatorsLieAsTiles(int64_t count) {
    if (!keepsAccumulators() || count != width())
      return false;
    for (int64_t n = 1; n < width(); ++n)
      if (distance(accumulatorType(), accumulatorMap(), 0, {0, n}, {0, 0}) != n)
        return false;
    return contraction.m < 0 || rowsApart(accumulatorType(), accumulatorMap());
  }

  // --- the block ---------------------------------------------------------------------------------------------------

  void emitBlock(int64_t rows, int64_t count) override {
    startTiles(rows, count);
    reduceTiles(contraction.reduced, rows, count);
    if (accumulatorsLieAsTiles(count))
      return tiles.storeAccumulators(accumulatorsInMemory(), rows, count);
    tiles.storeAccumulators(accumulatorsOnStack(), rows, count);
    forAccumulators(rows, count, [&](Value row, int64_t vector) {
      auto type = VectorType::get({lanes}, element);
      Value accumulators =
          vector::LoadOp::create(builder, loc, type, stackAccumulators, ValueRange{row, constantIndex(vector * lanes)});
      storeAccumulators(accumulators, 0, vector, count);
    });
  }

  /// Sets the accumulators to the initial value, or loads them from their slice.
  void startTiles(int64_t rows, int64_t count) {
    bool continues = !init() || (current && accumulatorsInSlice);
    if (!continues && init() == builder.getZeroAttr(element))
      return tiles.clearAccumulators(rows, count);
    if (continues && accumulatorsLieAsTiles(count))
      return tiles.loadAccumulators(accumulatorsInMemory(), rows, count);
    TileLocation stack = accumulatorsOnStack();
    forAccumulators(rows, count, [&](Value row, int64_t vector) {
      Value accumulators = continues ? loadAccumulators(0, vector, count) : broadcast(constant(init()));
      vector::StoreOp::create(builder, loc, accumulators, stackAccumulators,
                              ValueRange{row, constantIndex(vector * lanes)});
    });
    tiles.loadAccumulators(stack, rows, count);
  }

  void reduceTiles(ArrayRef<int64_t> dims, int64_t rows, int64_t count) {
    int64_t dim = dims.front();
    if (dim == layout.dim)
      return reduceSteps(rows, count);
    loop(offsets[dim], endOf(dim), 1, [&](Value index) {
      indices[dim] = index;
      reduceTiles(dims.drop_front(), rows, count);
    });
  }

  /// Adds up all steps. Rows of a partial last step are copied first, with zeros behind their last K: the memory there
  /// may hold infinities, or may not exist.
  void reduceSteps(int64_t rows, int64_t count) {
    int64_t k = current ? current->steps * depth + current->rest : length;
    int64_t whole = k / kernel.stepK(), rest = k % kernel.stepK();
    auto begin = [&](Value step) { indices[layout.dim] = add(current ? current->first : firstStep, step); };
    if (whole > 0)
      loop(constantIndex(0), constantIndex(whole * stepsTogether()), stepsTogether(), [&](Value step) {
        begin(step);
        tiles.multiplyAdd(lhsInMemory(), rhsGroups(step), rows, count);
      });
    if (rest == 0)
      return;
    Value step = constantIndex(whole * stepsTogether());
    begin(step);
    tiles.multiplyAdd(copyLhs(rows, rest), rhsGroups(step), rows, count);
  }

  TileLocation copyLhs(int64_t rows, int64_t k) {
    Value memory = outer.lookup(contraction.lhs.getSlice());
    auto type = VectorType::get({kernel.stepK()}, cast<MemRefType>(memory.getType()).getElementType());
    if (!stackLhs)
      stackLhs = allocateOnStack({block.rows, kernel.stepK()}, type.getElementType());
    Value mask = vector::ConstantMaskOp::create(builder, loc, VectorType::get(type.getShape(), builder.getI1Type()),
                                                ArrayRef<int64_t>{k});
    forRows(rows, [&](Value row) {
      SmallVector<Value> index = at(contraction.lhs.getMap(), 0, 0);
      Value copied = vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros(type));
      vector::StoreOp::create(builder, loc, copied, stackLhs, ValueRange{row, constantIndex(0)});
    });
    return {stackLhs, {constantIndex(0), constantIndex(0)}, kTileRowBytes};
  }

  // --- locations of tiles ------------------------------------------------------------------------------------------

  TileLocation lhsInMemory() {
    AffineMap map = contraction.lhs.getMap();
    SliceType type = contraction.lhs.getSlice().getType();
    return {outer.lookup(contraction.lhs.getSlice()), at(map, 0, 0), bytesApart(type, map)};
  }

  TileLocation rhsGroups(Value step) {
    if (current)
      return {packed, inPanel(step, 0), width() * depth * elementBytes(storedRhs())};
    return {outer.lookup(contraction.rhs.getSlice()), at(contraction.rhs.getMap(), 0, 0),
            *groupsApart() * elementBytes(storedRhs())};
  }

  TileLocation accumulatorsInMemory() {
    return {outer.lookup(compute.getAccs()[0]), at(accumulatorMap(), 0, 0),
            bytesApart(accumulatorType(), accumulatorMap())};
  }

  TileLocation accumulatorsOnStack() {
    if (!stackAccumulators)
      stackAccumulators = allocateOnStack({block.rows, width()}, element);
    return {stackAccumulators, {constantIndex(0), constantIndex(0)}, width() * elementBytes(element)};
  }

  int64_t bytesApart(SliceType type, AffineMap map) {
    return contraction.m < 0 ? kTileRowBytes : *rowsApart(type, map) * elementBytes(type.getElementType());
  }

  /// Emits a loop over the rows of the block and calls `body` with the row, counted from 0. The index along M points to
  /// that row meanwhile.
  void forRows(int64_t rows, llvm::function_ref<void(Value row)> body) {
    Value first = contraction.m < 0 ? Value() : indices[contraction.m];
    loop(constantIndex(0), constantIndex(rows), 1, [&](Value row) {
      if (first)
        indices[contraction.m] = add(first, row);
      body(row);
    });
    if (first)
      indices[contraction.m] = first;
  }

  /// Calls `body` for each vector of accumulators, with its row and its number within the row.
  void forAccumulators(int64_t rows, int64_t count, llvm::function_ref<void(Value row, int64_t vector)> body) {
    forRows(rows, [&](Value row) {
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        body(row, vector);
    });
  }

  TileRegisters tiles;
  Value configuration, stackAccumulators, stackLhs; ///< stack memory, allocated on first use
};
} // namespace

std::unique_ptr<ContractionLoops> tilewright::makeTileBlocks(OpBuilder &builder, const ContractionNest &nest,
                                                             const BlockingChoice &blocking) {
  return std::make_unique<TileBlocks>(builder, nest, blocking);
}
