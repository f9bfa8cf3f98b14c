// A loop nest that is a sum of products, with the roles of its dims, as register blocks compute it on any target.
#ifndef TILEWRIGHT_GRAPH_MATCHCONTRACTION_H
#define TILEWRIGHT_GRAPH_MATCHCONTRACTION_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/ProductTypes.h"
#include <optional>

namespace tilewright {

/// What a tile.compute has to be: acc += row operand * lane operand.
struct Contraction {
  tile::LoadOp rows, lanes; ///< the operand that is one number for all lanes, and the one that lies along them
  int64_t row = -1, lane;   ///< the dims that the register block spans; no row: a vector times a matrix
  llvm::SmallVector<int64_t> batch, reduced;
  ProductTypes types;
  mlir::Operation *rowWidening, *laneWidening; ///< null: none
};

/// The nest as one, if its body does nothing else and one operand alone changes along its vector dim.
std::optional<Contraction> matchContraction(tile::ComputeOp compute);

} // namespace tilewright

#endif
