// Thin layer over tools/simulator.
#include "core/Simulate.h"

#include "tools/simulator/L2Cache.h"

using namespace tilewright;

DeviceCache::DeviceCache(uint64_t capacityBytes) : l2(std::make_unique<simulator::L2Cache>(capacityBytes)) {}
DeviceCache::~DeviceCache() = default;

void DeviceCache::flush() { l2->flush(); }

std::vector<std::pair<uint64_t, uint64_t>> DeviceCache::traffic() const {
  std::vector<std::pair<uint64_t, uint64_t>> kernels;
  for (const simulator::L2Cache::Traffic &kernel : l2->kernels)
    kernels.push_back({kernel.bytesRead, kernel.bytesWritten});
  return kernels;
}

std::tuple<std::string, std::string> tilewright::simulateToJson(const simulator::Launch &launch) {
  auto [report, error] = simulator::simulate(launch);
  return {error.empty() ? simulator::toJson(report) : "", error};
}
