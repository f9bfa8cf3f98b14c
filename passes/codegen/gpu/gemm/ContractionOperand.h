// An operand of a contraction on its way through shared memory: the points of a tile by the terms of a step, which all
// threads of the block copy and all read.
#ifndef TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONOPERAND_H
#define TILEWRIGHT_CODEGEN_GPU_GEMM_CONTRACTIONOPERAND_H

#include "passes/codegen/gpu/gemm/ContractionFrame.h"
#include "passes/program/gpu/OperandCopies.h"

namespace tilewright {

class ContractionOperand {
public:
  ContractionOperand(ContractionFrame &frame, tile::LoadOp load, OperandShape shape);

  /// Whether its terms lie innermost, in global memory and so in shared memory.
  bool liesAlongK() const { return alongK; }
  /// Whether copies are asynchronous: at least 4 bytes that lie together and are aligned to as many.
  bool isAsync() { return isCopiedAsync(frame.compute, load, shape); }
  /// Whether its lines begin wherever they do in a piece, so that nothing but elements is aligned.
  bool isShifted() const { return shape.shifted; }
  /// Bytes that are copied at once.
  int64_t copyBytes() const { return granule * bytes; }
  mlir::Type element() const { return type; }
  /// Elements that are read from shared memory at once at most.
  int64_t atom() const { return kAtomBytes / bytes; }

  /// Where its slots are in the scratch.
  void place(int64_t byteOffset, int64_t slotBytes, int64_t stages);
  bool isCopiedInBulk() const { return image; }
  /// Whether it is read where another nest left it.
  bool isInPlace() const { return resident; }
  /// Of an image: an mbarrier for each slot, on which its copies complete, at this place of the scratch. One thread
  /// makes them and takes them away; others may wait behind a barrier of the block.
  void placeBarriers(int64_t byteOffset, int64_t stages);
  void initBarriers();
  void invalidateBarriers();
  /// Until the copy of a step is in its slot; nothing where threads copied it.
  void await(mlir::Value step);
  /// Of one that is read where another nest left it: zeros where the buffer goes on beyond the tile. They are there
  /// behind the next barrier.
  void fillUp();
  /// All steps have slots of their own, in order: of those it is read from.
  void keepSteps() { kept = true; }
  /// The step that is multiplied next, and the term at which it begins.
  void enter(mlir::Value step, mlir::Value first) { currentStep = step, current = first; }
  /// Where a warp reads single words, 8 neighbouring points of 4 lines at a time: lines swap pairs of atoms.
  void spreadForWords() { pairs = bytes == 4; }
  /// Where so many terms of a step are of one unit and the next ones of another, which read at the same time: short
  /// lines of different units lie in different banks.
  void spreadUnits(int64_t ownK) { kOfSlice = ownK; }
  /// Where warpgroups read by descriptors: lines are of 128 bytes at most, and what lies further inside is in panels
  /// behind one another. The places of atoms in such lines are those of the hardware's swizzles of 32, 64 and 128
  /// bytes.
  void cutIntoPanels() { panels = true; }
  int64_t lineBytes() const { return pitch() * bytes; }
  int64_t panelBytes() const { return lines() * lineBytes(); }
  /// The address of a matrix in a slot, before the swizzle: of whole groups of 8 lines.
  mlir::Value matrix(mlir::Value slot, mlir::Value point, mlir::Value term);
  /// Asks for the terms from `first` on to be in the slot. What is beyond the tile is zero.
  void copy(mlir::Value slot, mlir::Value first);
  /// `count` elements along what is innermost, from a place that is a multiple of it.
  mlir::Value read(mlir::Value slot, mlir::Value point, mlir::Value term, int64_t count);
  mlir::Value pointer(mlir::Value slot, mlir::Value point, mlir::Value term);
  /// The word that two terms of a point are, from an even one on, where lines of terms are shifted.
  mlir::Value readWord(mlir::Value slot, mlir::Value point, mlir::Value term);

private:
  mlir::Value ofTile(mlir::Value point);
  llvm::SmallVector<mlir::Value> inBuffer(mlir::Value point, mlir::Value term);
  /// Points of a dim of the tile.
  struct Stretch {
    int64_t dim, begin, end;
  };
  int64_t pieceOfLines();
  void zeroBeyond(Stretch lines, Stretch inner, int64_t together);
  static constexpr int64_t kBankAtoms = 8; ///< of all banks together

  int64_t lines() const { return alongK ? shape.points : shape.step; }
  int64_t pitch() const {
    int64_t inner = alongK ? shape.step : shape.line;
    if (shape.shifted)
      return inner + atom(); // lines beside each other so begin in different banks, too
    return panels ? std::min(inner, kBankAtoms * atom()) : inner;
  }
  static constexpr int64_t kWord = 2; ///< elements of one, where lines are shifted
  /// Elements that are copied at once of lines that begin inside words. What is read as words is copied as such: 8
  /// lines of them would overlap in the banks if they began in different words.
  int64_t piece() const { return alongK ? kWord : atom(); }
  bool hasPanels() const { return !shape.shifted && pitch() < (alongK ? shape.step : shape.points); }
  mlir::Value panelOf(mlir::Value inner);
  mlir::Value placeOfLine(mlir::Value line);
  mlir::Value inSlot(mlir::Value slot, mlir::Value point, mlir::Value term);
  mlir::Value swizzled(mlir::Value line, mlir::Value inner);
  void copyGranule(mlir::Value slot, mlir::Value point, mlir::Value term, mlir::Value first);
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
  bool alongK, resident, image, pairs = false, panels = false, kept = false;
  mlir::Value shared;   ///< all slots, as elements
  mlir::Value barriers; ///< of an image: one for each slot
  int64_t stages = 1;
  mlir::Value currentStep, current;          ///< that is multiplied, and its first term
  int64_t slotElements = 0, kOfSlice = 0; ///< 0: all terms are
};

} // namespace tilewright

#endif
