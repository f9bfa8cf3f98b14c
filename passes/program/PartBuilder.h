// Builds the tile program of one subprogram as Movement decided it: block edges become buffers, roots the bodies of
// loop nests, loads and stores go to bindings or buffers.
#ifndef TILEWRIGHT_PROGRAM_PARTBUILDER_H
#define TILEWRIGHT_PROGRAM_PARTBUILDER_H

#include "passes/program/PartSlices.h"
#include "passes/plan/apply/Roundings.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tilewright {

class PartBuilder : PartSlices {
public:
  /// Running maxima have a reference for every `referenceBlock` points of a row.
  PartBuilder(tile::SubprogramOp subprogram, mlir::ValueRange bindings, int64_t workgroupStaging,
              int64_t referenceBlock)
      : PartSlices(subprogram, bindings, decideMovement(subprogram, workgroupStaging, referenceBlock)),
        referenceBlock(referenceBlock) {}

  void build(mlir::OpBuilder &builder);

private:
  /// What one loop nest accumulates while its body is built.
  struct Accumulators {
    llvm::SmallVector<mlir::Value> slices, yields;
    llvm::SmallVector<mlir::AffineMap> maps;
    llvm::SmallVector<mlir::Attribute> inits;
    llvm::SmallVector<std::string> kinds;
    std::optional<unsigned> running; ///< the one that is used while it is accumulated
  };

  void stageForWorkgroup(mlir::OpBuilder &builder, mlir::Value input);

  // --- nests -------------------------------------------------------------------------------------------------------

  void buildNests(mlir::OpBuilder &builder, WalkPhase phase);
  void buildNest(mlir::OpBuilder &builder, unsigned n);
  void buildCopyIn(mlir::OpBuilder &builder, const SpaceAccess &access, mlir::Value buffer);
  /// A reduction that later nests read and that also leaves the kernel is copied from its buffer at the end.
  void copyOutBufferedReductions(mlir::OpBuilder &builder);
  /// A nest over the dims of `nest`, and inside them over `blocks` blocks, if there are any.
  void buildElementwise(mlir::OpBuilder &builder, const Nest &nest, llvm::function_ref<void(mlir::OpBuilder &)> fill,
                        int64_t blocks = 0);
  tile::ComputeOp createCompute(mlir::OpBuilder &builder, const Nest &nest, Accumulators &accs, mlir::Block *body,
                                int64_t blocks = 0);
  /// Of the exponentials that stand for parts of a running maximum.
  mlir::arith::FastMathFlags approximation() {
    return allowsFastMath(subprogram) ? mlir::arith::FastMathFlags::afn : mlir::arith::FastMathFlags::none;
  }
  int64_t keptAlong(const Nest &nest) { return tilewright::keptAlong(subprogram, nest); }
  const Nest &nestOf(mlir::Value tensor) { return movement.nests[movement.nestOf.lookup(tensor.getDefiningOp())]; }

  // --- the body of a nest ------------------------------------------------------------------------------------------

  /// Copies the body of a root into the nest, with its dims placed in the nest.
  void cloneRoot(mlir::OpBuilder &builder, unsigned n, tile::ExprOp root, mlir::Block *body, Accumulators &accs);
  mlir::Value readInput(mlir::OpBuilder &builder, unsigned n, tile::ExprOp root, unsigned input);
  mlir::Value load(mlir::OpBuilder &builder, unsigned n, const SpaceAccess &access);
  mlir::Value loadAt(mlir::OpBuilder &builder, mlir::Value slice, mlir::AffineMap at);
  /// Where a reduction leaves its result: in its buffer, or in the first output that it is.
  mlir::Value sliceOf(mlir::Value tensor);
  void storeResult(mlir::OpBuilder &builder, tile::ExprOp root, unsigned i, mlir::Value value, const Nest &nest);
  void addAccumulator(tile::ExprOp root, unsigned i, std::optional<mlir::vector::CombiningKind> kind,
                      mlir::Value yielded, const Nest &nest, Accumulators &accs);

  // --- what is relative to references of a running maximum (PartMaximum.cpp) -----------------------------------------

  /// One number for each element of the maximum's tile and each block of what it reduces.
  mlir::Value allocateReferences(mlir::OpBuilder &builder, mlir::Value maximum);
  /// The nest of the maximum leaves the reference of each block where its factor will be.
  void storeReference(mlir::OpBuilder &builder, tile::ExprOp root, mlir::Value reference, const Nest &nest);
  /// Makes factors of the references r: exp(r - maximum), and one where they are equal, infinities too.
  void buildFactors(mlir::OpBuilder &builder, tile::ExprOp root);
  /// An element that was stored relative to a reference, relative to the maximum.
  mlir::Value corrected(mlir::OpBuilder &builder, mlir::Value value, const SpaceAccess &access, const Nest &nest);
  int64_t blocksOfReferences();

  // --- blocks of a reduced dim (PartWalk.cpp) ------------------------------------------------------------------------

  /// What is reduced along the walked dim starts before its blocks, and each block is joined to those before it.
  void buildWalk(mlir::OpBuilder &builder);
  mlir::Value endInTile(mlir::OpBuilder &builder, mlir::AffineExpr linear);
  /// A nest over the rows of `root`, behind all that the block computed: `fill` gets what was reduced so far.
  void updateRows(mlir::OpBuilder &builder, tile::ExprOp root,
                  llvm::function_ref<void(mlir::OpBuilder &, const Nest &, mlir::Value)> fill);
  /// The sum so far, made relative to what the maximum is now, and that of the block; at last, the sum alone.
  void joinBlock(mlir::OpBuilder &builder, tile::ExprOp root, bool last);
  /// The maximum m of all blocks so far, and the factor exp(old - m) for what was summed relative to the old one: one
  /// where they are equal, infinities too. Rows of which nothing counts yet are relative to zero, so that their
  /// exponentials are zero.
  void joinMaximum(mlir::OpBuilder &builder);
  /// Of rows in which nothing counted the graph's exponentials are exp(-inf + inf).
  void markEmptyRows(mlir::OpBuilder &builder);
  mlir::AffineMap grownIndex(tile::ExprOp root, const Nest &nest);
  mlir::AffineMap blockIndex(tile::ExprOp root, const Nest &nest);

  int64_t referenceBlock;
  llvm::SmallVector<mlir::Value> offsets; ///< of the grid dims, as in the subprogram's `grid`
  mlir::Value walkOffset;                 ///< of the block of the walked dim
  /// Where a dim is walked: what each reduction along it finds in a block, and for each element of the maximum what
  /// exponentials are relative to, and the factor for those of the blocks before.
  struct {
    llvm::DenseMap<mlir::Operation *, mlir::Value> block;
    mlir::Value reference, factor;
  } walk;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers, workgroupBuffers;
  /// By a running maximum: its references, then the factors of what is relative to it.
  llvm::DenseMap<mlir::Value, mlir::Value> references;
  llvm::SmallVector<mlir::Value> stagingBuffers;
  llvm::SmallVector<std::pair<SpaceAccess, mlir::Value>> loads; ///< of the current nest
  llvm::DenseMap<mlir::Value, mlir::Value> forwarded;           ///< root results in registers of the current nest
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> copyOut;
};

} // namespace tilewright

#endif
