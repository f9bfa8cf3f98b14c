// Enumerates the addresses of the lanes and counts distinct cache lines, sectors and words per bank.
#include "passes/layout/WarpPasses.h"

#include "passes/target/AccessBytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <map>
#include <set>

using namespace tilewright;

static constexpr int64_t kLanes = 32, kBankBytes = 4, kBanks = 32;

double tilewright::bankPasses(llvm::ArrayRef<int64_t> addresses, int64_t bytes) {
  int64_t words = std::max<int64_t>(1, bytes / kBankBytes);
  double passes = 0, parts = 0;
  for (; !addresses.empty(); addresses = addresses.drop_front(std::min<size_t>(addresses.size(), kLanes / words))) {
    std::map<int64_t, std::set<int64_t>> banks;
    for (int64_t address : addresses.take_front(kLanes / words))
      for (int64_t word = address / kBankBytes; word < address / kBankBytes + words; ++word)
        banks[word % kBanks].insert(word);
    size_t ways = 1;
    for (const auto &[bank, own] : banks)
      ways = std::max(ways, own.size());
    passes += static_cast<double>(ways);
    ++parts;
  }
  return parts > 0 ? passes / parts : 1;
}

WarpPasses tilewright::warpPasses(int64_t group, int64_t rowBytes, int64_t bytes) {
  auto addressOf = [&](int64_t lane) { return lane / group * rowBytes + lane % group * bytes; };
  std::set<int64_t> lines, sectors;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    lines.insert(addressOf(lane) / kGpuLineBytes);
    for (int64_t byte = 0; byte < bytes; byte += std::min(bytes, kSectorBytes))
      sectors.insert((addressOf(lane) + byte) / kSectorBytes);
  }
  // Wide accesses are issued by half or quarter warps, which is not counted as an extra pass.
  int64_t lanesOfPart = kLanes / std::max<int64_t>(1, bytes / kBankBytes);
  WarpPasses passes;
  passes.global = static_cast<double>(lines.size()) / llvm::divideCeil(kLanes * bytes, kGpuLineBytes);
  passes.shared = bankPasses(llvm::map_to_vector(llvm::seq(lanesOfPart), addressOf), bytes);
  passes.wholeSectors = static_cast<int64_t>(sectors.size()) * kSectorBytes <= kLanes * bytes;
  return passes;
}
