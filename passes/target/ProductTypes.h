// The element types of a contraction by role.
#ifndef TILEWRIGHT_TARGET_PRODUCTTYPES_H
#define TILEWRIGHT_TARGET_PRODUCTTYPES_H

#include <string>

namespace tilewright {

/// The element types of a contraction: "f32", "bf16", ...; integers that are widened state how, "si8" or "ui8".
struct ProductTypes {
  std::string rows;  ///< lhs, one element of which is broadcast to all lanes
  std::string lanes; ///< rhs, which is contiguous along the lanes
  std::string sums;
};

} // namespace tilewright

#endif
