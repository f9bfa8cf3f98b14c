// Tests that another backend is a registration: a toy machine, which nothing in the compiler knows, gets targets, plans
// and pipelines. docs/guide/extending.md refers to this file.
#include "test/unit/PlanFixture.h"

#include "passes/backend/Backend.h"
#include "passes/backend/KernelOptions.h"
#include "passes/Passes.h"
#include "passes/plan/apply/PlanForTarget.h"
#include "passes/target/MachineKind.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A machine whose time is that of its memory. Workgroups are rows of the outermost dim of the grid.
class ToyBackend : public Backend {
public:
  StringRef name() const override { return "toy"; }

  std::string chooseTiles(const TilingProblem &problem, IterationSpace &space) const override {
    for (int64_t dim : llvm::drop_begin(space.grid))
      space.tiles[dim] = space.extents[dim];
    chooseWorkgroups(problem, space);
    return "";
  }
  void chooseWorkgroups(const TilingProblem &problem, IterationSpace &space) const override {
    space.workgroups = std::min(problem.target.cores, space.numTiles());
  }
  Prediction estimate(ArrayRef<GroupWork> groups, const Target &target, double) const override {
    double bytes = 0;
    for (const GroupWork &group : groups)
      bytes += group.globalBytes();
    Prediction prediction;
    prediction.bytes = bytes;
    prediction.seconds = target.launchSeconds + bytes / target.level(tile::Space::global).bandwidth;
    return prediction;
  }

  void populateNormalize(OpPassManager &manager, const KernelOptions &) const override {
    manager.addNestedPass<func::FuncOp>(createNormalizeExprs());
  }
  void populateKernels(OpPassManager &, const KernelOptions &) const override {} // it runs tile programs
  bool isSimulated() const override { return true; }
  void populateObject(OpPassManager &, const KernelOptions &) const override {}
  void populateSplice(OpPassManager &, const KernelOptions &) const override {}
};

/// Registers the toy, once per process.
void registerToy() {
  static bool isRegistered = [] {
    registerBackends();
    Target toy = *lookupTarget("x86-64-avx2");
    toy.name = "toy";
    toy.cores = 5;
    toy.source = "invented for tests";
    auto whyNoCode = [](const Target &target) {
      return target.cores > 5 ? std::string("cores: a toy has at most 5") : std::string();
    };
    EXPECT_EQ(registerMachineKind({"toy", MachineTraits(), whyNoCode, {toy}}), "");
    EXPECT_EQ(registerBackend(std::make_unique<ToyBackend>()), "");
    registerPipelinesOf(backendOf(*lookupTarget("toy")));
    return true;
  }();
  EXPECT_TRUE(isRegistered);
}

class ToyBackendTest : public PlanFixture {
protected:
  ToyBackendTest() {
    registerToy();
    DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    target = *lookupTarget("toy");
  }
};

TEST_F(ToyBackendTest, names_are_taken_once) {
  EXPECT_EQ(registerMachineKind({"toy", MachineTraits(), nullptr, {}}),
            "machines of kind 'toy' are registered already");
  EXPECT_EQ(registerBackend(std::make_unique<ToyBackend>()), "machines of kind 'toy' have a backend already");
}

TEST_F(ToyBackendTest, target_files_may_name_it) {
  llvm::Expected<Target> same =
      targetFromJson(llvm::json::Object{{"base", "x86-64-avx2"}, {"backend", "toy"}, {"cores", 3}});
  ASSERT_TRUE(static_cast<bool>(same));
  EXPECT_EQ(same->backend, "toy");
  llvm::Expected<Target> other = targetFromJson(llvm::json::Object{{"base", "toy"}, {"cores", 6}});
  ASSERT_FALSE(static_cast<bool>(other));
  EXPECT_EQ(llvm::toString(other.takeError()), "cores: a toy has at most 5");
}

TEST_F(ToyBackendTest, plans_have_its_tiles_and_its_predictions) {
  TensorGraph graph = parse(softmaxSource);
  Plan plan = *makePlan(graph, target);
  EXPECT_EQ(plan.target, "toy");
  EXPECT_EQ(plan.verify(graph), "");
  EXPECT_EQ(whyNotFor(plan, graph, target), "");
  ASSERT_EQ(plan.kernels.size(), 1u);
  const GroupPlan &group = plan.kernels[0].groups[0];
  EXPECT_EQ(group.tiles, (std::vector<int64_t>{1, 53}));
  EXPECT_EQ(group.workgroups, 5);
  double bytes = 2 * 37 * 53 * 4; // the input is read once, and the result written once
  EXPECT_DOUBLE_EQ(*plannedSeconds(graph, plan),
                   target.launchSeconds + bytes / target.level(tile::Space::global).bandwidth);
}

TEST_F(ToyBackendTest, a_pipeline_compiles_for_it) {
  parse(softmaxSource);
  PassManager manager(&context, ModuleOp::getOperationName());
  ASSERT_TRUE(succeeded(parsePassPipeline("tilewright-toy-subprogram{target=toy}", manager)));
  ASSERT_TRUE(succeeded(manager.run(*module)));
  int64_t programs = 0, launches = 0;
  module->walk([&](tile::ProgramOp program) {
    ++programs;
    auto part = *program.getBody().getOps<tile::ParallelOp>().begin();
    EXPECT_EQ(part.getWorkgroups(), 5);
  });
  module->walk([&](tile::LaunchOp) { ++launches; });
  EXPECT_EQ(programs, 1);
  EXPECT_EQ(launches, 1);
}
} // namespace
