#include "passes/cost/WarpPasses.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <map>
#include <set>

using namespace tilewright;

static constexpr int64_t kLanes = 32, kLineBytes = 128, kSectorBytes = 32, kBankBytes = 4, kBanks = 32;

WarpPasses tilewright::warpPasses(int64_t group, int64_t rowBytes, int64_t bytes) {
  auto addressOf = [&](int64_t lane) { return lane / group * rowBytes + lane % group * bytes; };
  std::set<int64_t> lines, sectors;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    lines.insert(addressOf(lane) / kLineBytes);
    for (int64_t byte = 0; byte < bytes; byte += std::min(bytes, kSectorBytes))
      sectors.insert((addressOf(lane) + byte) / kSectorBytes);
  }
  // Wide accesses go by half and quarter warps, which is no pass beyond the best.
  int64_t words = std::max<int64_t>(1, bytes / kBankBytes), ways = 1;
  std::map<int64_t, std::set<int64_t>> banks;
  for (int64_t lane = 0; lane < kLanes / words; ++lane)
    for (int64_t word = addressOf(lane) / kBankBytes; word < addressOf(lane) / kBankBytes + words; ++word)
      banks[word % kBanks].insert(word);
  for (const auto &[bank, own] : banks)
    ways = std::max<int64_t>(ways, own.size());
  WarpPasses passes;
  passes.global = static_cast<double>(lines.size()) / llvm::divideCeil(kLanes * bytes, kLineBytes);
  passes.shared = static_cast<double>(ways);
  passes.wholeSectors = static_cast<int64_t>(sectors.size()) * kSectorBytes <= kLanes * bytes;
  return passes;
}
