// Tests targets: the table is complete and sane, files override single fields, and errors name the field.
#include "passes/target/Target.h"
#include "passes/support/ParseJson.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace tilewright;

namespace {

llvm::Expected<Target> read(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  EXPECT_TRUE(static_cast<bool>(value));
  return targetFromJson(*value);
}

std::string errorOf(llvm::StringRef text) {
  llvm::Expected<Target> target = read(text);
  return target ? "no error" : llvm::toString(target.takeError());
}

TEST(Target, every_entry_of_the_table_is_complete) {
  for (const std::string &name : knownTargets()) {
    llvm::Expected<Target> target = lookupTarget(name);
    ASSERT_TRUE(static_cast<bool>(target)) << name;
    EXPECT_FALSE(target->source.empty()) << name;
    EXPECT_GT(target->flopsPerSecond, target->specialPerSecond) << name;
    EXPECT_GT(target->blockBytes, 0) << name;
    for (size_t i = 1; i < target->levels.size(); ++i) {
      const MemoryLevel &inner = target->levels[i - 1], &outer = target->levels[i];
      EXPECT_GE(inner.bandwidth, outer.bandwidth) << name << " " << outer.name;
      EXPECT_LE(inner.space, outer.space) << name << " " << outer.name;
    }
  }
}

TEST(Target, json_round_trip) {
  for (const std::string &name : knownTargets()) {
    Target target = *lookupTarget(name);
    llvm::Expected<Target> again = targetFromJson(toJson(target));
    ASSERT_TRUE(static_cast<bool>(again)) << name;
    EXPECT_EQ(llvm::formatv("{0}", toJson(target)).str(), llvm::formatv("{0}", toJson(*again)).str());
  }
}

TEST(Target, level_is_the_outermost_of_its_space) {
  Target target = *lookupTarget("x86-64-avx512");
  EXPECT_EQ(target.level(tile::Space::block).name, "L2");
  EXPECT_EQ(target.level(tile::Space::global).name, "DRAM");
}

TEST(Target, file_overrides_single_fields) {
  llvm::Expected<Target> target = read(R"({"base": "x86-64-avx2", "vectorRegisters": 7,
    "levels": [{"name": "L1", "capacityBytes": 1000}, {"name": "DRAM"}]})");
  ASSERT_TRUE(static_cast<bool>(target)) << llvm::toString(target.takeError());
  Target base = *lookupTarget("x86-64-avx2");
  EXPECT_EQ(target->vectorRegisters, 7);
  EXPECT_EQ(target->vectorBytes, base.vectorBytes);
  ASSERT_EQ(target->levels.size(), 2u);
  EXPECT_EQ(target->levels[0].capacityBytes, 1000);
  EXPECT_EQ(target->levels[0].bandwidth, base.levels[0].bandwidth);
}

TEST(Target, cores_scale_what_each_core_owns) {
  Target eight = *lookupTarget("x86-64-avx512"), two = withCores(eight, 2);
  EXPECT_EQ(two.cores, 2);
  EXPECT_DOUBLE_EQ(two.flopsPerSecond * 4, eight.flopsPerSecond);
  EXPECT_DOUBLE_EQ(two.levels[0].bandwidth * 4, eight.levels[0].bandwidth);
  EXPECT_EQ(two.levels[0].capacityBytes, eight.levels[0].capacityBytes);
  EXPECT_DOUBLE_EQ(withCores(eight, 64).levels.back().bandwidth, eight.levels.back().bandwidth);
}

/// Grid barriers rely on the guaranteed multiprocessors.
TEST(Target, no_more_multiprocessors_are_guaranteed_than_there_are) {
  EXPECT_EQ(read(R"({"base": "cuda:a100", "cores": 54})")->gpu.guaranteedSms, 54);
  EXPECT_EQ(read(R"({"base": "sm_80", "cores": 108})")->gpu.guaranteedSms, 56);
}

