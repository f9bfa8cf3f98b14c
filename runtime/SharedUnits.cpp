#include "runtime/SharedUnits.h"

using namespace tilewright::runtime;

static constexpr uint64_t kFirst = uint64_t(1) << 32; ///< one unit in the upper half of a part

void SharedUnits::share(uint32_t launch, uint32_t count) {
  for (unsigned thread = 0; thread < threads; ++thread) {
    uint64_t first = uint64_t(count) * thread / threads, end = uint64_t(count) * (thread + 1) / threads;
    part(launch, thread) = first * kFirst | end;
  }
}

std::optional<uint32_t> SharedUnits::take(uint32_t launch, unsigned thread) {
  for (unsigned other = 0; other < threads; ++other) {
    std::atomic<uint64_t> &own = part(launch, (thread + other) % threads);
    for (uint64_t now = own; now / kFirst < now % kFirst;) {
      uint64_t less = other == 0 ? now + kFirst : now - 1;
      if (own.compare_exchange_weak(now, less))
        return static_cast<uint32_t>(other == 0 ? now / kFirst : less % kFirst);
    }
  }
  return std::nullopt;
}
