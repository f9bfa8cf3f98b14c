// The plan as data: JSON conversion in both directions, with errors that name the field, and a verifier that finds
// every way in which a plan is illegal.
#include "passes/plan/grid/KernelPhases.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

class PlanTest : public PlanFixture {
protected:
  void SetUp() override {
    graph = std::make_unique<TensorGraph>(parse(softmaxSource));
    plan = *makePlan(*graph, target);
    ASSERT_EQ(plan.verify(*graph), "");
    ASSERT_EQ(plan.kernels.size(), 1u);
  }

  std::string json(const Plan &of) { return llvm::formatv("{0:2}", toJson(of)).str(); }

  std::string readError(llvm::StringRef text) {
    llvm::Expected<Plan> read = planFromJson(cantFail(llvm::json::parse(text)));
    return read ? "no error" : llvm::toString(read.takeError());
  }

  GroupPlan &part() { return plan.kernels[0].groups[0]; }
  OpPlan &op(unsigned id) {
    return *llvm::find_if(part().ops, [&](const OpPlan &entry) { return entry.id == id; });
  }
  EdgePlan &edge(unsigned consumer, unsigned input) {
    return *llvm::find_if(plan.edges,
                          [&](const EdgePlan &entry) { return entry.consumer == consumer && entry.input == input; });
  }
  void expectIllegal(llvm::StringRef why) {
    std::string found = plan.verify(*graph);
    EXPECT_NE(found.find(why.str()), std::string::npos) << "found: " << found;
  }

  // The expressions of softmax, in program order.
  enum : unsigned { max, maxRow, sub, exp, sum, sumRow, div };
  std::unique_ptr<TensorGraph> graph;
  Plan plan;
};

TEST_F(PlanTest, json_round_trip) {
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(json(plan), json(*again));
  EXPECT_EQ(again->verify(*graph), "");
}

TEST_F(PlanTest, json_keeps_what_only_later_policies_fill) {
  part().tensors.push_back(
      {"in0", tile::Space::cluster, tile::Lifetime::kernel, {{"swizzle", {3, 4}}, {"permute", {1, 0}}}});
  op(max).microKernel = "fma";
  op(max).tilings.push_back({tile::Scope::warp, {4, 8}, {1, 0}});
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(json(plan), json(*again));
}

TEST_F(PlanTest, json_keeps_choices_of_forms) {
  FormChoice split;
  split.form = tile::Form::twoPhaseReduction;
  split.number = 2;
  split.ops = {"linalg.matmul"};
  split.taken = true;
  split.parameters = {{"dims", {1}}, {"parts", {4}}};
  split.numerics = {"f32", true, 0};
  split.reason = "it is faster";
  plan.forms = {split};
  llvm::Expected<Plan> again = planFromJson(toJson(plan));
  ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
  ASSERT_EQ(again->forms.size(), 1u);
  EXPECT_TRUE(split.isMetBy(again->forms[0]));
  EXPECT_EQ(json(plan), json(*again));
}

TEST_F(PlanTest, refuses_forms_that_the_graph_does_not_offer) {
  plan.forms.emplace_back();
  plan.forms[0].form = tile::Form::twoPhaseReduction;
  expectIllegal("names form 'two-phase reduction' 0; the graph offers 0 of this form");
}

TEST_F(PlanTest, json_errors_name_the_field) {
  EXPECT_EQ(readError("[]"), "expected object when parsing plan");
  EXPECT_EQ(readError(R"({"edges": []})"), "missing value at plan.kernels");
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [], "kernel": 1})"), "unknown field at plan.kernel");
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "groups": [{"ops": [], "extents": [1, "a"]}]}], "edges": []})"),
            "expected integer at plan.kernels[0].groups[0].extents[1]");
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [{"producer": 0, "result": 0, "consumer": 1, "input": 0,
                          "scope": "planet"}]})"),
            "expected one of thread, warp, block, cluster, grid, launch, host at plan.edges[0].scope");
}

TEST_F(PlanTest, old_spellings_are_refused_with_the_new_name) {
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "parts": []}], "edges": []})"),
            "this field is called 'groups' at plan.kernels[0].parts");
  EXPECT_EQ(readError(R"({"kernels": [{"name": "k", "groups": [], "kept": []}], "edges": []})"),
            "this field is called 'residentTiles' at plan.kernels[0].kept");
}

