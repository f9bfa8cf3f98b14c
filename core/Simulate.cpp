#include "core/Simulate.h"

using namespace tilewright;

std::tuple<std::string, std::string> tilewright::simulateToJson(const simulator::Launch &launch) {
  auto [report, error] = simulator::simulate(launch);
  return {error.empty() ? simulator::toJson(report) : "", error};
}
