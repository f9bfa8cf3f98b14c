// An operand of a contraction on its way through shared memory: the M or N points of a tile by the K elements of a
// step. All threads of the block copy it, and all read it.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONOPERAND_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONOPERAND_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/program/gpu/OperandCopies.h"

namespace tilewright {

class ContractionOperand {
public:
  ContractionOperand(ContractionFrame &frame, tile::LoadOp load, OperandShape shape);

  /// Returns true if it is contiguous along K in global memory, and therefore in shared memory.
  bool liesAlongK() const { return alongK; }
  /// Returns true if copies are asynchronous: at least 4 bytes that are contiguous and aligned to their number.
  bool isAsync() { return isCopiedAsync(frame.compute, load, shape); }
  /// Returns the most copies of a step that a thread has in registers at the same time.
  int64_t loadsTogether();
  /// Returns true if its lines may begin anywhere in a piece, so that only single elements are aligned.
  bool isShifted() const { return shape.shifted; }
  /// Bytes that are copied at once.
  int64_t copyBytes() const { return granule * bytes; }
  mlir::Type element() const { return type; }
  /// Greatest number of elements that are read from shared memory at once.
  int64_t atom() const { return kAtomBytes / bytes; }

  /// Sets the offset of its slots in the scratch.
  void setOffset(int64_t byteOffset, int64_t slotBytes, int64_t stages);
  bool isCopiedInBulk() const { return swizzledSource; }
  /// Returns true if it is read from the buffer in which another nest left it.
  bool isInPlace() const { return resident; }
  /// Set the offset of, initialise and invalidate one mbarrier per slot, on which bulk copies of a swizzled layout
  /// complete. One thread initialises and invalidates them; the others may wait at a block barrier.
  void setBarrierOffset(int64_t byteOffset, int64_t stages);
  void initBarriers();
  void invalidateBarriers();
  /// Waits until the copy of a step has arrived in its slot. Does nothing if threads copied it.
  void await(mlir::Value step);
  /// For an operand that another nest left in a buffer: zeroes the buffer beyond the tile. The zeros are visible behind
  /// the next barrier.
  void fillUp();
  /// Keeps all steps resident in slots of their own, in order, from which they are read.
  void keepSteps() { holdsAllSteps = true; }
  /// Sets the step that is multiplied next and its first K element.
  void enter(mlir::Value step, mlir::Value first) { currentStep = step, current = first; }
  /// For warps that read single words, 8 neighbouring points of 4 lines at a time: lets lines swap pairs of atoms.
  void spreadForWords() { pairs = bytes == 4; }
  /// For K slices of `ownK` elements per step, which different units read at the same time: puts short lines of
  /// different units in different banks.
  void spreadUnits(int64_t ownK) { kOfSlice = ownK; }
  /// For warpgroups, which read by descriptors: limits lines to 128 bytes and puts elements further inside into
  /// consecutive panels. The positions of atoms in these lines follow the hardware's swizzles of 32, 64 and 128 bytes.
  void cutIntoPanels() { panels = true; }
  int64_t lineBytes() const { return pitch() * bytes; }
  int64_t panelBytes() const { return lines() * lineBytes(); }
  /// Returns the address of a matrix in a slot, made of whole groups of 8 lines, before swizzling.
  mlir::Value matrix(mlir::Value slot, mlir::Value point, mlir::Value k);
  /// Starts copying the K elements from `first` on into the slot. Elements beyond the tile become zero.
  void copy(mlir::Value slot, mlir::Value first);
  /// Reads `count` elements along the innermost dim, from an offset that is a multiple of `count`.
  mlir::Value read(mlir::Value slot, mlir::Value point, mlir::Value k, int64_t count);
  mlir::Value pointer(mlir::Value slot, mlir::Value point, mlir::Value k);
  /// Reads the word that holds two K elements of a point, from an even one on, if lines along K are shifted.
  mlir::Value readWord(mlir::Value slot, mlir::Value point, mlir::Value k);

private:
  mlir::Value ofTile(mlir::Value point);
  llvm::SmallVector<mlir::Value> inBuffer(mlir::Value point, mlir::Value k);
  /// A range of points of a dim of the tile.
  struct Stretch {
    int64_t dim, begin, end;
  };
  int64_t pieceOfLines();
  void zeroBeyond(Stretch lines, Stretch inner, int64_t together);
  static constexpr int64_t kBankAtoms = 8; ///< atoms in one line of all banks

  int64_t lines() const { return alongK ? shape.points : shape.step; }
  int64_t pitch() const {
    int64_t inner = alongK ? shape.step : shape.line;
    if (shape.shifted)
      return inner + atom(); // makes neighbouring lines begin in different banks, too
    return panels ? std::min(inner, kBankAtoms * atom()) : inner;
  }
  static constexpr int64_t kWord = 2; ///< elements per word, if lines are shifted
  /// Elements that are copied at once if lines begin inside words. Operands that are read as words are copied as words:
  /// 8 lines would overlap in the banks if they began in different words.
  int64_t piece() const { return alongK ? kWord : atom(); }
  bool hasPanels() const { return !shape.shifted && pitch() < (alongK ? shape.step : shape.points); }
  mlir::Value panelOf(mlir::Value inner);
  mlir::Value offsetOfLine(mlir::Value line);
  mlir::Value inSlot(mlir::Value slot, mlir::Value point, mlir::Value k);
  mlir::Value swizzled(mlir::Value line, mlir::Value inner);
  void copyGranule(mlir::Value slot, mlir::Value point, mlir::Value k, mlir::Value first);
  void copyFrom(mlir::ValueRange source, mlir::Value target, mlir::Value valid);
  void copyAsync(mlir::Value target, mlir::Value source, int64_t size, mlir::Value read);
  void copyPieces(mlir::Value slot, mlir::Value first);
  void copyPiece(mlir::Value slot, mlir::Value line, mlir::Value number, mlir::Value first);
  mlir::Value startOfLine(mlir::Value line, mlir::Value first);
  mlir::Value shiftOf(mlir::Value line, mlir::Value first);
  mlir::Value lineOfCopy(mlir::Value number, int64_t atoms);
  void copySwizzled(mlir::Value slot, mlir::Value first);
  void byOneThread(llvm::function_ref<void()> body);

  ContractionFrame &frame;
  tile::LoadOp load;
  OperandShape shape;
  mlir::Type type;
  int64_t bytes, granule;
  bool alongK, resident, swizzledSource, pairs = false, panels = false, holdsAllSteps = false;
  mlir::Value shared;   ///< all slots, as elements
  mlir::Value barriers; ///< one mbarrier per slot of a swizzled layout
  int64_t stages = 1;
  mlir::Value currentStep, current;       ///< step that is multiplied, and its first K element
  int64_t slotElements = 0, kOfSlice = 0; ///< elements of a slot; K elements of a slice, or 0 if there is only one
                                          ///< slice
};

} // namespace tilewright

#endif
