// Builds the tile program of one subprogram as Movement decided: block edges become buffers, roots become bodies of
// loop nests, and loads and stores access bindings or buffers.
#ifndef TILEWRIGHT_PROGRAM_PARTBUILDER_H
#define TILEWRIGHT_PROGRAM_PARTBUILDER_H

#include "passes/graph/OnlineSoftmax.h"
#include "passes/normalize/Roundings.h"
#include "passes/program/PartSlices.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tilewright {

class PartBuilder : PartSlices {
public:
  PartBuilder(tile::SubprogramOp subprogram, mlir::ValueRange bindings, const Target &target)
      : PartSlices(subprogram, bindings, decideMovement(subprogram, shortestOnlineRow(target)), target.costs),
        referenceBlock(pointsPerReference(target.vectorBytes, target.vectorRegisters)) {}

  void build(mlir::OpBuilder &builder);

private:
  /// The accumulators of one loop nest, collected while its body is built.
  struct Accumulators {
    llvm::SmallVector<mlir::Value> slices, yields;
    llvm::SmallVector<mlir::AffineMap> maps;
    llvm::SmallVector<mlir::Attribute> inits;
    llvm::SmallVector<std::string> kinds;
    std::optional<unsigned> running; ///< index of the accumulator that is used while it is accumulated
  };

  void stageForWorkgroup(mlir::OpBuilder &builder, mlir::Value input);

  // --- nests -------------------------------------------------------------------------------------------------------

  void buildNests(mlir::OpBuilder &builder, WalkPhase phase);
  void buildNest(mlir::OpBuilder &builder, unsigned n);
  void buildCopyIn(mlir::OpBuilder &builder, const SpaceAccess &access, mlir::Value buffer);
  /// Copies a reduction that later nests read, and that is also a result of the kernel, from its buffer to its output:
  /// inside a walk if its blocks fill the buffer one after another, otherwise after it.
  void copyOutBufferedReductions(mlir::OpBuilder &builder, WalkPhase phase);
  /// Creates a nest over the dims of `nest` and, inside them, over `blocks` blocks, if there are any.
  void buildElementwise(mlir::OpBuilder &builder, const Nest &nest, llvm::function_ref<void(mlir::OpBuilder &)> fill,
                        int64_t blocks = 0);
  tile::ComputeOp createCompute(mlir::OpBuilder &builder, const Nest &nest, Accumulators &accs, mlir::Block *body,
                                int64_t blocks = 0);
  /// Returns the flags for the exponentials that correct partial results of an online softmax.
  mlir::arith::FastMathFlags approximation() {
    return allowsFastMath(subprogram) ? mlir::arith::FastMathFlags::afn : mlir::arith::FastMathFlags::none;
  }
  int64_t keptAlong(const Nest &nest) { return tilewright::keptAlong(subprogram, nest); }
  const Nest &nestOf(mlir::Value tensor) { return movement.nests[movement.nestOf.lookup(tensor.getDefiningOp())]; }

  // --- the body of a nest ------------------------------------------------------------------------------------------

  /// Copies the body of a root into the nest and maps its dims to those of the nest.
  void cloneRoot(mlir::OpBuilder &builder, unsigned n, tile::ExprOp root, mlir::Block *body, Accumulators &accs);
  mlir::Value readInput(mlir::OpBuilder &builder, unsigned n, tile::ExprOp root, unsigned input);
  mlir::Value load(mlir::OpBuilder &builder, unsigned n, const SpaceAccess &access);
  mlir::Value loadAt(mlir::OpBuilder &builder, mlir::Value slice, mlir::AffineMap at);
  /// Returns the slice that a reduction accumulates in: its buffer, or the first output that it is.
  mlir::Value sliceOf(mlir::Value tensor);
  void storeResult(mlir::OpBuilder &builder, tile::ExprOp root, unsigned i, mlir::Value value, const Nest &nest);
  void addAccumulator(tile::ExprOp root, unsigned i, std::optional<mlir::vector::CombiningKind> kind,
                      mlir::Value yielded, const Nest &nest, Accumulators &accs);

  // --- values relative to references of an online maximum (PartMaximum.cpp) ------------------------------------------

  /// Allocates one reference for each element of the maximum's tile and each block of the dims that it reduces.
  mlir::Value allocateReferences(mlir::OpBuilder &builder, mlir::Value maximum);
  /// Stores the reference of each block, in the nest of the maximum, to the element that buildFactors() later
  /// overwrites.
  void storeReference(mlir::OpBuilder &builder, tile::ExprOp root, mlir::Value reference, const Nest &nest);
  /// Turns the references r into factors exp(r - maximum). The factor is one where both are equal, infinities included.
  void buildFactors(mlir::OpBuilder &builder, tile::ExprOp root);
  /// Returns an element that was stored relative to a reference, corrected to be relative to the maximum.
  mlir::Value corrected(mlir::OpBuilder &builder, mlir::Value value, const SpaceAccess &access, const Nest &nest);
  int64_t blocksOfReferences();

  // --- blocks of a reduced dim (PartWalk.cpp) ------------------------------------------------------------------------

  /// Builds the loop over blocks: accumulators along the walked dim are initialised before it, and the results of each
  /// block are merged into them.
  void buildWalk(mlir::OpBuilder &builder);
  mlir::Value endInTile(mlir::OpBuilder &builder, mlir::AffineExpr linear);
  /// Creates a nest over the rows of `root` behind the nests of the block; `fill` gets the value accumulated so far.
  void updateRows(mlir::OpBuilder &builder, tile::ExprOp root,
                  llvm::function_ref<void(mlir::OpBuilder &, const Nest &, mlir::Value)> fill);
  /// Merges the block's sum into the sum so far after rescaling that to the current maximum. If `last`, stores the sum
  /// alone.
  void joinBlock(mlir::OpBuilder &builder, tile::ExprOp root, bool last);
  /// Updates the maximum m over all blocks so far and the factor exp(old - m), which rescales sums that are relative to
  /// the old maximum. The factor is one where both are equal, infinities included. Rows without a counted element yet
  /// are relative to zero, so that their exponentials are zero.
  void joinMaximum(mlir::OpBuilder &builder);
  /// Sets the factor of rows without a counted element to NaN, as the graph's exponentials exp(-inf + inf) are.
  void markEmptyRows(mlir::OpBuilder &builder);
  mlir::AffineMap grownIndex(tile::ExprOp root, const Nest &nest);
  mlir::AffineMap blockIndex(tile::ExprOp root, const Nest &nest);

  int64_t referenceBlock; ///< points of a row for which online maxima keep one reference
  llvm::SmallVector<mlir::Value> offsets; ///< offsets of the grid dims, in the order of the subprogram's `grid`
  mlir::Value walkOffset;                 ///< offset of the current block of the walked dim
  /// State of a walk: the block's result of each reduction along the walked dim and, for each element of the maximum,
  /// the reference of the exponentials and the factor that rescales the results of earlier blocks.
  struct {
    llvm::DenseMap<mlir::Operation *, mlir::Value> block;
    mlir::Value reference, factor;
  } walk;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers, workgroupBuffers;
  /// For each online maximum: its references, which buildFactors() turns into factors.
  llvm::DenseMap<mlir::Value, mlir::Value> references;
  llvm::SmallVector<mlir::Value> stagingBuffers;
  llvm::SmallVector<std::pair<SpaceAccess, mlir::Value>> loads; ///< loads of the current nest
  llvm::DenseMap<mlir::Value, mlir::Value> forwarded;           ///< results of roots that are in registers of the
                                                                ///< current nest
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> copyOut;
};

} // namespace tilewright

#endif
