// The cheapest labels of nodes that have two each, where neighbours may pay for different ones: a minimum cut.
#ifndef TILEWRIGHT_SUPPORT_CHEAPESTLABELS_H
#define TILEWRIGHT_SUPPORT_CHEAPESTLABELS_H

#include <array>
#include <vector>

namespace tilewright {

/// Costs of labels 0 and 1.
struct LabelCosts {
  /// Costs of two nodes with different labels. Such a cost may be negative.
  struct Edge {
    unsigned from, to;
    double onlyFrom; ///< if `from` alone has label 1
    double onlyTo;   ///< if `to` alone has label 1
  };
  std::vector<std::array<double, 2>> nodes; ///< what a node pays for label 0 and for label 1
  std::vector<Edge> edges;

  /// Returns the sum of all costs.
  double of(const std::vector<bool> &labels) const;
};

/// Returns the labels whose costs have the least sum. They are exact if no edge has a negative sum of its two costs;
/// other edges are taken to have the sum zero, because no cut represents them.
std::vector<bool> cheapestLabels(const LabelCosts &costs);

} // namespace tilewright

#endif
