// A tile program as a function over memrefs: what is the same on every target. The workgroup takes its contiguous range
// of each part's tiles one after another; how a loop nest, a move and a barrier are carried out is the target's.
#ifndef TILEWRIGHT_CODEGEN_COMMON_PROGRAMCONVERTER_H
#define TILEWRIGHT_CODEGEN_COMMON_PROGRAMCONVERTER_H

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace tilewright {

class ProgramConverter {
public:
  explicit ProgramConverter(tile::ProgramOp program) : program(program) {}
  virtual ~ProgramConverter() = default;

  /// func.func @name(bindings..., workgroup memory, workgroup index), with what a kernel remembers of its program.
  /// Failure: an error was emitted.
  llvm::FailureOr<mlir::func::FuncOp> convert(mlir::OpBuilder &builder);

protected:
  virtual llvm::LogicalResult emitCompute(mlir::OpBuilder &builder, tile::ComputeOp compute,
                                          mlir::IRMapping &values) = 0;
  virtual void emitSync(mlir::OpBuilder &builder, tile::SyncOp sync) = 0;
  /// Between two phases; where workgroups cannot wait for each other, which is so by default, an error.
  virtual llvm::LogicalResult emitGridSync(mlir::OpBuilder &, tile::SyncOp sync) {
    return sync.emitError("the target has no barrier of the grid; run tile-partition-at-grid-sync before");
  }
  /// Before the first op of a part, and after the last op of each of its tiles if there are several.
  virtual void beginPart(mlir::OpBuilder &, tile::ParallelOp) {}
  virtual void endTile(mlir::OpBuilder &, tile::ParallelOp) {}
  /// Whether something of a part that has a phase for itself begins in front of the barrier before it, and its code, at
  /// the first tile of the workgroup.
  virtual bool beginsEarly(tile::ParallelOp) const { return false; }
  virtual llvm::LogicalResult emitEarly(mlir::OpBuilder &, tile::ParallelOp, mlir::IRMapping &) {
    return llvm::success();
  }
  /// Whether the target converts the workgroup's tiles, of which there are several, in an order of its own.
  virtual bool convertTiles(mlir::OpBuilder &, tile::ParallelOp, mlir::Value low, mlir::Value high,
                            const mlir::IRMapping &) {
    return false;
  }
  /// The tiles of a part whose steps are shared out, of which the workgroup has those from `low` to `high`.
  virtual llvm::LogicalResult convertSteps(mlir::OpBuilder &, tile::ParallelOp part, mlir::Value workgroup,
                                           mlir::Value low, mlir::Value high, mlir::IRMapping) {
    return part.emitError("workgroups of the target do not share tiles");
  }
  /// Maps the offsets of a tile of the part; `first` is the workgroup's.
  virtual void enterTile(mlir::OpBuilder &builder, tile::ParallelOp part, mlir::Value first, mlir::Value tile,
                         mlir::IRMapping &values);
  void convertOp(mlir::OpBuilder &builder, mlir::Operation &op, mlir::IRMapping &values);
  /// After the last op of each block of a walked dim.
  virtual void endBlock(mlir::OpBuilder &, mlir::Location) {}
  /// Values that a loop carries besides what is in memory: what they are before it, what they are from here on (in its
  /// body, and behind it), and what they have become.
  virtual llvm::SmallVector<mlir::Value> startLoop(mlir::OpBuilder &, mlir::scf::ForOp) { return {}; }
  virtual void enterLoop(mlir::scf::ForOp, mlir::ValueRange) {}
  virtual llvm::SmallVector<mlir::Value> carriedBy(mlir::scf::ForOp) { return {}; }
  virtual void finish(mlir::OpBuilder &) {}
  /// The memory spaces of bindings and of the workgroup's memory.
  virtual mlir::Attribute globalSpace() const { return {}; }
  virtual mlir::Attribute blockSpace() const { return {}; }
  /// Bytes of workgroup memory: the program's buffers, and what the target needs beyond them.
  virtual int64_t blockBytes() { return program.getBlockBytes(); }
  /// How many of them the runtime has to give, and where all of them are.
  virtual int64_t givenBytes() { return blockBytes(); }
  /// How many workgroups are launched: those of the program, and what the target needs beyond them.
  virtual int64_t launchedWorkgroups() { return program.getWorkgroups(); }
  virtual mlir::Value placeMemory(mlir::OpBuilder &, mlir::Value given) { return given; }

  /// Whether the walk is at another tile than the workgroup's first; null: it has one tile only.
  mlir::Value isLaterTile(mlir::OpBuilder &builder, tile::ParallelOp part) const;

  tile::ProgramOp program;
  mlir::Value memory; ///< block-space memory of the workgroup
  /// The number of the tile that the walk is at, and of the workgroup's first.
  struct {
    mlir::Value first, tile;
  } current;

private:
  void convertPhases(mlir::OpBuilder &builder, mlir::Value workgroup, mlir::IRMapping &values);
  void convertEarly(mlir::OpBuilder &builder, tile::ParallelOp part, mlir::Value workgroup, mlir::IRMapping values);
  void convertParts(mlir::OpBuilder &builder, llvm::ArrayRef<tile::ParallelOp> parts, mlir::Value workgroup,
                    mlir::IRMapping &values);
  void convertPart(mlir::OpBuilder &builder, tile::ParallelOp part, mlir::Value workgroup, mlir::IRMapping values);
  void convertLoop(mlir::OpBuilder &builder, mlir::scf::ForOp loop, mlir::IRMapping &values);

  void convertKeep(mlir::OpBuilder &builder, tile::KeepOp keep, mlir::IRMapping &values);

  bool isConverted = true;
};

} // namespace tilewright

#endif
