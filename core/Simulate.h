// Runs launches on the simulated device for Python, with launches in plain types and reports as JSON.
#ifndef TILEWRIGHT_CORE_SIMULATE_H
#define TILEWRIGHT_CORE_SIMULATE_H

#include "core/Core.h"
#include "tools/simulator/Simulator.h"

#include <memory>
#include <vector>

namespace tilewright {

/// The L2 of a device. It keeps its lines between launches, so that a launch finds those of earlier ones.
class TILEWRIGHT_CORE DeviceCache {
public:
  explicit DeviceCache(uint64_t capacityBytes);
  DeviceCache(const DeviceCache &) = delete;
  ~DeviceCache();

  /// Writes dirty lines back.
  void flush();
  /// Returns for each launch, in order, the bytes that it read from DRAM, and the bytes written back to DRAM that it
  /// was the last to write.
  std::vector<std::pair<uint64_t, uint64_t>> traffic() const;
  simulator::L2Cache &cache() { return *l2; }

private:
  std::unique_ptr<simulator::L2Cache> l2;
};

/// Returns the report, or an error.
TILEWRIGHT_CORE std::tuple<std::string, std::string> simulateToJson(const simulator::Launch &launch);

} // namespace tilewright

#endif
