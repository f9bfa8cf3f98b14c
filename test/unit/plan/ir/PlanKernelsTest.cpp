// The verifier of plans: kernels that depend on each other, their groups, and what blocks keep.
#include "passes/plan/grid/KernelPhases.h"
#include "test/unit/plan/ir/PlanTest.h"

using namespace mlir;
using namespace tilewright;

namespace {
const char *chainSource = R"(
func.func @chain(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = "some.op"(%a) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.add ins(%a, %o : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
})";

OpPlan rootOp(unsigned id) { return {id, "", tile::Form::asIs, {}, true, {0, 1}, {}, ""}; }

TEST_F(PlanTest, refuses_cycles_through_ops_it_does_not_know) {
  TensorGraph chain = parse(chainSource);
  Plan cyclic;
  cyclic.kernels.push_back({"k", {{{rootOp(0), rootOp(1)}, {64, 64}, {64, 64}, {}, 1, 1, 0, 0, {}, {}}}, {}, {}, ""});
  cyclic.edges.push_back({0, 0, 1, 0, tile::Scope::block, false, false, "", 0, 0, ""});
  EXPECT_EQ(cyclic.verify(chain), "the partition is cyclic: kernel 'k' depends on an op outside it that depends on it "
                                  "in turn");
}

TEST_F(PlanTest, refuses_kernels_listed_before_what_they_need) {
  TensorGraph chain = parse(chainSource);
  GroupPlan first{{rootOp(0)}, {64, 64}, {64, 64}, {}, 1, 1, {}}, second{{rootOp(1)}, {64, 64}, {64, 64}, {}, 1, 1, {}};
  Plan swapped;
  swapped.kernels = {{"b", {second}, {}}, {"a", {first}, {}}};
  swapped.edges.push_back({0, 0, 1, 0, tile::Scope::launch, false, false, "", 0, 0, ""});
  EXPECT_EQ(swapped.verify(chain), "kernel 'b' is listed before kernel 'a', on which it depends");
}

TEST_F(PlanTest, refuses_dependent_parts_side_by_side) {
  TensorGraph two = parse(R"(
func.func @two(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.exp ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
})");
  GroupPlan first{{rootOp(0)}, {64, 64}, {64, 64}, {}, 1, 1, {}}, second{{rootOp(1)}, {64, 64}, {64, 64}, {}, 1, 1, {}};
  Plan packed;
  packed.kernels = {{"k", {first, second}, {}}};
  packed.edges.push_back({0, 0, 1, 0, tile::Scope::launch, false, false, "", 0, 0, ""});
  EXPECT_NE(packed.verify(two).find("groups of one kernel depend on each other at scope grid only"), std::string::npos);

  // The groups can share a kernel as phases with a grid barrier between them, but only in this order.
  packed.edges[0].scope = tile::Scope::grid;
  EXPECT_EQ(packed.verify(two), "");
  EXPECT_EQ(phasesOf(packed, packed.kernels[0]).size(), 2u);
  EXPECT_EQ(workgroupsOf(packed, packed.kernels[0]), 1);
  packed.kernels[0].groups = {second, first};
  EXPECT_NE(packed.verify(two).find("its producer's part comes after its consumer's"), std::string::npos);
}

TEST_F(PlanTest, refuses_to_keep_what_blocks_do_not_read_alike) {
  TensorGraph two = parse(R"(
func.func @two(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.add ins(%a, %x : tensor<64x64xf32>, tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
})");
  GroupPlan first{{rootOp(0)}, {64, 64}, {8, 64}, {0}, 1, 8, {}}, second{{rootOp(1)}, {64, 64}, {8, 64}, {0}, 1, 8, {}};
  Plan plan;
  plan.kernels = {{"k", {first, second}, {{0, 0, 1, 1, 2048}}}};
  plan.edges.push_back({0, 0, 1, 0, tile::Scope::grid, false, false, "", 0, 0, ""});
  EXPECT_EQ(plan.verify(two), "");
  auto why = [&](ResidentTile kept) {
    plan.kernels[0].residentTiles = {kept};
    std::string text = plan.verify(two);
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(why({0, 0, 1, 0}), "they are not views of the same tensor");
  EXPECT_EQ(why({0, 7, 1, 1}), "there is no such input");
  EXPECT_EQ(why({1, 1, 0, 0}), "the groups are not the first ones of a phase and of a later phase");
  plan.kernels[0].groups[1].tiles = {64, 8};
  plan.kernels[0].groups[1].grid = {1};
  EXPECT_EQ(why({0, 0, 1, 1}), "their tiles have different elements");
  plan.kernels[0].groups[1] = second;
  plan.kernels[0].groups[1].workgroups = 4;
  EXPECT_EQ(why({0, 0, 1, 1}), "blocks have several tiles");
}

TEST_F(PlanTest, refuses_phases_that_cannot_all_be_resident) {
  GroupPlan first{{rootOp(0)}, {4096, 64}, {1, 64}, {0}, 1, 4096, {}}, second = first;
  first.threads = second.threads = 256;
  second.ops[0].id = 1;
  Plan plan;
  plan.kernels = {{"k", {first, second}, {}}};
  plan.edges.push_back({0, 0, 1, 0, tile::Scope::grid, false, false, "", 0, 0, ""});
  Target h200 = *lookupTarget("cuda:h200");
  EXPECT_EQ(whyNotCoResident(plan, *graph, h200, /*allowed=*/true),
            "kernel 'k' has 4096 workgroups of 256 threads, 64 registers a thread, that wait for each other at scope "
            "grid; target 'cuda:h200' is sure to have 528 resident");
  for (GroupPlan &part : plan.kernels[0].groups)
    part.workgroups = 528;
  EXPECT_EQ(whyNotCoResident(plan, *graph, h200, /*allowed=*/true), "");
  EXPECT_EQ(whyNotCoResident(plan, *graph, target, /*allowed=*/true),
            "kernel 'k' has edges at scope grid, which target 'x86-64-avx512' does not have");
  EXPECT_EQ(whyNotCoResident(plan, *graph, h200, /*allowed=*/false),
            "kernel 'k' has edges at scope grid, which is forbidden");
}

// x + x^T through a buffer: a tile of rows needs elements of other tiles.
TEST_F(PlanTest, refuses_block_edges_across_tiles_of_the_grid) {
  TensorGraph transposed = parse(R"(
func.func @transposed(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.exp ins(%x : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%u: f32, %out: f32):
    %r = arith.negf %u : f32
    linalg.yield %r : f32
  } -> tensor<64x64xf32>
  return %b : tensor<64x64xf32>
})");
  Plan across;
  across.kernels.push_back({"k", {{{rootOp(0), rootOp(1)}, {64, 64}, {1, 64}, {0}, 1, 1, {}}}, {}});
  across.edges.push_back({0, 0, 1, 0, tile::Scope::block, false, false, "", 0, 0, ""});
  EXPECT_EQ(across.verify(transposed), "kernel 'k' group 0: op 1: reads op 0 across tiles of grid dim 0");
}
} // namespace
