// The verifier of plans: every way in which a kernel of a plan is illegal.
#include "test/unit/plan/ir/PlanTest.h"

using namespace mlir;
using namespace tilewright;

namespace {
TEST_F(PlanTest, refuses_forms_that_the_graph_does_not_offer) {
  plan.forms.emplace_back();
  plan.forms[0].form = tile::Form::twoPhaseReduction;
  expectIllegal("names form 'two-phase reduction' 0; the graph offers 0 of this form");
}

TEST_F(PlanTest, refuses_unknown_ops) {
  part().ops.back().id = 99;
  expectIllegal("op 99 does not exist");
}
TEST_F(PlanTest, refuses_repeated_ops) {
  plan.left.push_back({sub, "linalg.sub", ""});
  expectIllegal("op 2 is in the plan twice");
}
TEST_F(PlanTest, refuses_missing_ops) {
  part().ops.pop_back();
  expectIllegal("op 6 is neither in a kernel nor among the ops left");
}
TEST_F(PlanTest, refuses_ops_out_of_order) {
  std::swap(part().ops[0], part().ops[1]);
  expectIllegal("ops are not in program order");
}
TEST_F(PlanTest, refuses_empty_kernels) {
  plan.kernels.push_back({"empty", {}, {}, {}, ""});
  expectIllegal("kernel 'empty' has no groups");
}
TEST_F(PlanTest, refuses_names_that_are_no_symbols_or_repeated) {
  plan.kernels[0].name = "a b";
  expectIllegal("kernel 'a b': a name is made of letters, digits and underscores");
  plan.kernels[0].name = "k";
  plan.kernels.push_back(plan.kernels[0]);
  expectIllegal("two kernels have the name 'k'");
}
TEST_F(PlanTest, refuses_ops_of_another_name) {
  op(exp).op = "linalg.hello";
  expectIllegal("op 3 is linalg.exp, not linalg.hello");
}
TEST_F(PlanTest, refuses_missing_edges) {
  plan.edges.pop_back();
  expectIllegal("is missing");
}
TEST_F(PlanTest, refuses_repeated_edges) {
  plan.edges.push_back(plan.edges.front());
  expectIllegal("is in the plan twice");
}
TEST_F(PlanTest, refuses_edges_that_do_not_exist) {
  edge(exp, 0).input = 5;
  expectIllegal("edge from op 2 to op 3 input 5 does not exist");
}
TEST_F(PlanTest, refuses_edges_from_another_producer) {
  edge(exp, 0).producer = max;
  expectIllegal("the input is result 0 of op 2");
}
TEST_F(PlanTest, refuses_launch_inside_a_kernel) {
  edge(exp, 0).scope = tile::Scope::launch;
  expectIllegal("scope launch inside one part");
}
TEST_F(PlanTest, refuses_block_across_kernels) {
  plan.left.push_back({div, "linalg.div", "by hand"});
  part().ops.pop_back();
  expectIllegal("needs both ends in one part of one kernel");
}
TEST_F(PlanTest, refuses_scopes_that_cannot_be_carried_out) {
  edge(sum, 0).scope = tile::Scope::cluster;
  expectIllegal("scope cluster cannot be carried out yet");
}
TEST_F(PlanTest, refuses_thread_out_of_a_reduction) {
  edge(maxRow, 0).scope = tile::Scope::thread;
  expectIllegal("scope thread out of a reduction");
}
TEST_F(PlanTest, refuses_recompute_at_block) {
  edge(maxRow, 0).recompute = true;
  expectIllegal("only thread edges recompute");
}
TEST_F(PlanTest, refuses_streams_that_miss_or_repeat_kernels) {
  plan.streams = {{}};
  expectIllegal("is never launched");
  plan.streams = {{0, 0}};
  expectIllegal("kernel 0 is launched twice");
}
TEST_F(PlanTest, refuses_streams_that_nothing_carries_out) {
  plan.streams = {{0}, {}};
  expectIllegal("2 streams: kernels are launched in one");
}
TEST_F(PlanTest, refuses_tensors_that_the_part_has_not) {
  part().tensors.push_back({"op99.0", tile::Space::global, tile::Lifetime::kernel, {}});
  expectIllegal("tensor op99.0 is neither an input of the group");
  part().tensors.back() = {"in0", tile::Space::cluster, tile::Lifetime::kernel, {}};
  expectIllegal("tensor in0 lives for a kernel, so it is global, not cluster");
}
TEST_F(PlanTest, refuses_tiles_that_do_not_fit) {
  part().tiles[0] = 38;
  expectIllegal("tile 38 does not fit extent 37 of dim 0");
}
TEST_F(PlanTest, refuses_cut_dims_outside_the_grid) {
  part().tiles[1] = 16;
  expectIllegal("dim 1 is not in the grid");
}
TEST_F(PlanTest, refuses_unknown_grid_and_vector_dims) {
  part().grid = {2};
  expectIllegal("grid must name dims of the space");
  part().grid = {0};
  part().vector = 2;
  expectIllegal("vector must name a dim of the space");
}
TEST_F(PlanTest, refuses_more_workgroups_than_tiles) {
  part().workgroups = 1000;
  expectIllegal("1000 workgroups for");
}
TEST_F(PlanTest, refuses_wrong_roots) {
  op(max).root = false;
  expectIllegal("op 0: must be a root");
  op(max).root = true;
  op(maxRow).root = true;
  expectIllegal("op 1: is marked as a root");
}
TEST_F(PlanTest, refuses_dims_that_do_not_fit) {
  op(max).dims = {0};
  expectIllegal("dims must have an entry for each of the 2 domain dims");
  op(max).dims = {0, 0};
  expectIllegal("domain dim 1 has no dim of its own");
  op(max).dims = {1, 0};
  expectIllegal("domain dim 0 of extent 37 is mapped to dim 1 of extent 53");
}
TEST_F(PlanTest, refuses_grids_over_reduced_dims) {
  part().grid = {1};
  part().tiles = {37, 53};
  part().workgroups = 1;
  expectIllegal("reduces grid dim 1");
}
TEST_F(PlanTest, refuses_tilings_of_another_rank) {
  op(max).tilings.push_back({tile::Scope::block, {1}, {0}});
  expectIllegal("a tiling must have one size and one entry of order per domain dim");
}

TEST_F(PlanTest, refuses_tilings_that_are_no_tiles_of_the_op) {
  op(max).tilings = {{tile::Scope::block, {37, 54}, {0, 1}}};
  expectIllegal("its tiling at level block has size 54 along a dim of extent 53");
  op(max).tilings = {{tile::Scope::block, {37, 53}, {0, 0}}};
  expectIllegal("must have each dim once in its order");
  op(max).tilings = {{tile::Scope::grid, {37, 53}, {0, 1}}};
  expectIllegal("tiles are of block or thread");
}
} // namespace
