// Matches a loop nest that is a sum of products and finds the roles of its dims, as register blocks need them on any
// target.
#ifndef TILEWRIGHT_GRAPH_MATCHCONTRACTION_H
#define TILEWRIGHT_GRAPH_MATCHCONTRACTION_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/ProductTypes.h"
#include <optional>

namespace tilewright {

/// A tile.compute of the form acc += lhs * rhs.
struct Contraction {
  tile::LoadOp lhs, rhs; ///< lhs does not depend on N; rhs is contiguous along N
  int64_t m = -1, n;     ///< the dims of the register block; M is -1 for a vector times a matrix
  llvm::SmallVector<int64_t> batch, reduced;
  ProductTypes types;
  mlir::Operation *lhsWidening, *rhsWidening; ///< null: none
};

/// Says if operands may be read under a guard, as padded images are. Elements outside of it are zeros.
enum class OperandGuards { refused, allowed };

/// Matches the nest, if its body does nothing else and exactly one operand varies along its vector dim.
std::optional<Contraction> matchContraction(tile::ComputeOp compute, OperandGuards guards = OperandGuards::refused);

} // namespace tilewright

#endif
