// Targets are data: this struct holds everything the compiler knows about a machine. Nothing here queries a live
// device.
#ifndef TILEWRIGHT_TARGET_TARGET_H
#define TILEWRIGHT_TARGET_TARGET_H

#include "dialects/tile/TileDialect.h"
#include "passes/target/CostParameters.h"
#include "passes/target/LaneBytes.h"
#include "passes/target/MicroKernel.h"
#include "llvm/Support/JSON.h"
#include <string>
#include <vector>

namespace tilewright {

struct MemoryLevel {
  std::string name;         ///< "L1", "L2", "L3", "DRAM"
  tile::Space space;        ///< memory space whose slices are here
  int64_t capacityBytes;    ///< per unit; 0: unbounded
  double bandwidth;         ///< bytes per second of all units together
  int64_t transactionBytes; ///< size of a cache line or sector
  int64_t units;            ///< number of units
};

/// The limits that decide how many threads of a GPU are resident, and its latencies. All are zero on a CPU.
struct GpuLimits {
  int64_t warpLanes = 0;
  int64_t threadsPerBlock = 0, threadsPerSm = 0, blocksPerSm = 0;
  int64_t registersPerSm = 0, registersPerThread = 0;
  int64_t sharedBytesPerSm = 0;    ///< total of all resident blocks
  int64_t reservedSharedBytes = 0; ///< per block, taken by the system
  /// SMs of the smallest part that the target stands for. A grid barrier relies on no more than these.
  int64_t guaranteedSms = 0;
  double clockHz = 0;
  double sharedCycles = 0, l2Cycles = 0, dramCycles = 0; ///< latency of a load, by the level that serves it
  double gridBarrierSeconds = 0;                         ///< one software barrier of all resident blocks
};

/// The facts that hold for every machine of a kind (MachineKind.h). Passes ask for them, and never for the kind. Target
/// files do not set them.
struct MachineTraits {
  /// Workgroups are blocks of threads, which share rows and exchange values; else a workgroup is one thread, which
  /// fills the lanes of vectors.
  bool threadBlocks = false;
  /// Buffers of a workgroup that are not live at the same time share memory, and lines of operands are padded.
  bool sharesBufferMemory = false;
  /// A tile buffers the inputs that one nest reads repeatedly; else caches keep them.
  bool buffersRepeatedReads = false;
  /// A workgroup buffers the inputs that all of its tiles read.
  bool stagesForWorkgroup = false;
  /// Stores may bypass the caches.
  bool streamsStores = false;
  /// Kernels read their operands in any order, so movement needs no buffer, and a transpose costs least in its reader.
  bool readsTransposed = false;
  /// One binding holds several weights of a kernel, and one holds the results that only the kernel itself reads.
  bool sharesBindings = false;
  /// Contractions that take hardly longer than a launch share one.
  bool packsContractions = false;
  /// The variance of bf16 and f16 may be computed in one pass.
  bool narrowOnePass = false;
  /// Instructions that every machine of the kind has, so that `features` need not list them: names of LLVM's features,
  /// "ex2" (2 to the power of x), "minmax" (of floats, with either treatment of NaN), "tf32" (products of f32 rounded
  /// to 10 bits of mantissa).
  std::vector<std::string> instructions = {};
};

struct Target {
  std::string name;
  std::string backend = "cpu"; ///< name of its kind
  MachineTraits traits;
  std::string triple, cpu, features; ///< in LLVM's spelling; features "+a,+b"
  std::vector<MemoryLevel> levels;   ///< innermost first
  int64_t cores = 1;                 ///< hardware threads used (CPU) or SMs
  int64_t vectorBytes = 32;          ///< width of a vector register
  int64_t vectorRegisters = 16;
  double launchSeconds = 0;    ///< one kernel launch
  double barrierSeconds = 0;   ///< one barrier at block scope
  double flopsPerSecond = 0;   ///< f32 peak of all cores; an FMA counts as two
  double specialPerSecond = 0; ///< elements per second of all cores: exp, tanh, division
  int64_t maxBindings = 16;
  int64_t blockBytes = 0; ///< most block-space memory a workgroup may use
  GpuLimits gpu;
  CostParameters costs;
  std::vector<MicroKernel> microKernels; ///< preferred to those of the registry
  std::string source;                    ///< source of the numbers

  const MemoryLevel &level(tile::Space space) const; ///< outermost level that holds the space
  /// Returns true if `features` enables the feature ("fma", without a sign), or every machine of the kind has it.
  bool has(llvm::StringRef feature) const;
  /// Returns the lanes of f32 that one thread fills: those of a vector, or one if threads of a block are the lanes.
  int64_t lanes() const { return traits.threadBlocks ? 1 : vectorBytes / kLaneBytes; }
  /// Returns true if blocks of a kernel can wait for each other.
  bool hasGridBarriers() const { return gpu.guaranteedSms > 0; }
};

/// Returns the same machine with another number of hardware threads. What each core owns scales with it; the bandwidth
/// of shared levels shrinks with fewer cores but does not grow with more.
Target withCores(Target target, int64_t cores);
/// Returns the target with the rates of a processor, by LLVM's name, whose vector units may be narrower than its
/// registers.
Target withRatesOf(Target target, llvm::StringRef cpu);

/// Returns the names of the table of known targets.
std::vector<std::string> knownTargets();
/// Looks up a target by table name, by "cpu" (this machine's instructions with the numbers of the closest table entry),
/// or by the path of a JSON file whose fields override those of its "base". Errors name the field and the remedy.
llvm::Expected<Target> lookupTarget(llvm::StringRef nameOrPath);
llvm::json::Value toJson(const Target &target);
llvm::Expected<Target> targetFromJson(const llvm::json::Value &value);

} // namespace tilewright

#endif
