// Tests of values that a nest evaluates more often than they have elements: the number of evaluations, and the cases in
// which a buffer holds them instead.
#include "passes/plan/tiling/FindIterationSpace.h"
#include "passes/plan/scopes/ChooseScopes.h"
#include "test/unit/PlanFixture.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// A way to read a tensor at more points than it has elements.
struct Reading {
  const char *name;
  std::string type, result; ///< types of the tensor and of the reader's result
  std::string maps;         ///< one map for each read, over the reader's domain
  int64_t reads;            ///< number of maps
  double times;             ///< approximate number of reads per element
};

const Reading readings[] = {
    {"windows", "tensor<243x517xf32>", "tensor<241x515x3x3xf32>", "affine_map<(i, j, k, l) -> (i + k, j + l)>", 1, 9},
    {"nearest_resize", "tensor<243x517xf32>", "tensor<972x2068xf32>",
     "affine_map<(i, j) -> (i floordiv 4, j floordiv 4)>", 1, 16},
    {"overlapping_slices", "tensor<243x520xf32>", "tensor<243x517xf32>",
     "affine_map<(i, j) -> (i, j + 1)>, affine_map<(i, j) -> (i, j + 2)>, affine_map<(i, j) -> (i, j + 3)>", 3, 3},
    {"repeated_image", "tensor<243x517xf32>", "tensor<7x243x517xf32>", "affine_map<(n, i, j) -> (i, j)>", 1, 7},
};

class RepeatedValuesTest : public PlanFixture {
protected:
  /// Returns the graph of an elementwise op and a reader of its result. The reader scales it by another tensor, so that
  /// it is not movement.
  TensorGraph graphOf(const Reading &reading, const std::string &op) {
    std::string arguments, operands, types, body = "    %v = arith.mulf %s, %a0 : f32\n", last = "%v";
    for (int64_t i = 0; i < reading.reads; ++i) {
      arguments += ", %a" + std::to_string(i) + ": f32";
      operands += ", %y";
      types += ", " + reading.type;
      if (i == 0)
        continue;
      std::string next = "%v" + std::to_string(i);
      body += "    " + next + " = arith.addf " + last + ", %a" + std::to_string(i) + " : f32\n";
      last = next;
    }
    unsigned rank = llvm::StringRef(reading.result).count('x');
    std::string all = "affine_map<(";
    for (const char *arrow : {") -> (", ")>"}) {
      for (unsigned dim = 0; dim < rank; ++dim)
        all += (dim ? ", d" : "d") + std::to_string(dim);
      all += arrow;
    }
    std::string parallel;
    for (unsigned dim = 0; dim < rank; ++dim)
      parallel += dim ? ", \"parallel\"" : "\"parallel\"";
    return parse("func.func @f(%x: " + reading.type + ", %scale: " + reading.result + ") -> " + reading.result +
                 " {\n  %e = tensor.empty() : " + reading.type + "\n  %r = tensor.empty() : " + reading.result + "\n" +
                 op + "\n  %z = linalg.generic {indexing_maps = [" + all + ", " + reading.maps + ", " + all +
                 "], iterator_types = [" + parallel + "]}\n      ins(%scale" + operands + " : " + reading.result +
                 types + ") outs(%r : " + reading.result + ") {\n  ^bb0(%s: f32" + arguments + ", %o: f32):\n" + body +
                 "    linalg.yield " + last + " : f32\n  } -> " + reading.result + "\n  return %z : " + reading.result +
                 "\n}");
  }

  static std::string unary(const Reading &reading, const std::string &name) {
    return "  %y = linalg." + name + " ins(%x : " + reading.type + ") outs(%e : " + reading.type + ") -> " +
           reading.type;
  }

