// The simulated device: runs a GPU kernel at the NVVM dialect on the CPU, counts what hardware counters would, and
// finds what a GPU would pass over in silence. Plain types only; docs/simulator.md defines every count and every fault.
#ifndef TILEWRIGHT_SIMULATOR_SIMULATOR_H
#define TILEWRIGHT_SIMULATOR_SIMULATOR_H

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::simulator {

class L2Cache;

/// What the device has of what the counts depend on.
struct Device {
  std::string name;
  uint64_t l2Bytes = 0;
  uint64_t sharedBytes = 0; ///< most that one block may use
  uint64_t multiprocessors = 1;
  uint64_t threadsPerMultiprocessor = 2048;
};

/// A global buffer of the caller: read before the launch, written back after it.
struct Binding {
  static constexpr uint64_t anywhere = ~uint64_t(0);
  void *data = nullptr;
  uint64_t bytes = 0;
  bool empty = false; ///< its content counts as never written
  /// On the device, a multiple of a sector behind `reservedBytes`, where variables of modules lie: of launches that
  /// share an L2.
  static constexpr uint64_t reservedBytes = 4096;
  uint64_t address = anywhere;
};

/// What stops a kernel that would not end.
struct Limits {
  uint64_t instructionsPerThread = 200'000'000;
  double seconds = 120; ///< of processor time of a host thread
};

struct Launch {
  std::string text;   ///< the module
  std::string kernel; ///< empty: the only one
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {0, 0, 0}; ///< 0: what the kernel's `nvvm.maxntid` says
  std::vector<Binding> bindings;
  std::vector<int32_t> constants;
  uint64_t dynamicSharedBytes = 0;
  Device device;
  L2Cache *l2 = nullptr; ///< that outlives the launch; null: it has one of its own, whose bytes are then written back
  Limits limits;
  unsigned hostThreads = 0; ///< 0: all
};

enum class InstructionClass {
  integer,
  floating,
  special,
  convert,
  tensor,
  global,
  shared,
  local,
  shuffle,
  barrier,
  control
};
constexpr unsigned numInstructionClasses = 11;
const char *name(InstructionClass instructionClass);

/// Of one memory access in the code, over all warps and occurrences.
struct AccessCounts {
  uint64_t requests = 0;     ///< warp accesses
  uint64_t bytes = 0;        ///< that the threads asked for
  uint64_t sectors = 0;      ///< of 32 bytes; global memory
  uint64_t idealSectors = 0; ///< had the same bytes lain side by side
  uint64_t conflicts = 0;    ///< passes over the banks beyond the first; shared memory

  void add(const AccessCounts &other);
};

struct SiteReport {
  std::string operation, location, space, access; ///< "load", "store" or "atomic"
  bool isInSumLoop = false; ///< a loop that carries sums of products: a main loop of a contraction
  AccessCounts counts;
};

struct BindingReport {
  uint64_t sectorsRead = 0, sectorsWritten = 0, bytesNeverWritten = 0;
};

struct Fault {
  std::string kind, message, operation, location, otherLocation;
};

struct Report {
  std::string kernel, device;
  uint64_t blocks = 0, threadsPerBlock = 0, sharedBytesPerBlock = 0;
  uint64_t warpInstructions = 0, threadInstructions = 0;
  std::array<uint64_t, numInstructionClasses> instructions = {}; ///< of warps
  uint64_t blockVisits = 0, divergentBlockVisits = 0;            ///< of basic blocks, by warps
  double activeLanes = 1;                                        ///< share of the lanes that the instructions had
  AccessCounts globalReads, globalWrites, globalAtomics, sharedReads, sharedWrites;
  uint64_t dramBytesRead = 0, dramBytesWritten = 0; ///< past the L2
  uint64_t warpBarriers = 0, blockBarriers = 0, clusterBarriers = 0, gridBarriers = 0, shuffles = 0;
  std::vector<SiteReport> sites;
  std::vector<BindingReport> bindings;
  std::vector<Fault> faults;
  double compileSeconds = 0, runSeconds = 0;
};

/// The report, or why there is none. A fault of the kernel is part of the report; the buffers are then not written
/// back.
std::pair<Report, std::string> simulate(const Launch &launch);

std::string toJson(const Report &report);

} // namespace tilewright::simulator

#endif
