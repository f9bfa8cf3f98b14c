// Readable text for MLIR locations.
#ifndef TILEWRIGHT_SUPPORT_LOCATIONS_H
#define TILEWRIGHT_SUPPORT_LOCATIONS_H

#include "mlir/IR/Location.h"
#include <string>

namespace tilewright {

/// Returns a location for people: the name that a front end gave, else file:line:column; empty if unknown.
std::string describe(mlir::Location location);

} // namespace tilewright

#endif
