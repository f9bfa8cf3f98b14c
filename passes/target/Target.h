// Targets are data (architecture section 5): everything the compiler knows of a machine is in this struct. Nothing here
// asks a live device.
#ifndef TILEWRIGHT_TARGET_TARGET_H
#define TILEWRIGHT_TARGET_TARGET_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/MicroKernel.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tilewright {

enum class Backend { cpu, cuda };

struct MemoryLevel {
  std::string name;         ///< "L1", "L2", "L3", "DRAM"
  tile::Space space;        ///< the space whose slices live here
  int64_t capacityBytes;    ///< per unit; 0: unbounded
  double bandwidth;         ///< bytes per second, all units together
  int64_t transactionBytes; ///< cache line or sector
  int64_t units;            ///< how many there are
};

/// What bounds how many threads of a GPU are resident, and how long they wait. All zero on a CPU.
struct GpuLimits {
  int64_t warpLanes = 0;
  int64_t threadsPerBlock = 0, threadsPerSm = 0, blocksPerSm = 0;
  int64_t registersPerSm = 0, registersPerThread = 0;
  int64_t sharedBytesPerSm = 0;    ///< of all resident blocks together
  int64_t reservedSharedBytes = 0; ///< of each block, taken by the system
  int64_t guaranteedSms = 0; ///< of the smallest part that the target stands for: a grid barrier counts on no more
  double clockHz = 0;
  double sharedCycles = 0, l2Cycles = 0, dramCycles = 0; ///< latency of a load, by where it is found
  double gridBarrierSeconds = 0;                         ///< one software barrier of all resident blocks
};

struct Target {
  std::string name;
  Backend backend = Backend::cpu;
  std::string triple, cpu, features; ///< as LLVM spells them; features "+a,+b"
  std::vector<MemoryLevel> levels;   ///< innermost first
  int64_t cores = 1;                 ///< hardware threads used (CPU) or SMs
  int64_t vectorBytes = 32;          ///< width of a vector register
  int64_t vectorRegisters = 16;
  double launchSeconds = 0;    ///< one kernel launch
  double barrierSeconds = 0;   ///< one barrier at block scope
  double flopsPerSecond = 0;   ///< f32 FMA peak counted as two, all cores
  double specialPerSecond = 0; ///< exp, tanh, division: elements per second, all cores
  int64_t maxBindings = 16;
  int64_t blockBytes = 0; ///< most block-space memory a workgroup may use
  GpuLimits gpu;
  std::vector<MicroKernel> microKernels; ///< preferred to those of the registry
  std::string source;                    ///< where the numbers come from

  const MemoryLevel &level(tile::Space space) const; ///< the outermost level that holds the space
  bool has(llvm::StringRef feature) const;           ///< "fma": whether `features` switches it on
};

/// The same machine with another number of hardware threads: what each core owns scales with it; the bandwidth of
/// shared levels shrinks with fewer cores but does not grow with more.
Target withCores(Target target, int64_t cores);
/// The target with the rates of a processor, as LLVM names it, whose vector units are narrower than its registers.
Target withRatesOf(Target target, llvm::StringRef cpu);

/// Names of the table of known targets.
std::vector<std::string> knownTargets();
/// A target by table name, "cpu" (this machine's ISA with the table's numbers as far as they fit it), or a path to a
/// JSON file whose fields override those of its "base". Errors name the field and what to do.
llvm::Expected<Target> lookupTarget(llvm::StringRef nameOrPath);
llvm::json::Value toJson(const Target &target);
llvm::Expected<Target> targetFromJson(const llvm::json::Value &value);

} // namespace tilewright

#endif