TEST(Target, cores_of_narrower_units_have_lower_rates) {
  Target wide = *lookupTarget("x86-64-avx512"), narrow = *lookupTarget("x86-64-avx2");
  EXPECT_DOUBLE_EQ(withRatesOf(wide, "znver4").flopsPerSecond * 2, wide.flopsPerSecond);
  EXPECT_DOUBLE_EQ(withRatesOf(wide, "znver5").flopsPerSecond, wide.flopsPerSecond);
  EXPECT_DOUBLE_EQ(withRatesOf(narrow, "znver4").flopsPerSecond, narrow.flopsPerSecond);
}

TEST(Target, host_has_the_instructions_of_an_entry) {
  llvm::Expected<Target> host = lookupTarget("cpu");
  ASSERT_TRUE(static_cast<bool>(host)) << llvm::toString(host.takeError());
  EXPECT_EQ(host->name, "cpu");
  EXPECT_NE(host->features.find("+avx2"), std::string::npos);
}

TEST(Target, errors_name_the_field) {
  EXPECT_EQ(errorOf("[]"), "expected an object with a target's fields");
  EXPECT_EQ(errorOf(R"({"base": "z80"})").substr(0, 26), "base: unknown target 'z80'");
  EXPECT_EQ(errorOf(R"({"base": 3})"), "base: expected the name of a known target");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "cores": 0})"), "cores: expected an integer of at least 1");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "triple": 1})"), "triple: expected a string");
  std::string unknown = errorOf(R"({"base": "sm_90", "backend": "tpu"})"); // other tests may add backends
  EXPECT_EQ(llvm::StringRef(unknown).take_front(33), "backend: expected \"cpu\" or \"cuda\"");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "flopsPerSecond": -1})"), "flopsPerSecond: expected a positive number");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "levels": []})"), "levels: expected a list of memory levels, innermost first");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "levels": [{"capacityBytes": 1}]})"), "levels[0].name: expected a string");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "levels": [{"name": "L2", "space": "attic"}]})"),
            "levels[0].space: expected one of register, block, cluster, global, host");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "levels": [{"name": "L9"}]})"),
            "levels[0].space: missing, and the base target has no level of this name");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "corse": 3})").substr(0, 20), "corse: unknown field");
  EXPECT_EQ(errorOf(R"({"name": "mine"})").substr(0, 15), "levels: missing");
}

TEST(Target, a_gpu_that_no_kernel_can_be_made_for_is_refused) {
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"warpLanes": 64}})"),
            "gpu.warpLanes: 64; only warps of 32 threads are supported");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"threadsPerBlock": 3}})"),
            "gpu.threadsPerBlock: 3; expected 32 to 1024");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"threadsPerSm": 96}})"),
            "gpu.threadsPerSm: 96; expected at least gpu.threadsPerBlock");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"registersPerSm": 0}})"),
            "gpu.registersPerSm: expected an integer of at least 1");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"clockHz": 0}})"), "gpu.clockHz: expected a positive number");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "cpu": "sm_10"})"),
            "cpu: no processor of nvptx64 is called 'sm_10'; did you mean 'sm_100'?");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "cpu": "sm_75"})"), "cpu: 'sm_75' is not a known GPU");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "vectorBytes": 3})"),
            "vectorBytes: 3; expected 8 or 16, the bytes of a GPU thread's load");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "maxBindings": 17})"),
            "maxBindings: 17; IREE's CUDA driver passes at most 16");
  EXPECT_EQ(errorOf(R"({"base": "sm_86", "blockBytes": 101377})"),
            "blockBytes: 101377; a block of sm_86 has at most 101376");
  EXPECT_EQ(errorOf(R"({"base": "sm_86", "blockBytes": 101376})"), "no error");
  EXPECT_EQ(errorOf(R"({"base": "cuda:a100", "gpu": {"guaranteedSms": 109}})"),
            "gpu.guaranteedSms: 109; the target has 108 cores");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "levels": [{"name": "shared", "space": "block", "bandwidth": 1e13,
                                                     "capacityBytes": 200000}]})"),
            "levels: a GPU needs a level of space 'global'");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "gpu": {"warpLanes": 0}})"), "no error");
  EXPECT_EQ(errorOf(R"({"base": "sm_90", "gpu": {"reservedSharedBytes": 0}})"), "no error");
}

