// Tests the offsets of buffers: none that are live together overlap, and the memory is that of the fullest moment where
// that is possible.
#include "passes/support/BestFit.h"

#include "llvm/ADT/Sequence.h"
#include "gtest/gtest.h"
#include <random>

using namespace tilewright;

namespace {

bool liveTogether(const LiveBuffer &a, const LiveBuffer &b) { return a.first <= b.last && b.first <= a.last; }

int64_t fullestMoment(llvm::ArrayRef<LiveBuffer> buffers) {
  int64_t most = 0;
  for (const LiveBuffer &at : buffers) {
    int64_t live = 0;
    for (const LiveBuffer &other : buffers)
      live += other.first <= at.first && at.first <= other.last ? other.bytes : 0;
    most = std::max(most, live);
  }
  return most;
}

TEST(BestFitTest, what_lives_apart_shares_a_place) {
  BestFit fit = placeByBestFit({{64, 0, 1}, {64, 2, 3}, {128, 4, 4}});
  EXPECT_EQ(fit.end, 128);
}

TEST(BestFitTest, a_gap_is_filled_by_what_fits_best) {
  // The second buffer ends early and leaves 64 bytes between the two others.
  BestFit fit = placeByBestFit({{256, 0, 9}, {192, 0, 3}, {128, 0, 9}, {64, 5, 9}, {64, 5, 9}});
  EXPECT_EQ(fit.end, 256 + 192 + 128);
}

TEST(BestFitTest, nothing_that_lives_together_overlaps) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    llvm::SmallVector<LiveBuffer> buffers;
    for ([[maybe_unused]] int i : llvm::seq(1 + static_cast<int>(random() % 12))) {
      unsigned first = random() % 10;
      buffers.push_back(
          {64 * static_cast<int64_t>(1 + random() % 16), first, first + static_cast<unsigned>(random() % 5)});
    }
    BestFit fit = placeByBestFit(buffers);
    ASSERT_EQ(fit.offsets.size(), buffers.size());
    for (size_t a = 0; a < buffers.size(); ++a) {
      EXPECT_GE(fit.offsets[a], 0);
      EXPECT_LE(fit.offsets[a] + buffers[a].bytes, fit.end);
      for (size_t b = a + 1; b < buffers.size(); ++b)
        if (liveTogether(buffers[a], buffers[b])) {
          EXPECT_TRUE(fit.offsets[a] + buffers[a].bytes <= fit.offsets[b] ||
                      fit.offsets[b] + buffers[b].bytes <= fit.offsets[a]);
        }
    }
    EXPECT_GE(fit.end, fullestMoment(buffers));
  }
}

} // namespace