  static std::string relu(const Reading &reading) {
    return R"(  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : )" +
           reading.type + ") outs(%e : " + reading.type + R"() {
  ^bb0(%in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %in, %zero : f32
    linalg.yield %m : f32
  } -> )" + reading.type;
  }

  /// Returns how many times an element of an expression is evaluated if one nest computes everything in registers.
  double timesInRegisters(const TensorGraph &graph, unsigned expr) {
    GroupChoice part;
    part.exprs = allOf(graph);
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
      part.scopes[edge] = tile::Scope::thread;
    OrDeclined<IterationSpace> space = findIterationSpace(graph, part, target, NumericsMode::standard);
    EXPECT_TRUE(space);
    double points = 0;
    for (const Evaluation &evaluation : space->roots.front().evaluated)
      if (evaluation.expr == expr)
        points += NestLoops(graph, *space, space->roots.front()).pointsEvaluated(evaluation);
    return points / graph.exprs()[expr].domainSize();
  }

  const EdgePlan &firstEdge(const Plan &plan) {
    EXPECT_FALSE(plan.edges.empty());
    return plan.edges.front();
  }
};

TEST_F(RepeatedValuesTest, each_reader_of_an_element_evaluates_it) {
  for (const Reading &reading : readings) {
    TensorGraph graph = graphOf(reading, unary(reading, "tanh"));
    EXPECT_NEAR(timesInRegisters(graph, 0), reading.times, 0.05 * reading.times) << reading.name;
  }
}

TEST_F(RepeatedValuesTest, a_scalar_of_a_row_is_evaluated_once_for_the_row) {
  Reading rows{"", "tensor<61x1xf32>", "tensor<61x131xf32>", "affine_map<(i, j) -> (i, 0)>", 1, 1};
  EXPECT_EQ(timesInRegisters(graphOf(rows, unary(rows, "tanh")), 0), 1);
}

// Code generation makes the loop over lanes the outer one, so each tile evaluates the row once.
TEST_F(RepeatedValuesTest, a_function_of_the_lanes_alone_is_evaluated_once_for_a_tile) {
  Reading columns{"", "tensor<1x131xf32>", "tensor<611x131xf32>", "affine_map<(i, j) -> (0, j)>", 1, 1};
  TensorGraph graph = graphOf(columns, unary(columns, "tanh"));
  EXPECT_LT(timesInRegisters(graph, 0), 611);
  EXPECT_EQ(timesInRegisters(graphOf(columns, relu(columns)), 0), 611) << "cheap values stay inside the loop";
}

TEST_F(RepeatedValuesTest, work_counts_what_is_computed_again) {
  for (const Reading &reading : readings) {
    TensorGraph graph = graphOf(reading, unary(reading, "tanh"));
    llvm::DenseMap<unsigned, EdgeChoice> edges;
    for (unsigned edge = 0; edge < graph.edges().size(); ++edge)
      edges[edge] = {tile::Scope::thread, true, ""};
    GroupProblem problem(graph, target, NumericsMode::standard);
    OrDeclined<PlannedGroup> part = planGroupWith(problem, allOf(graph), edges);
    ASSERT_TRUE(part);
    EXPECT_GT(part->work.special, 0.9 * reading.times * graph.exprs()[0].domainSize()) << reading.name;
  }
}

TEST_F(RepeatedValuesTest, transcendental_functions_are_computed_once) {
  for (const char *name : {"x86-64-avx2", "x86-64-avx512"})
    for (const Reading &reading : readings) {
      target = llvm::cantFail(lookupTarget(name));
      for (const char *op : {"exp", "tanh", "erf", "sqrt"}) {
        TensorGraph graph = graphOf(reading, unary(reading, op));
        Plan plan = *makePlan(graph, target);
        EXPECT_EQ(plan.verify(graph), "");
        EXPECT_FALSE(firstEdge(plan).recompute) << name << ", " << reading.name << " of " << op;
        EXPECT_NE(firstEdge(plan).scope, tile::Scope::thread);
      }
    }
}

TEST_F(RepeatedValuesTest, cheap_operations_are_computed_again) {
  for (const Reading &reading : readings) {
    TensorGraph graph = graphOf(reading, relu(reading));
    Plan plan = *makePlan(graph, target);
    EXPECT_EQ(plan.verify(graph), "");
    EXPECT_EQ(firstEdge(plan).scope, tile::Scope::thread) << reading.name;
  }
}

} // namespace
