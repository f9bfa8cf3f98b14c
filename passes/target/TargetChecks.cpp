// Checks that code can be generated for a target that a file describes. Every error names the field by its path.
#include "passes/target/TargetChecks.h"

#include "passes/target/AccessBytes.h"
#include "passes/target/MachineKind.h"
#include "passes/target/ProcessorNames.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace tilewright;

namespace {
/// Returns the first GPU of the table with that compute capability, or null.
const Target *gpuOfTable(StringRef capability) {
  ArrayRef<Target> table = findMachineKind("cuda")->targets;
  const Target *found = find_if(table, [&](const Target &known) { return known.cpu == capability; });
  return found == table.end() ? nullptr : found;
}

/// Returns the PTX version that the features request; 0: none.
int64_t ptxVersion(StringRef features) {
  int64_t version = 0;
  for (StringRef feature : split(features, ','))
    if (int64_t requested = 0; feature.consume_front("+ptx") && !feature.getAsInteger(10, requested))
      version = std::max(version, requested);
  return version;
}

/// Returns why no kernels can be generated with a GPU's features, or an empty string.
std::string whyNotItsFeatures(const Target &target, const Target &known) {
  for (StringRef feature : split(target.features, ','))
    if (feature.consume_front("+sm_") && !feature.starts_with(StringRef(target.cpu).substr(3)))
      return ("features: '+sm_" + feature + "' is not a feature of " + target.cpu).str();
  if (int64_t least = ptxVersion(known.features); ptxVersion(target.features) < least)
    return "features: kernels of " + target.cpu + " are written in PTX " + std::to_string(least) +
           " or newer; expected +ptx" + std::to_string(least);
  return "";
}

/// Returns why no kernels can be generated for a GPU with these limits, or an empty string. A CPU's limits are zero.
std::string whyNoGpu(const Target &target) {
  const GpuLimits &gpu = target.gpu;
  constexpr int64_t kMostThreads = 1024;
  if (gpu.warpLanes != kWarpLanes)
    return "gpu.warpLanes: " + std::to_string(gpu.warpLanes) + "; only warps of 32 threads are supported";
  if (gpu.threadsPerBlock < kWarpLanes || gpu.threadsPerBlock > kMostThreads)
    return "gpu.threadsPerBlock: " + std::to_string(gpu.threadsPerBlock) + "; expected 32 to 1024";
  if (gpu.threadsPerSm < gpu.threadsPerBlock)
    return "gpu.threadsPerSm: " + std::to_string(gpu.threadsPerSm) + "; expected at least gpu.threadsPerBlock";
  const std::pair<StringRef, int64_t> counts[] = {{"blocksPerSm", gpu.blocksPerSm},
                                                  {"registersPerSm", gpu.registersPerSm},
                                                  {"registersPerThread", gpu.registersPerThread},
                                                  {"sharedBytesPerSm", gpu.sharedBytesPerSm}};
  for (auto [field, count] : counts)
    if (count == 0)
      return "gpu." + field.str() + ": expected an integer of at least 1";
  if (gpu.clockHz == 0)
    return "gpu.clockHz: expected a positive number";
  if (gpu.guaranteedSms > target.cores)
    return "gpu.guaranteedSms: " + std::to_string(gpu.guaranteedSms) + "; the target has " +
           std::to_string(target.cores) + " cores";
  if (none_of(target.levels, [](const MemoryLevel &level) { return level.space == tile::Space::global; }))
    return "levels: a GPU needs a level of space 'global'";
  const Target *known = gpuOfTable(target.cpu);
  if (!known)
    return "cpu: '" + target.cpu + "' is not a known GPU";
  if (!is_contained({8, 16}, target.vectorBytes))
    return "vectorBytes: " + std::to_string(target.vectorBytes) +
           "; expected 8 or 16, the bytes of a GPU thread's load";
  if (target.maxBindings > known->maxBindings)
    return "maxBindings: " + std::to_string(target.maxBindings) + "; IREE's CUDA driver passes at most " +
           std::to_string(known->maxBindings);
  if (target.blockBytes > known->blockBytes)
    return "blockBytes: " + std::to_string(target.blockBytes) + "; a block of " + target.cpu + " has at most " +
           std::to_string(known->blockBytes);
  return whyNotItsFeatures(target, *known);
}

/// Returns why LLVM generates no code for the processor that the target names, or an empty string. `isX86` says which
/// triples belong to the backend.
std::string whyNotItsProcessor(const Target &target, bool isX86) {
  if (std::string why = whyNoProcessor(target.triple, target.cpu, target.features); !why.empty())
    return why;
  if (Triple(target.triple).isX86_64() != isX86)
    return "triple: '" + target.triple + "' does not belong to backend " + target.backend;
  return "";
}
} // namespace

std::string tilewright::whyNoCpuCode(const Target &target) {
  if (std::string why = whyNotItsProcessor(target, /*isX86=*/true); !why.empty())
    return why;
  if (!is_contained({16, 32, 64}, target.vectorBytes))
    return "vectorBytes: " + std::to_string(target.vectorBytes) + "; expected 16, 32 or 64";
  return "";
}

std::string tilewright::whyNoCudaCode(const Target &target) {
  std::string why = whyNotItsProcessor(target, /*isX86=*/false);
  return why.empty() ? whyNoGpu(target) : why;
}
