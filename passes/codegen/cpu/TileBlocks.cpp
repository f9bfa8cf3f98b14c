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
  TileBlocks(OpBuilder &builder, const ContractionNest &nest)
      : ContractionLoops(builder, nest), tiles(builder, loc, kernel) {}

  bool canEmit() override { return ContractionLoops::canEmit() && canLoadTiles(); }

  void emit() override {
    ContractionLoops::emit();
    tiles.release();
  }

private:
  int64_t rowsTogether(int64_t) override { return block.rows; }

  void prepareBlocks(int64_t rows) override {
    if (!configuration)
      configuration = allocatePanel({kTileRowBytes}, builder.getI8Type());
    tiles.configure(configuration, rows);
  }

  /// K is not blocked: accumulators stay in registers instead.
  bool blocksK() override { return false; }

  bool packsPanels() override {
    return contraction.row >= 0 && contraction.reduced.size() == 1 && !isPackedInDepth() &&
           (keepsAccumulators() || hasOnePanel(compute.getSizes()[layout.dim]));
  }

  bool stopsBetweenPanels(int64_t k) override { return !hasOnePanel(k); }

  // --- layout of the operands --------------------------------------------------------------------------------------

  /// Returns true if the rows of tiles are contiguous and evenly spaced in memory, and packed operands have whole
  /// steps.
  bool canLoadTiles() {
    SliceType rowType = contraction.rows.getSlice().getType();
    AffineMap rows = contraction.rows.getMap(), along = contraction.lanes.getMap();
    for (int64_t term = 1; term < kernel.stepK(); ++term)
      if (distance(rowType, rows, 0, {0, 0}, {0, term}) != term)
        return false;
    if (contraction.row >= 0 && !rowsApart(rowType, rows))
      return false;
    if (!isPackedInDepth())
      return packsPanels();
    SliceType laneType = contraction.lanes.getSlice().getType();
    for (int64_t lane = 1; lane < width(); ++lane)
      if (distance(laneType, along, 0, {0, lane}, {0, 0}) != lane * depth)
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
    SliceType type = contraction.lanes.getSlice().getType();
    AffineMap map = contraction.lanes.getMap();
    std::optional<int64_t> apart = distance(type, map, 0, {0, 0}, {0, depth});
    for (int64_t group = 2; apart && group < kTileRows; ++group)
      if (distance(type, map, 0, {0, 0}, {0, group * depth}) != group * *apart)
        return std::nullopt;
    return apart;
  }

  /// Returns true if the packed operand is padded to whole steps along the one dim that counts groups of K.
  bool holdsWholeSteps() {
    AffineMap map = contraction.lanes.getMap();
    ArrayRef<int64_t> shape = contraction.lanes.getSlice().getType().getShape();
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
    for (int64_t lane = 1; lane < width(); ++lane)
      if (distance(accumulatorType(), accumulatorMap(), 0, {0, lane}, {0, 0}) != lane)
        return false;
    return contraction.row < 0 || rowsApart(accumulatorType(), accumulatorMap());
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
    TilePlace stack = accumulatorsOnStack();
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
        tiles.multiplyAdd(rowsInMemory(), groupsOfLanes(step), rows, count);
      });
    if (rest == 0)
      return;
    Value step = constantIndex(whole * stepsTogether());
    begin(step);
    tiles.multiplyAdd(copyRows(rows, rest), groupsOfLanes(step), rows, count);
  }

  TilePlace copyRows(int64_t rows, int64_t k) {
    Value memory = outer.lookup(contraction.rows.getSlice());
    auto type = VectorType::get({kernel.stepK()}, cast<MemRefType>(memory.getType()).getElementType());
    if (!stackRows)
      stackRows = allocatePanel({block.rows, kernel.stepK()}, type.getElementType());
    Value mask = vector::ConstantMaskOp::create(builder, loc, VectorType::get(type.getShape(), builder.getI1Type()),
                                                ArrayRef<int64_t>{k});
    forRows(rows, [&](Value row) {
      SmallVector<Value> index = at(contraction.rows.getMap(), 0, 0);
      Value copied = vector::MaskedLoadOp::create(builder, loc, type, memory, index, mask, zeros(type));
      vector::StoreOp::create(builder, loc, copied, stackRows, ValueRange{row, constantIndex(0)});
    });
    return {stackRows, {constantIndex(0), constantIndex(0)}, kTileRowBytes};
  }

  // --- locations of tiles ------------------------------------------------------------------------------------------

  TilePlace rowsInMemory() {
    AffineMap map = contraction.rows.getMap();
    SliceType type = contraction.rows.getSlice().getType();
    return {outer.lookup(contraction.rows.getSlice()), at(map, 0, 0), bytesApart(type, map)};
  }

  TilePlace groupsOfLanes(Value step) {
    if (current)
      return {packed, inPanel(step, 0), width() * depth * elementBytes(storedLanes())};
    return {outer.lookup(contraction.lanes.getSlice()), at(contraction.lanes.getMap(), 0, 0),
            *groupsApart() * elementBytes(storedLanes())};
  }

  TilePlace accumulatorsInMemory() {
    return {outer.lookup(compute.getAccs()[0]), at(accumulatorMap(), 0, 0),
            bytesApart(accumulatorType(), accumulatorMap())};
  }

  TilePlace accumulatorsOnStack() {
    if (!stackAccumulators)
      stackAccumulators = allocatePanel({block.rows, width()}, element);
    return {stackAccumulators, {constantIndex(0), constantIndex(0)}, width() * elementBytes(element)};
  }

  int64_t bytesApart(SliceType type, AffineMap map) {
    return contraction.row < 0 ? kTileRowBytes : *rowsApart(type, map) * elementBytes(type.getElementType());
  }

  /// Emits a loop over the rows of the block and calls `body` with the row, counted from 0. The index along M points to
  /// that row meanwhile.
  void forRows(int64_t rows, llvm::function_ref<void(Value row)> body) {
    Value first = contraction.row < 0 ? Value() : indices[contraction.row];
    loop(constantIndex(0), constantIndex(rows), 1, [&](Value row) {
      if (first)
        indices[contraction.row] = add(first, row);
      body(row);
    });
    if (first)
      indices[contraction.row] = first;
  }

  /// Calls `body` for each vector of accumulators, with its row and its number within the row.
  void forAccumulators(int64_t rows, int64_t count, llvm::function_ref<void(Value row, int64_t vector)> body) {
    forRows(rows, [&](Value row) {
      for (int64_t vector = 0; vector * lanes < count; ++vector)
        body(row, vector);
    });
  }

  TileRegisters tiles;
  Value configuration, stackAccumulators, stackRows; ///< stack memory, allocated on first use
};
} // namespace

std::unique_ptr<ContractionLoops> tilewright::makeTileBlocks(OpBuilder &builder, const ContractionNest &nest) {
  return std::make_unique<TileBlocks>(builder, nest);
}
