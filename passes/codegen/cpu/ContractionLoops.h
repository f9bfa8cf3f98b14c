// Emits the loops of a contraction around its register blocks: over batches, panels of N, panels of K, and M. Derived
// classes compute one register block, with accumulators in vector registers or in AMX's tile registers.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONLOOPS_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONLOOPS_H

#include "passes/codegen/cpu/RegisterBlockMemory.h"

namespace tilewright {

class ContractionLoops : public RegisterBlockMemory {
public:
  using RegisterBlockMemory::RegisterBlockMemory;
  virtual ~ContractionLoops() = default;

  virtual bool canEmit() { return liesAlongN(width() + (blocking.widerLast ? lanes : 0)) && holdsWholeVectors(); }
  virtual void emit();

protected:
  /// A block of K. All rows of the tile are multiplied with one panel before the next one.
  struct Panel {
    mlir::Value first;     ///< index of the first step
    int64_t steps, rest;   ///< number of whole steps, and K of one more, partial step
    mlir::Value step = {}; ///< current step, counted from the first, while a register block reads the panel
  };

  /// Emits one register block of `rows` by `count` elements, over all of K or over the current panel.
  virtual void emitBlock(int64_t rows, int64_t count) = 0;
  /// Emits code that must run before register blocks of `rows` rows.
  virtual void prepareBlocks(int64_t /*rows*/) {}
  /// Returns the rows of a register block with `count` elements along N.
  virtual int64_t rowsTogether(int64_t count) = 0;
  /// Returns true if accumulators are stored to their slice after each panel, for the given K.
  virtual bool stopsBetweenPanels(int64_t k) = 0;

  /// Returns the number of steps that the micro kernel takes at once. Panels have a multiple of it.
  int64_t stepsTogether() const { return kernel.stepK() / depth; }
  /// Returns true if panels of rhs are copied, once for all rows of a tile.
  bool copiesPanels() const { return blocking.panelK > 0; }
  bool hasOnePanel(int64_t k);
  llvm::SmallVector<mlir::Value> inPanel(mlir::Value step, int64_t vector);

  /// Emits a loop with the given step, and calls `body` with its index.
  void loop(mlir::Value low, mlir::Value high, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Returns the end of the nest's range along a dim. The last tile may be smaller than the others.
  mlir::Value endOf(int64_t dim);

  mlir::Value firstStep;            ///< index of the nest's first step; the nest may be inside a loop over K
  int64_t length;                   ///< K of the nest
  std::optional<Panel> current;     ///< panel that register blocks currently read
  mlir::Value packed;               ///< memory of the packed panel; null: panels are read in place
  bool accumulatorsInSlice = false; ///< true if accumulators are in their slice between panels

private:
  void emitBatch(llvm::ArrayRef<int64_t> dims);
  void emitBlocksAlongN();
  void emitBlocksAlongM(int64_t count);
  void emitStreams();
  /// Returns true if a last block of so many rows shares its rows evenly with the one before it.
  bool sharesRows(int64_t rows, int64_t count) const {
    return rows * llvm::divideCeil(count, lanes) < blocking.evenRows;
  }
  void emitPanels(int64_t count);
  mlir::Value panelMemory(int64_t count);
  void emitPanel(Panel panel, int64_t count);
  void packPanel(const Panel &panel, int64_t count);
  void fillAccumulators(mlir::Value value, int64_t count);
  mlir::Type panelElement();
  void forBlocks(int64_t dim, int64_t step, llvm::function_ref<void(mlir::Value start, int64_t count)> body);
  void forWholeBlocks(mlir::Value low, int64_t size, int64_t step,
                      llvm::function_ref<void(mlir::Value start, int64_t count)> body);
  bool joinsRest(int64_t count);
  void forBlocksAlongN(llvm::function_ref<void(int64_t count)> body);
  void forPanels(llvm::function_ref<void(const Panel &panel)> body);

  llvm::SmallDenseMap<int64_t, mlir::Value> panelMemories; ///< memory of packed panels, by the columns of a step
};

/// Makes loops around register blocks with accumulators in vector registers.
std::unique_ptr<ContractionLoops> makeVectorBlocks(mlir::OpBuilder &builder, const ContractionNest &nest,
                                                    const BlockingChoice &blocking);
/// Makes loops around register blocks with accumulators in AMX's tile registers.
std::unique_ptr<ContractionLoops> makeTileBlocks(mlir::OpBuilder &builder, const ContractionNest &nest,
                                                    const BlockingChoice &blocking);

} // namespace tilewright

#endif
