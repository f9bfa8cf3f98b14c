// Tests how the planner lets threads share an output tile: their shares make up the tile, and what does not fit is
// refused with numbers.
#include "passes/cost/ChooseGemm.h"
#include "passes/target/Warpgroups.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
MicroKernel kernelFor(const char *type) {
  ProductTypes types{type, type, "f32"};
  return *chooseMicroKernel(*lookupTarget("cuda:h200"), types, {1}, NumericsMode::standard);
}

/// Chooses with the costs that are not overridden.
OrDeclined<GemmTiling> usualTiling(const GemmTile &tile, int64_t threads, const MicroKernel &kernel,
                                   GemmUse use = {}) {
  return chooseGemmTiling(tile, threads, kernel, GpuCosts(), use);
}

TEST(ChooseGemm, shares_make_up_the_tile) {
  for (const char *type : {"f32", "f16"})
    for (int64_t m : {1, 3, 16, 37, 64, 128})
      for (int64_t n : {16, 53, 64, 128})
        for (int64_t threads : {64, 128, 256}) {
          MicroKernel kernel = kernelFor(type);
          OrDeclined<GemmTiling> tiling = usualTiling({m, n, 100, 4, 4}, threads, kernel);
          if (!tiling)
            continue;
          EXPECT_GE(tiling->m, m);
          EXPECT_GE(tiling->n, n);
          EXPECT_EQ(tiling->mUnits * tiling->ownM, tiling->m);
          EXPECT_EQ(tiling->nUnits * tiling->ownN, tiling->n);
          int64_t lanesOfUnit = kernel.unit == StepUnit::warp ? 32 : 1;
          EXPECT_LE(tiling->mUnits * tiling->nUnits * lanesOfUnit, threads);
          EXPECT_EQ(tiling->accumulators * lanesOfUnit, tiling->ownM * tiling->ownN);
          EXPECT_EQ(tiling->step % kernel.depth, 0);
        }
}

TEST(ChooseGemm, threads_stand_in_a_square) {
  GemmTiling tiling = *usualTiling({128, 128, 768, 4, 4}, 256, kernelFor("f32"));
  EXPECT_EQ(tiling.ownM, 8);
  EXPECT_EQ(tiling.ownN, 8);
  EXPECT_EQ(tiling.step, 16);
  EXPECT_EQ(tiling.sharedBytes(), 4 * 2 * 128 * 16 * 4);
}

TEST(ChooseGemm, warps_have_whole_blocks_of_the_instruction) {
  GemmTiling tiling = *usualTiling({1, 8, 768, 2, 2}, 128, kernelFor("bf16"));
  EXPECT_EQ(tiling.m, 16);
  EXPECT_EQ(tiling.n, 16);
  EXPECT_EQ(tiling.mUnits * tiling.nUnits, 1);
  EXPECT_EQ(tiling.accumulators, 8);
}

TEST(ChooseGemm, warpgroups_have_whole_panels) {
  MicroKernel kernel = *warpgroupKernel(*lookupTarget("cuda:h200"), {"f16", "f16", "f32"}, NumericsMode::standard);
  GemmTiling tiling = *usualTiling({128, 128, 768, 2, 2, true}, 256, kernel);
  EXPECT_EQ(tiling.ownM, 64);
  EXPECT_EQ(tiling.ownN, 128);
  EXPECT_EQ(tiling.accumulators, 64);
  EXPECT_EQ(tiling.step, 64);
  EXPECT_EQ(tiling.slotBytes(), 3 * 2 * 128 * 128);
  EXPECT_EQ(tiling.sharedBytes(), tiling.slotBytes() + 3 * 8); // one mbarrier per stage
  EXPECT_EQ(usualTiling({30, 64, 768, 2, 2, true}, 128, kernel)->heldM,
            64); // a descriptor addresses all of them
  EXPECT_EQ(usualTiling({64, 64, 768, 2, 2, true}, 256, kernel).why().reason,
            "a tile of 64x64 leaves threads idle in warpgroups");
  EXPECT_FALSE(usualTiling({64, 64, 768, 2, 2, true}, 64, kernel));
}

