// One term of a predicted cost. A prediction is a list of named terms, so that a report can show its breakdown.
#ifndef TILEWRIGHT_COST_COSTTERM_H
#define TILEWRIGHT_COST_COSTTERM_H

#include "dialects/tile/TileDialect.h"
#include <string>

namespace tilewright {

/// A named term of a prediction.
struct CostTerm {
  std::string name;
  tile::Unit unit = tile::Unit::one;
  double value = 0;
};

} // namespace tilewright

#endif
