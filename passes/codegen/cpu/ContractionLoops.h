// The loops of a contraction around its register blocks: batches, panels of lanes, panels of terms, rows. What computes
// a register block is a class of its own: vectors of sums, or tile registers of them.
#ifndef TILEWRIGHT_CODEGEN_CPU_CONTRACTIONLOOPS_H
#define TILEWRIGHT_CODEGEN_CPU_CONTRACTIONLOOPS_H

#include "passes/codegen/cpu/RegisterBlockMemory.h"
#include "passes/target/KBlocking.h"

namespace tilewright {

class ContractionLoops : public RegisterBlockMemory {
public:
  using RegisterBlockMemory::RegisterBlockMemory;
  virtual ~ContractionLoops() = default;

  virtual bool canEmit() { return liesAlongLanes() && holdsWholeVectors(); }
  virtual void emit();

protected:
  /// Steps of the reduced dim that all rows are multiplied with before the next ones.
  struct Panel {
    mlir::Value first;     ///< index of its first step
    int64_t steps, rest;   ///< whole ones, and the terms of one more
    mlir::Value step = {}; ///< from the first, while a register block reads it
  };

  /// One register block: `rows` rows by `count` elements along the lanes, over all terms or those of the panel.
  virtual void emitBlock(int64_t rows, int64_t count) = 0;
  /// Before the blocks of so many rows.
  virtual void prepareBlocks(int64_t /*rows*/) {}
  /// Rows of a register block of so many lanes.
  virtual int64_t rowsTogether(int64_t count) = 0;
  /// Whether the nest names how many terms a panel has: it stays in L1 while all rows of the tile pass, or, where one
  /// block has all rows, is read once along all lanes.
  virtual bool blocksK() = 0;
  /// What does not lie as register blocks read it is put so once for all rows of a tile, where there are enough of
  /// them: terms side by side, or the steps of a block one after another, which otherwise may be a page apart.
  virtual bool packsPanels() = 0;
  virtual int64_t panelBytes() = 0;
  /// Whether sums go through their slice from one panel of so many terms to the next.
  virtual bool stopsBetweenPanels(int64_t terms) = 0;

  /// Steps of a panel come in groups of so many.
  int64_t stepsTogether() const { return kernel.stepK() / depth; }
  bool hasOnePanel(int64_t terms);
  llvm::SmallVector<mlir::Value> inPanel(mlir::Value step, int64_t vector);
  /// On the stack, once for a kernel's call.
  mlir::Value allocatePanel(llvm::ArrayRef<int64_t> shape, mlir::Type stored);

  /// Calls `body` with the index of each block of `step`.
  void loop(mlir::Value low, mlir::Value high, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Where the nest's range along a dim ends: the last tile may be shorter.
  mlir::Value endOf(int64_t dim);

  mlir::Value firstStep;        ///< of several terms, in the block of a loop over blocks
  int64_t length;               ///< terms of the nest, or of such a block
  std::optional<Panel> current; ///< the one that register blocks read
  mlir::Value packed;           ///< memory of panels packed here; nothing: they are read where they lie
  bool accumulatorsInSlice = false;     ///< between panels
  int64_t terms = kBlocking(compute.getMicroKernel().value_or("")); ///< of a panel, which the nest names; 0: all

private:
  void emitBatch(llvm::ArrayRef<int64_t> dims);
  void emitLaneBlocks();
  void emitRowBlocks(int64_t count);
  bool streamsK();
  void emitStreams();
  void emitPanels(int64_t count);
  void emitPanel(Panel panel, int64_t count);
  void packPanel(const Panel &panel, int64_t count);
  void fillAccumulators(mlir::Value value, int64_t count);
  int64_t panelSteps(int64_t all);
  mlir::Type panelElement();
  void forBlocks(int64_t dim, int64_t step, llvm::function_ref<void(mlir::Value start, int64_t count)> body);
  void forLaneBlocks(llvm::function_ref<void(int64_t count)> body);
  void forPanels(llvm::function_ref<void(const Panel &panel)> body);
};

/// Sums in vector registers.
std::unique_ptr<ContractionLoops> makeVectorBlocks(mlir::OpBuilder &builder, const ContractionNest &nest);
/// Sums in AMX's tile registers.
std::unique_ptr<ContractionLoops> makeTileBlocks(mlir::OpBuilder &builder, const ContractionNest &nest);

} // namespace tilewright

#endif
