// The attribute `tile.blocking` of a contraction, and the struct that it holds: how a core of a processor computes the
// contraction with register blocks. The planner decides it (layout/Blocking.h), the plan's JSON states it, and code
// generation carries it out or refuses it.
#ifndef TILEWRIGHT_DIALECTS_TILE_BLOCKINGATTR_H
#define TILEWRIGHT_DIALECTS_TILE_BLOCKINGATTR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>

namespace tilewright {

/// On a contraction (a `tile.expr` or a `tile.compute`) for a processor: an i64 array, the fields of a BlockingChoice.
/// Without it, code generation takes what the planner would choose.
inline constexpr llvm::StringLiteral kBlockingAttr = "tile.blocking";

/// A register block has the rows of the micro kernel.
struct BlockingChoice {
  int64_t vectors = 1;  ///< vectors along N of a register block
  int64_t unroll = 1;   ///< steps along K of one iteration of the innermost loop
  int64_t panelK = 0;   ///< K of the panels of rhs that are copied before all rows of a tile use them; 0: none are
  int64_t prefetch = 0; ///< bytes of the smallest panel whose row blocks fetch the next one; 0: none do

  bool operator==(const BlockingChoice &other) const;
  bool operator!=(const BlockingChoice &other) const { return !(*this == other); }
};

mlir::Attribute attrOf(const BlockingChoice &choice, mlir::MLIRContext *context);

/// Returns the choice that a legal attribute holds.
BlockingChoice blockingOf(mlir::Attribute attribute);

/// Returns why the attribute is not one of a contraction, or an empty string.
std::string whyNoBlocking(mlir::Attribute attribute);

/// Returns why no contraction can have the choice, with the field that is wrong; or an empty string.
std::string whyNoBlocking(const BlockingChoice &choice);

llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const BlockingChoice &choice);

} // namespace tilewright

#endif
