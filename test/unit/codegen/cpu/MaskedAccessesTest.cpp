// Tests masked accesses on AVX: each register has a mask of its own, and one with a computed mask uses AVX's
// instruction.
#include "passes/codegen/cpu/MaskedAccesses.h"
#include "passes/codegen/common/LlvmBackend.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/SourceMgr.h"
#include <gtest/gtest.h>
#include <map>

using namespace tilewright;

namespace {
/// The calls, loads and stores of a function after the rewrite.
struct Rewritten {
  int64_t accesses = 0;
  std::map<std::string, int> calls;
  int loads = 0, stores = 0;
};

Rewritten rewrite(const std::string &body, const std::string &targetName = "x86-64-avx2") {
  llvm::LLVMContext context;
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(body, problem, context);
  EXPECT_TRUE(module) << problem.getMessage().str();
  llvm::Expected<Target> target = lookupTarget(targetName);
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(*target, error);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  llvm::Function &function = *module->getFunction("f");
  function.addFnAttr("target-cpu", target->cpu);
  function.addFnAttr("target-features", target->features);
  Rewritten result;
  result.accesses = useNativeMasks(function, *machine);
  EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
  for (llvm::BasicBlock &block : function)
    for (llvm::Instruction &instruction : block) {
      if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        ++result.calls[call->getCalledFunction()->getName().str()];
      result.loads += llvm::isa<llvm::LoadInst>(instruction);
      result.stores += llvm::isa<llvm::StoreInst>(instruction);
    }
  return result;
}

/// Returns a function that loads with a mask and stores all lanes. `%b` is a truth value broadcast to all lanes.
std::string loadWith(int lanes, const std::string &type, const std::string &suffix, const std::string &mask) {
  std::string vector = "<" + std::to_string(lanes) + " x " + type + ">", bits = "<" + std::to_string(lanes) + " x i1>";
  return "define void @f(ptr %p, ptr %o, i1 %c, i32 %r, " + bits + " %m0) {\n  %i = insertelement " + bits +
         " poison, i1 %c, i64 0\n  %b = shufflevector " + bits + " %i, " + bits + " poison, <" + std::to_string(lanes) +
         " x i32> zeroinitializer\n  %m = " + mask + "\n  %v = call " + vector + " @llvm.masked.load.v" +
         std::to_string(lanes) + suffix + ".p0(ptr align 4 %p, " + bits + " %m, " + vector +
         " zeroinitializer)\n  store " + vector + " %v, ptr %o, align 4\n  ret void\n}\n";
}

std::string onLanes(int from, int to, int lanes) {
  std::string text = "<";
  for (int lane = 0; lane < lanes; ++lane)
    text += std::string(lane ? ", " : "") + "i1 " + (lane >= from && lane < to ? "true" : "false");
  return text + ">";
}

TEST(MaskedAccesses, a_register_that_is_never_on_is_not_read) {
  Rewritten result = rewrite(loadWith(16, "float", "f32", "and <16 x i1> %b, " + onLanes(0, 2, 16)));
  EXPECT_EQ(result.accesses, 1);
  EXPECT_EQ(result.calls, (std::map<std::string, int>{{"llvm.x86.avx.maskload.ps.256", 1}}));
  EXPECT_EQ(result.loads, 0);
}

TEST(MaskedAccesses, a_register_that_is_always_on_is_read_as_a_whole) {
  Rewritten result = rewrite(loadWith(16, "i32", "i32", "or <16 x i1> %b, " + onLanes(8, 16, 16)));
  EXPECT_EQ(result.calls, (std::map<std::string, int>{{"llvm.x86.avx2.maskload.d.256", 1}}));
  EXPECT_EQ(result.loads, 1);
}

TEST(MaskedAccesses, constant_masks_stay_in_parts_of_a_register) {
  Rewritten result = rewrite(loadWith(16, "float", "f32", "and <16 x i1> " + onLanes(0, 10, 16) + ", splat (i1 true)"));
  EXPECT_EQ(result.calls, (std::map<std::string, int>{{"llvm.masked.load.v8f32.p0", 1}}));
  EXPECT_EQ(result.loads, 1);
}

TEST(MaskedAccesses, masks_that_nothing_is_known_of_are_split) {
  Rewritten result = rewrite(loadWith(8, "double", "f64", "and <8 x i1> %b, %m0"));
  EXPECT_EQ(result.calls, (std::map<std::string, int>{{"llvm.x86.avx.maskload.pd.256", 2}}));
}

TEST(MaskedAccesses, what_is_left_over_has_half_a_register) {
  Rewritten result = rewrite(loadWith(11, "i64", "i64", "and <11 x i1> %b, %m0"));
  EXPECT_EQ(result.calls, (std::map<std::string, int>{{"llvm.x86.avx2.maskload.q.256", 3}}));
  result = rewrite(loadWith(9, "float", "f32", "and <9 x i1> %b, %m0"));
  EXPECT_EQ(result.calls,
            (std::map<std::string, int>{{"llvm.x86.avx.maskload.ps", 1}, {"llvm.x86.avx.maskload.ps.256", 1}}));
}

TEST(MaskedAccesses, a_stored_value_may_be_what_was_loaded_with_the_same_mask) {
  Rewritten result = rewrite(R"(
define void @f(ptr %p, ptr %o, <16 x i1> %m) {
  %v = call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %p, <16 x i1> %m, <16 x float> zeroinitializer)
  call void @llvm.masked.store.v16f32.p0(<16 x float> %v, ptr align 4 %o, <16 x i1> %m)
  ret void
})");
  EXPECT_EQ(result.accesses, 2);
  EXPECT_EQ(result.calls,
            (std::map<std::string, int>{{"llvm.x86.avx.maskload.ps.256", 2}, {"llvm.x86.avx.maskstore.ps.256", 2}}));
}

TEST(MaskedAccesses, narrow_elements_and_other_instruction_sets_are_left_alone) {
  EXPECT_EQ(rewrite(loadWith(16, "half", "f16", "and <16 x i1> %b, %m0")).accesses, 0);
  EXPECT_EQ(rewrite(loadWith(16, "i8", "i8", "and <16 x i1> %b, %m0")).accesses, 0);
  for (const char *target : {"x86-64-v2", "x86-64-avx512"})
    EXPECT_EQ(rewrite(loadWith(16, "float", "f32", "and <16 x i1> %b, %m0"), target).accesses, 0) << target;
}
} // namespace
