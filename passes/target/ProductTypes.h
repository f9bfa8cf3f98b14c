#ifndef TILEWRIGHT_TARGET_PRODUCTTYPES_H
#define TILEWRIGHT_TARGET_PRODUCTTYPES_H

#include <string>

namespace tilewright {

/// What a contraction multiplies and sums: "f32", "bf16", ...; integers that are widened say how, "si8" or "ui8".
struct ProductTypes {
  std::string rows;  ///< of the operand that is one number for all lanes
  std::string lanes; ///< of the one that lies along them
  std::string sums;
};

} // namespace tilewright

#endif
