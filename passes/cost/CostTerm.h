// One term of a predicted cost. Predictions are lists of named terms, so that a report can show what they are made of.
#ifndef TILEWRIGHT_COST_COSTTERM_H
#define TILEWRIGHT_COST_COSTTERM_H

#include <string>

namespace tilewright {

/// A named term of a prediction, with its unit ("s", "B", "1").
struct CostTerm {
  std::string name, unit;
  double value = 0;
};

} // namespace tilewright

#endif
