// The simulated device for Python: a launch in plain types, a report as JSON.
#ifndef TILEWRIGHT_CORE_SIMULATE_H
#define TILEWRIGHT_CORE_SIMULATE_H

#include "core/Core.h"
#include "tools/simulator/Simulator.h"

#include <memory>
#include <vector>

namespace tilewright {

/// The L2 of a device, for launches one after another: what one leaves there the next one finds.
class TILEWRIGHT_CORE DeviceCache {
public:
  explicit DeviceCache(uint64_t capacityBytes);
  DeviceCache(const DeviceCache &) = delete;
  ~DeviceCache();

  /// Writes back what is dirty.
  void flush();
  /// Of each launch, in order: bytes read past the cache, and of those that it wrote last, bytes written back.
  std::vector<std::pair<uint64_t, uint64_t>> traffic() const;
  simulator::L2Cache &cache() { return *l2; }

private:
  std::unique_ptr<simulator::L2Cache> l2;
};

/// The report, or why there is none.
TILEWRIGHT_CORE std::tuple<std::string, std::string> simulateToJson(const simulator::Launch &launch);

} // namespace tilewright

#endif
