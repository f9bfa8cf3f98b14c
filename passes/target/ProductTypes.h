// The element types of a contraction by role.
#ifndef TILEWRIGHT_TARGET_PRODUCTTYPES_H
#define TILEWRIGHT_TARGET_PRODUCTTYPES_H

#include <string>

namespace tilewright {

/// The element types of a contraction: "f32", "bf16", ...; integers that are widened state how, "si8" or "ui8".
struct ProductTypes {
  std::string lhs; ///< one element is broadcast to all lanes of a vector
  std::string rhs; ///< contiguous along N, whose elements fill the lanes
  std::string accumulator;
};

} // namespace tilewright

#endif