// With enough stages a step is still multiplied while the next one begins; with fewer, two blocks of an SM cover for
// each other.
TEST(ChooseGemm, steps_of_warpgroups_overlap_in_four_stages) {
  MicroKernel kernel = *warpgroupKernel(*lookupTarget("cuda:h200"), {"f16", "f16", "f32"}, NumericsMode::standard);
  GemmTiling large = *usualTiling({128, 256, 4096, 2, 2, true}, 256, kernel);
  EXPECT_EQ(large.accumulators, 128);
  EXPECT_EQ(large.ownN, 256);
  EXPECT_EQ(large.step, 64);
  EXPECT_EQ(large.slotBytes(), 4 * (128 + 256) * 64 * 2);
  EXPECT_TRUE(large.overlaps);
  EXPECT_EQ(large.stepsInFlight(), 2);
  EXPECT_EQ(large.registers(GpuCosts()), 256); // all there are: the accumulators leave no room for another block
  GemmTiling narrow = *usualTiling({64, 256, 4096, 2, 2, true}, 128, kernel);
  EXPECT_EQ(narrow.accumulators, 128);
  EXPECT_EQ(narrow.stepsInFlight(), 2);
  GemmTiling square = *usualTiling({128, 128, 4096, 2, 2, true}, 256, kernel);
  EXPECT_FALSE(square.overlaps);
  EXPECT_EQ(square.stepsInFlight(), 2);
  EXPECT_EQ(usualTiling({256, 256, 4096, 2, 2, true}, 256, kernel).why().reason,
            "a tile of 256x256 needs 256 accumulators in each of 256 threads, which hold 128");
}

// For any type, an instruction takes 32 bytes along K and a step takes 128.
TEST(ChooseGemm, warpgroups_of_bytes_and_of_tf32_have_steps_of_as_many_bytes) {
  Target h200 = *lookupTarget("cuda:h200");
  // The operands differ in signedness.
  EXPECT_FALSE(warpgroupKernel(h200, {"ui8", "si8", "i32"}, NumericsMode::standard));
  MicroKernel bytes = *warpgroupKernel(h200, {"ui8", "ui8", "i32"}, NumericsMode::standard);
  EXPECT_TRUE(readsAlongK(bytes));
  EXPECT_EQ(bytes.depth, 32);
  EXPECT_EQ(usualTiling({128, 128, 768, 1, 1, true}, 256, bytes)->step, 128);
  MicroKernel words = *warpgroupKernel(h200, {"f32", "f32", "f32"}, NumericsMode::tf32);
  EXPECT_TRUE(readsAlongK(words));
  EXPECT_EQ(words.depth, 8);
  EXPECT_EQ(usualTiling({128, 128, 768, 4, 4, true}, 256, words)->step, 32);
  EXPECT_FALSE(readsAlongK(*warpgroupKernel(h200, {"f16", "f16", "f32"}, NumericsMode::standard)));
}

// The lanes of a warp together hold 32 bytes along K of this instruction's operands, and as many of the next one's.
TEST(ChooseGemm, registers_are_those_of_sums_factors_and_the_rest) {
  GpuCosts costs;
  EXPECT_EQ(usualTiling({128, 128, 768, 2, 2, true}, 256, kernelFor("f16"))->registers(costs),
            64 + 64 + (64 + 32) / 2);
  EXPECT_EQ(usualTiling({128, 128, 768, 4, 4, true}, 256, kernelFor("f32"))->registers(costs), 64 + 64 + 2 * (8 + 8));
}

TEST(ChooseGemm, warpgroups_are_of_named_devices) {
  EXPECT_FALSE(warpgroupKernel(*lookupTarget("sm_90"), {"f16", "f16", "f32"}, NumericsMode::standard));
  EXPECT_FALSE(warpgroupKernel(*lookupTarget("cuda:a100"), {"f16", "f16", "f32"}, NumericsMode::standard));
  EXPECT_FALSE(warpgroupKernel(*lookupTarget("cuda:h200"), {"f32", "f32", "f32"}, NumericsMode::standard));
}

TEST(ChooseGemm, steps_are_shorter_where_rows_are_long) {
  GemmTiling tiling = *usualTiling({16, 1024, 768, 2, 2}, 256, kernelFor("f16"));
  EXPECT_EQ(tiling.step, 16);
  EXPECT_EQ(tiling.sharedBytes(), 3 * (16 + 1024) * 16 * 2);
}

TEST(ChooseGemm, warps_without_sums_of_their_own_share_the_terms) {
  GemmTiling tiling = *usualTiling({1, 16, 768, 2, 2, true}, 256, kernelFor("f16"), {/*kSlices=*/8});
  EXPECT_EQ(tiling.mUnits * tiling.nUnits, 1);
  EXPECT_EQ(tiling.accumulatorThreads, 32);
  EXPECT_EQ(tiling.step, 8 * 32);
  EXPECT_EQ(tiling.ownK(), 32);
  EXPECT_EQ(tiling.heldM, 1); // the instruction's other 15 rows repeat it
  EXPECT_EQ(tiling.stages, 5);
  EXPECT_GE(tiling.sharedBytes(), 7 * 32 * tiling.accumulators * 4);
}

