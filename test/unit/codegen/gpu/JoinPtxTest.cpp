#include "passes/codegen/gpu/JoinPtx.h"

#include <gtest/gtest.h>

using namespace tilewright;

namespace {
const std::string kHeader = ".version 8.3\n.target sm_80\n\n";

/// The text of a module with one kernel and some variables.
std::string module(const std::string &variables, const std::string &kernel) {
  return kHeader + "\t// .globl\tname\n" + variables + "\n.visible .entry " + kernel;
}
} // namespace

/// Two kernels may use the same variable, which a module declares once.
TEST(JoinPtx, directives_and_variables_occur_once) {
  std::string shared = ".extern .shared .align 64 .b8 shared[];\n", counter = ".global .u32 counter;\n";
  EXPECT_EQ(joinPtx({module(counter, "first() { ret; }\n"), module(shared + counter, "second() { ret; }\n")}),
            module(shared + counter, "first() { ret; }\n") + "\t// .globl\tname\n.visible .entry second() { ret; }\n");
}

/// A text names the labels of its kernel as those of the module's first.
TEST(JoinPtx, labels_count_kernels) {
  EXPECT_EQ(joinPtx({module("", "a() {\n$L__BB0_2:\n}\n"), module("", "b() {\nbra $L__BB0_12;\n$L__BB0_12:\n}\n")}),
            module("", "a() {\n$L__BB0_2:\n}\n") +
                "\t// .globl\tname\n.visible .entry b() {\nbra $L__BB1_12;\n$L__BB1_12:\n}\n");
}

/// The text of a single kernel stays as it is.
TEST(JoinPtx, one_kernel) {
  std::string text = module(".global .u32 counter;\n", "only() {\n$L__BB0_2:\n}\n");
  EXPECT_EQ(joinPtx({text}), text);
}