TEST_F(PlanTest, print_shows_every_decision) {
  std::string text;
  llvm::raw_string_ostream os(text);
  plan.print(os);
  for (const char *expected : {"kernel reduce_", "part extents [37, 53]", "grid [0]", "op4 linalg.reduce as-is root",
                               "edge op3.0 -> op4.0 block: "})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " is not in\n" << text;
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
  expectIllegal("kernel 'empty' has no parts");
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
  expectIllegal("tensor op99.0 is neither an input of the kernel");
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

/// Numerics on bf16: a rounding between two ops of the kernel, and a sum.
class NumericsPlanTest : public PlanTest {
protected:
  enum : unsigned { product, reduction };

  void planFor(NumericsMode mode) {
    graph = std::make_unique<TensorGraph>(parse(R"(
func.func @dot(%x: tensor<37x53xbf16>) -> tensor<37xbf16> {
  %zero = arith.constant dense<0.0> : tensor<37xbf16>
  %e = tensor.empty() : tensor<37x53xbf16>
  %p = linalg.exp ins(%x : tensor<37x53xbf16>) outs(%e : tensor<37x53xbf16>) -> tensor<37x53xbf16>
  %s = linalg.reduce { arith.addf } ins(%p : tensor<37x53xbf16>) outs(%zero : tensor<37xbf16>) dimensions = [1]
  return %s : tensor<37xbf16>
})"));
    PlanOptions options;
    options.numerics = mode;
    plan = *makePlan(*graph, target, options);
    ASSERT_EQ(plan.kernels.size(), 1u);
    ASSERT_EQ(plan.verify(*graph), "");
  }

  void expectRoundTrip() {
    llvm::Expected<Plan> again = planFromJson(toJson(plan));
    ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(json(plan), json(*again));
    EXPECT_EQ(again->numerics, plan.numerics);
    EXPECT_EQ(again->verify(*graph), "");
  }
};

TEST_F(NumericsPlanTest, default_sums_in_f32_and_leaves_roundings_out) {
  planFor(NumericsMode::standard);
  EXPECT_TRUE(edge(reduction, 0).unrounded);
  EXPECT_EQ(op(reduction).numerics.accumulation, "f32");
  EXPECT_TRUE(op(reduction).numerics.reassociates);
  EXPECT_EQ(op(reduction).numerics.roundingsRemoved, 52);
  expectRoundTrip();
}
TEST_F(NumericsPlanTest, strict_sums_and_rounds_as_the_graph) {
  planFor(NumericsMode::strict);
  EXPECT_FALSE(edge(reduction, 0).unrounded);
  EXPECT_EQ(op(reduction).numerics.accumulation, "bf16");
  EXPECT_FALSE(op(reduction).numerics.reassociates);
  EXPECT_EQ(op(reduction).numerics.roundingsRemoved, 0);
  expectRoundTrip();
}
TEST_F(NumericsPlanTest, refuses_relaxed_entries_under_strict_numerics) {
  planFor(NumericsMode::standard);
  plan.numerics = NumericsMode::strict;
  expectIllegal("strict numerics hand over no unrounded values");
  edge(reduction, 0).unrounded = false;
  expectIllegal("strict numerics accumulate bf16 as the graph does, not in f32");
  op(reduction).numerics.accumulation = "bf16";
  expectIllegal("strict numerics add bf16 in the order of the graph");
}
TEST_F(NumericsPlanTest, refuses_numerics_that_are_not_the_ops) {
  planFor(NumericsMode::standard);
  op(reduction).numerics.roundingsRemoved = 51;
  expectIllegal("leaves out 52 roundings per element, not 51");
  op(reduction).numerics.accumulation = "f64";
  expectIllegal("cannot accumulate bf16 in f64");
  op(reduction).form = tile::Form::onlineSoftmax;
  expectIllegal("has the form 'as-is', not 'online softmax'");
  op(product).numerics.accumulation = "f32";
  expectIllegal("accumulates nothing");
}
TEST_F(PlanTest, refuses_unrounded_edges_of_wide_values) {
  edge(exp, 0).unrounded = true;
  expectIllegal("it is not a bf16 or f16 value");
}
TEST_F(PlanTest, json_refuses_unknown_numerics) {
  EXPECT_EQ(readError(R"({"kernels": [], "edges": [], "numerics": "exact"})"),
            "expected one of default, strict, tf32 at plan.numerics");
}

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
  EXPECT_NE(packed.verify(two).find("parts of one kernel depend on each other at scope grid only"), std::string::npos);

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
  EXPECT_EQ(why({1, 1, 0, 0}), "the parts are not the first ones of a phase and of a later phase");
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
  EXPECT_EQ(across.verify(transposed), "kernel 'k' part 0: op 1: reads op 0 across tiles of grid dim 0");
}
} // namespace
