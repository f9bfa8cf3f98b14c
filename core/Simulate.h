// The simulated device for Python: a launch in plain types, a report as JSON.
#ifndef TILEWRIGHT_CORE_SIMULATE_H
#define TILEWRIGHT_CORE_SIMULATE_H

#include "core/Core.h"
#include "tools/simulator/Simulator.h"

namespace tilewright {

/// The report, or why there is none.
TILEWRIGHT_CORE std::tuple<std::string, std::string> simulateToJson(const simulator::Launch &launch);

} // namespace tilewright

#endif
