// One term of a predicted cost. A prediction is a list of named terms, so that a report can show its breakdown.
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
