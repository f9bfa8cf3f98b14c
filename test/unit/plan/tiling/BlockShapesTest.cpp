// Tests the choice among blocks: the errors of predictions and of counted bytes decide what counts as better.
#include "passes/plan/tiling/gpu/BlockShapes.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {

/// A block whose kernel touches a megabyte, without its launch.
BlockCandidate candidate(double microseconds, double movedBytes, double sharedPasses = 1) {
  BlockCandidate block;
  block.latency.seconds = microseconds * 1e-6;
  block.work.bytes = 1e6;
  block.work.movedBytes = movedBytes;
  block.work.nests.emplace_back();
  block.work.nests.back().sharedPasses = sharedPasses;
  return block;
}

/// Returns the best of two candidates if an error has this value.
int64_t bestWith(double ConfidenceCosts::*error, double value, const BlockCandidate &first,
                 const BlockCandidate &second) {
  Target target = *lookupTarget("cuda:h200");
  target.launchSeconds = 0;
  target.costs.confidence.*error = value;
  return bestBlock({first, second}, target);
}

TEST(BlockShapes, a_block_wins_if_it_is_faster_by_the_error_of_tilings) {
  BlockCandidate first = candidate(100, 1e6), second = candidate(98, 1e6);
  EXPECT_EQ(bestWith(&ConfidenceCosts::tilings, 0.03, first, second), 0);
  EXPECT_EQ(bestWith(&ConfidenceCosts::tilings, 0.01, first, second), 1);
}

TEST(BlockShapes, within_the_error_of_kernels_the_block_that_repeats_no_reads_wins) {
  BlockCandidate repeats = candidate(100, 3e6), once = candidate(115, 1e6);
  EXPECT_EQ(bestWith(&ConfidenceCosts::kernels, 0.2, repeats, once), 1);
  EXPECT_EQ(bestWith(&ConfidenceCosts::kernels, 0.1, repeats, once), 0);
}

TEST(BlockShapes, fewer_bytes_count_beyond_their_error) {
  BlockCandidate more = candidate(100, 3e6), fewer = candidate(100, 2.98e6);
  EXPECT_EQ(bestWith(&ConfidenceCosts::bytes, 0.01, more, fewer), 0);
  EXPECT_EQ(bestWith(&ConfidenceCosts::bytes, 0.001, more, fewer), 1);
}

TEST(BlockShapes, bank_conflicts_are_avoided_within_the_error_of_forms) {
  BlockCandidate conflicts = candidate(100, 1e6, /*sharedPasses=*/2), smooth = candidate(104, 1e6);
  EXPECT_EQ(bestWith(&ConfidenceCosts::forms, 0.05, conflicts, smooth), 1);
  EXPECT_EQ(bestWith(&ConfidenceCosts::forms, 0.02, conflicts, smooth), 0);
}
} // namespace