/// LLVM would ignore the name or end the process.
TEST(Target, what_llvm_does_not_know_is_refused_by_name) {
  EXPECT_EQ(errorOf(R"({"base": "cuda:h200", "features": "+ptx83,+sm90a"})"),
            "features: no processor of nvptx64 has 'sm90a'; did you mean 'sm_90a'?");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "features": "+avx2,-fmaa"})"),
            "features: no processor of x86_64 has 'fmaa'; did you mean 'fma'?");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "features": "avx2"})"),
            "features: 'avx2' has no sign; write +avx2 or -avx2");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "cpu": "znver99"})").substr(0, 47),
            "cpu: no processor of x86_64 is called 'znver99'");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "triple": "abacus"})"), "triple: no code can be generated for 'abacus'");
  EXPECT_EQ(errorOf(R"({"base": "cuda:h200", "backend": "cpu"})"),
            "triple: 'nvptx64-nvidia-cuda' does not belong to backend cpu");
  EXPECT_EQ(errorOf(R"({"base": "x86-64-avx2", "vectorBytes": 48})"), "vectorBytes: 48; expected 16, 32 or 64");
}

TEST(Target, features_of_another_gpu_or_older_ptx_are_refused) {
  EXPECT_EQ(errorOf(R"({"base": "cuda:a100", "features": "+ptx83,+sm_90a"})"),
            "features: '+sm_90a' is not a feature of sm_80");
  EXPECT_EQ(errorOf(R"({"base": "cuda:h200", "features": "+ptx60"})"),
            "features: kernels of sm_90 are written in PTX 83 or newer; expected +ptx83");
  EXPECT_EQ(errorOf(R"({"base": "cuda:h200", "features": ""})"),
            "features: kernels of sm_90 are written in PTX 83 or newer; expected +ptx83");
  EXPECT_EQ(errorOf(R"({"base": "cuda:h200", "features": "+ptx84"})"), "no error");
}

TEST(Target, a_file_without_base_says_all_that_code_is_made_for) {
  auto without = [](llvm::StringRef field) {
    llvm::json::Value whole = toJson(*lookupTarget("cuda:h200"));
    whole.getAsObject()->erase(field);
    llvm::Expected<Target> target = targetFromJson(whole);
    return target ? "no error" : llvm::toString(target.takeError());
  };
  for (const char *field : {"name", "levels", "triple", "cpu", "blockBytes"})
    EXPECT_EQ(without(field), std::string(field) + ": missing; give it, or a \"base\" target to take it from");
  EXPECT_EQ(without("gpu"), "gpu: missing; give it, or a GPU as \"base\" to take it from");
  EXPECT_EQ(without("source"), "no error");
}

TEST(Target, lookup_says_what_was_wrong_with_a_name_or_file) {
  EXPECT_EQ(llvm::toString(lookupTarget("z80").takeError()).substr(0, 20), "unknown target 'z80'");
  EXPECT_NE(llvm::toString(lookupTarget("absent.json").takeError()).find("'absent.json'"), std::string::npos);
  llvm::SmallString<128> path;
  int file;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("target", "json", file, path));
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << "{\"base\": \"sm_80\", \"cores\": \"many\"}";
  std::string message = llvm::toString(lookupTarget(path).takeError());
  EXPECT_NE(message.find("cores: expected an integer"), std::string::npos) << message;
  llvm::sys::fs::remove(path);
}

/// LLVM's parser alone would overflow the stack.
TEST(Target, json_that_nests_without_end_is_refused) {
  for (std::string bracket : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 200000; ++i)
      text += bracket;
    EXPECT_EQ(llvm::toString(parseJson(text).takeError()), "values nest more than 64 deep");
  }
  // Brackets in strings do not count, and closed ones add no depth.
  std::string flat = R"(["\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[")";
  for (int i = 0; i < 100; ++i)
    flat += ", [{}]";
  EXPECT_TRUE(static_cast<bool>(parseJson(flat + "]")));
}
} // namespace