// A block that is alone on its SM keeps as many steps in flight as there are, as far as shared memory allows.
TEST(ChooseGemm, blocks_alone_on_an_sm_have_more_steps_on_the_way) {
  auto stream = [](int64_t k, bool alone) {
    return *usualTiling({1, 32, k, 2, 2, true}, 256, kernelFor("f16"), {/*kSlices=*/4, alone});
  };
  EXPECT_EQ(stream(4096, /*alone=*/true).stages, 11);
  EXPECT_LE(stream(4096, /*alone=*/true).sharedBytes(), 96 * 1024);
  EXPECT_EQ(stream(4096, /*alone=*/false).stages, 5);
  EXPECT_EQ(stream(768, /*alone=*/true).stages, 6);
  auto square = [](int64_t m, int64_t n, const MicroKernel &kernel, bool alone) {
    return *usualTiling({m, n, 1024, 2, 2, true}, 128, kernel, {/*kSlices=*/1, alone});
  };
  EXPECT_EQ(square(32, 32, kernelFor("f16"), /*alone=*/true).stages, 12);
  EXPECT_EQ(square(32, 32, kernelFor("f16"), /*alone=*/false).stages, 5);
  GemmTiling panels =
      square(64, 128, *warpgroupKernel(*lookupTarget("cuda:h200"), {"f16", "f16", "f32"}, NumericsMode::standard),
             /*alone=*/true);
  EXPECT_EQ(panels.stages, 8);
  EXPECT_TRUE(panels.overlaps);
  EXPECT_LE(panels.slotBytes(), 192 * 1024);
  EXPECT_EQ(
      square(64, 128, *warpgroupKernel(*lookupTarget("cuda:h200"), {"f16", "f16", "f32"}, NumericsMode::standard),
             /*alone=*/false)
          .stages,
      4);
}

// Lines that begin inside words have room for one more word; a whole extra atom keeps neighbouring lines in different
// banks.
TEST(ChooseGemm, shifted_lines_have_an_atom_more) {
  GemmTile tile{16, 64, 768, 2, 2, true};
  GemmTiling plain = *usualTiling(tile, 128, kernelFor("f16"));
  tile.lhsShifted = tile.rhsShifted = true; // 16 lines of lhs, and one line of rhs per K
  GemmTiling shifted = *usualTiling(tile, 128, kernelFor("f16"));
  EXPECT_EQ(shifted.lhsSlotBytes, plain.lhsSlotBytes + 16 * 16);
  EXPECT_EQ(shifted.rhsSlotBytes, plain.rhsSlotBytes + shifted.step * 16);
  tile.rhsAlongK = true;
  EXPECT_EQ(usualTiling(tile, 128, kernelFor("f16"))->rhsSlotBytes, plain.rhsSlotBytes + 64 * 16);
  GemmTile words{16, 64, 768, 4, 4, true};
  words.lhsShifted = words.rhsShifted = true;
  EXPECT_FALSE(usualTiling(words, 128, kernelFor("f32"))->rhsShifted); // threads read whole atoms
}

// Neighbouring lines fill all banks; ldmatrix and similar instructions read 16 bytes of each line.
TEST(ChooseGemm, lines_of_few_lanes_are_as_short_as_those_for_threads) {
  GemmTiling threads = *usualTiling({64, 2, 768, 4, 4, true}, 64, kernelFor("f32"));
  EXPECT_EQ(threads.rhsLine, 2);
  EXPECT_EQ(threads.rhsSlotBytes, threads.step * 2 * 4);
  EXPECT_EQ(usualTiling({64, 8, 768, 1, 1, true}, 128, kernelFor("f16"))->rhsLine, 16);
}

TEST(ChooseGemm, terms_are_not_shared_where_threads_would_idle_or_terms_are_few) {
  EXPECT_EQ(usualTiling({1, 16, 768, 2, 2}, 256, kernelFor("f16"), {/*kSlices=*/2}).why().reason,
            "a tile of 1x16 leaves threads idle in 2 slices of K");
  EXPECT_EQ(usualTiling({1, 16, 40, 2, 2}, 256, kernelFor("f16"), {/*kSlices=*/8}).why().reason,
            "a K of 40 is too short for 8 slices");
  for (int64_t units : {0, -2, 3}) {
    EXPECT_EQ(usualTiling({1, 16, 768, 2, 2}, 256, kernelFor("f16"), {/*kSlices=*/units}).why().reason,
              "K has to be split into a power of two of slices, not into " + std::to_string(units));
  }
}

TEST(ChooseGemm, what_registers_do_not_hold_is_refused) {
  EXPECT_EQ(usualTiling({256, 256, 768, 4, 4}, 128, kernelFor("f32")).why().reason,
            "a tile of 256x256 needs 512 accumulators in each of 128 threads, which hold 64");
}
} // namespace
