// Enumerates the addresses of the lanes and counts distinct cache lines, sectors and words per bank.
#include "passes/layout/WarpPasses.h"

#include "passes/target/AccessBytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace tilewright;

static constexpr int64_t kBankBytes = 4, kBanks = 32;

/// Sorts the numbers, removes repeated ones and returns how many there are.
static size_t countDistinct(llvm::SmallVectorImpl<int64_t> &numbers) {
  std::sort(numbers.begin(), numbers.end()); // llvm::sort would call qsort, which allocates
  numbers.erase(llvm::unique(numbers), numbers.end());
  return numbers.size();
}

double tilewright::bankPasses(llvm::ArrayRef<int64_t> addresses, int64_t bytes) {
  int64_t words = std::max<int64_t>(1, bytes / kBankBytes);
  double passes = 0, parts = 0;
  for (; !addresses.empty(); addresses = addresses.drop_front(std::min<size_t>(addresses.size(), kWarpLanes / words))) {
    llvm::SmallVector<int64_t, kWarpLanes> read;
    for (int64_t address : addresses.take_front(kWarpLanes / words))
      for (int64_t word = 0; word < words; ++word)
        read.push_back(address / kBankBytes + word);
    countDistinct(read);
    llvm::SmallVector<unsigned, kBanks> ofBank(kBanks);
    for (int64_t word : read)
      ++ofBank[word % kBanks];
    passes += *llvm::max_element(ofBank);
    ++parts;
  }
  return parts > 0 ? passes / parts : 1;
}

WarpPasses tilewright::warpPasses(int64_t group, int64_t rowBytes, int64_t bytes) {
  auto addressOf = [&](int64_t lane) { return lane / group * rowBytes + lane % group * bytes; };
  llvm::SmallVector<int64_t, kWarpLanes> lines, sectors;
  for (int64_t lane = 0; lane < kWarpLanes; ++lane) {
    lines.push_back(addressOf(lane) / kGpuLineBytes);
    for (int64_t byte = 0; byte < bytes; byte += std::min(bytes, kSectorBytes))
      sectors.push_back((addressOf(lane) + byte) / kSectorBytes);
  }
  // Wide accesses are issued by half or quarter warps, which is not counted as an extra pass.
  int64_t lanesOfPart = kWarpLanes / std::max<int64_t>(1, bytes / kBankBytes);
  WarpPasses passes;
  passes.global = static_cast<double>(countDistinct(lines)) / llvm::divideCeil(kWarpLanes * bytes, kGpuLineBytes);
  passes.shared = bankPasses(llvm::map_to_vector(llvm::seq(lanesOfPart), addressOf), bytes);
  passes.wholeSectors = static_cast<int64_t>(countDistinct(sectors)) * kSectorBytes <= kWarpLanes * bytes;
  return passes;
}
