// Maps the features of a target to the bits that IREE's runtime reports for x86-64.
#include "passes/target/ProcessorData.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tilewright;

const StringMap<unsigned> &tilewright::reportedBits() {
  static const StringMap<unsigned> bits = {{"sse3", 0},
                                           {"ssse3", 1},
                                           {"sse4.1", 2},
                                           {"sse4.2", 3},
                                           {"sse4a", 4},
                                           {"avx", 10},
                                           {"fma", 11},
                                           {"fma4", 12},
                                           {"xop", 13},
                                           {"f16c", 14},
                                           {"avx2", 15},
                                           {"avx512f", 20},
                                           {"avx512cd", 21},
                                           {"avx512vl", 22},
                                           {"avx512dq", 23},
                                           {"avx512bw", 24},
                                           {"avx512ifma", 25},
                                           {"avx512vbmi", 26},
                                           {"avx512vpopcntdq", 27},
                                           {"avx512vnni", 28},
                                           {"avx512vbmi2", 29},
                                           {"avx512bitalg", 30},
                                           {"avx512bf16", 31},
                                           {"avx512fp16", 32},
                                           {"amx-tile", 50},
                                           {"amx-int8", 51},
                                           {"amx-bf16", 52}};
  return bits;
}

static bool isVectorExtension(StringRef feature) {
  return any_of(ArrayRef<StringRef>{"sse", "ssse", "avx", "amx", "fma", "f16c"},
                [&](StringRef prefix) { return feature.starts_with(prefix); });
}

Expected<uint64_t> tilewright::processorBits(const Target &target) {
  uint64_t bits = 0;
  SmallVector<StringRef> features;
  StringRef(target.features).split(features, ',', -1, /*KeepEmpty=*/false);
  for (StringRef feature : features) {
    if (!feature.consume_front("+"))
      continue;
    auto reported = reportedBits().find(feature);
    if (reported != reportedBits().end())
      bits |= uint64_t(1) << reported->second;
    else if (isVectorExtension(feature))
      return createStringError(inconvertibleErrorCode(),
                               "target '" + target.name + "': IREE's runtime does not report " + feature +
                                   ", so no variant can depend on it; take it out of the target's features");
  }
  return bits;
}

uint64_t tilewright::tileRegistersBit() { return uint64_t(1) << reportedBits().lookup("amx-tile"); }
