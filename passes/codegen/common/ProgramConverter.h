// Converts a tile program to a function over memrefs. This base class holds the steps that all targets share: a
// workgroup takes a contiguous range of each part's tiles, one after another. Each target derives a class that emits
// loop nests, moves and barriers.
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

  /// Creates func.func @name(bindings..., workgroup memory, workgroup index), whose attributes carry the properties of
  /// the program that launchers need. On failure, an error has been emitted.
  llvm::FailureOr<mlir::func::FuncOp> convert(mlir::OpBuilder &builder);

protected:
  virtual llvm::LogicalResult emitCompute(mlir::OpBuilder &builder, tile::ComputeOp compute,
                                          mlir::IRMapping &values) = 0;
  virtual void emitSync(mlir::OpBuilder &builder, tile::SyncOp sync) = 0;
  /// Emits the grid barrier between two phases. The default is an error, for targets whose workgroups cannot wait for
  /// each other.
  virtual llvm::LogicalResult emitGridSync(mlir::OpBuilder &, tile::SyncOp sync) {
    return sync.emitError("the target has no grid barrier");
  }
  /// Hooks: called before the first op of a part, and after the last op of each of its tiles if a workgroup has
  /// several.
  virtual void beginPart(mlir::OpBuilder &, tile::ParallelOp) {}
  virtual void endTile(mlir::OpBuilder &, tile::ParallelOp) {}
  /// Returns true if some work of a part begins before the grid barrier in front of it, such as prefetches. Such a part
  /// is the only one of its phase. emitEarly() emits that work, for the workgroup's first tile.
  virtual bool beginsEarly(tile::ParallelOp) const { return false; }
  virtual llvm::LogicalResult emitEarly(mlir::OpBuilder &, tile::ParallelOp, mlir::IRMapping &) {
    return llvm::success();
  }
  /// Converts the several tiles of a workgroup in an order of the target's own. Returns false if the target has no such
  /// order; the tiles then follow each other.
  virtual bool convertTiles(mlir::OpBuilder &, tile::ParallelOp, mlir::Value low, mlir::Value high,
                            const mlir::IRMapping &) {
    return false;
  }
  /// Converts a part in stream-K form, in which workgroups share the steps along K of all tiles. This workgroup has the
  /// steps from `low` to `high`.
  virtual llvm::LogicalResult convertSteps(mlir::OpBuilder &, tile::ParallelOp part, mlir::Value workgroup,
                                           mlir::Value low, mlir::Value high, mlir::IRMapping) {
    return part.emitError("workgroups of this target cannot share tiles (stream-K)");
  }
  /// Maps the offsets of a tile of the part. `first` is the workgroup's first tile.
  virtual void enterTile(mlir::OpBuilder &builder, tile::ParallelOp part, mlir::Value first, mlir::Value tile,
                         mlir::IRMapping &values);
  void convertOp(mlir::OpBuilder &builder, mlir::Operation &op, mlir::IRMapping &values);
  /// Hook: called after the last op of each block of a walked dim.
  virtual void endBlock(mlir::OpBuilder &, mlir::Location) {}
  /// Hooks for values that a loop carries in registers: startLoop() returns their initial values, enterLoop() receives
  /// their current values in the body and again behind the loop, and carriedBy() returns their values at the end of the
  /// body.
  virtual llvm::SmallVector<mlir::Value> startLoop(mlir::OpBuilder &, mlir::scf::ForOp) { return {}; }
  virtual void enterLoop(mlir::scf::ForOp, mlir::ValueRange) {}
  virtual llvm::SmallVector<mlir::Value> carriedBy(mlir::scf::ForOp) { return {}; }
  /// Hook: called at the end of the function.
  virtual void finish(mlir::OpBuilder &) {}
  /// Return the memory spaces of bindings and of the workgroup's memory.
  virtual mlir::Attribute globalSpace() const { return {}; }
  virtual mlir::Attribute blockSpace() const { return {}; }
  /// Returns the bytes of workgroup memory: the program's buffers and the target's own.
  virtual int64_t blockBytes() { return program.getBlockBytes(); }
  /// Returns how many of these bytes the runtime has to provide.
  virtual int64_t givenBytes() { return blockBytes(); }
  /// Returns the number of launched workgroups: those of the program and the target's own.
  virtual int64_t launchedWorkgroups() { return program.getWorkgroups(); }
  /// Returns the workgroup's memory. `given` is the memory that the runtime provides.
  virtual mlir::Value placeMemory(mlir::OpBuilder &, mlir::Value given) { return given; }

  /// Returns an i1 that is true if the walk is past the workgroup's first tile, or null if it has only one tile.
  mlir::Value isLaterTile(mlir::OpBuilder &builder, tile::ParallelOp part) const;

  tile::ProgramOp program;
  mlir::Value memory; ///< block-space memory of the workgroup
  /// The workgroup's first tile and the current tile of the walk, as numbers.
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
