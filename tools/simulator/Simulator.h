// The simulated device runs a GPU kernel in the NVVM dialect on the CPU. It counts events like hardware counters, and
// finds errors that a GPU would not report. The interface has plain types only. docs/guide/simulator.md defines every
// count and every fault.
#ifndef TILEWRIGHT_SIMULATOR_SIMULATOR_H
#define TILEWRIGHT_SIMULATOR_SIMULATOR_H

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilewright::simulator {

class L2Cache;

/// The properties of the device on which the counts depend.
struct Device {
  std::string name;
  uint64_t l2Bytes = 0;
  uint64_t sharedBytes = 0; ///< most bytes that one block may use
  uint64_t multiprocessors = 1;
  uint64_t threadsPerMultiprocessor = 2048;
};

/// A global buffer of the caller. Its content is read before the launch and written back after it.
struct Binding {
  static constexpr uint64_t anywhere = ~uint64_t(0);
  void *data = nullptr;
  uint64_t bytes = 0;
  bool empty = false; ///< true if its content counts as never written
  /// Bytes at the start of the address space for variables of modules.
  static constexpr uint64_t reservedBytes = 4096;
  /// The address on the device, for launches that share an L2: a multiple of a sector, behind `reservedBytes`.
  uint64_t address = anywhere;
};

/// Limits, which stop a kernel that would not end.
struct Limits {
  uint64_t instructionsPerThread = 200'000'000;
  double seconds = 120; ///< processor time of a host thread
};

struct Launch {
  std::string text;   ///< source of the module
  std::string kernel; ///< name; empty: the only kernel of the module
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {0, 0, 0}; ///< 0: the kernel's `nvvm.maxntid`
  std::vector<Binding> bindings;
  std::vector<int32_t> constants;
  uint64_t dynamicSharedBytes = 0;
  Device device;
  L2Cache *l2 = nullptr; ///< L2 that launches share; null: the launch has its own, which is flushed at the end
  Limits limits;
  unsigned hostThreads = 0; ///< 0: as many as the host has
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

/// The counts of one memory access in the code, summed over all warps and occurrences.
struct AccessCounts {
  uint64_t requests = 0;     ///< accesses by warps
  uint64_t bytes = 0;        ///< bytes that the threads access
  uint64_t sectors = 0;      ///< sectors of 32 bytes, in global memory
  uint64_t idealSectors = 0; ///< sectors that the same bytes would take if they were contiguous
  uint64_t conflicts = 0;    ///< passes over the banks beyond the first, in shared memory

  void add(const AccessCounts &other);
};

struct SiteReport {
  std::string operation, location, space, access; ///< "load", "store" or "atomic"
  bool isInMainLoop = false; ///< true if it is in the main loop of a contraction, which carries accumulators
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
  std::array<uint64_t, numInstructionClasses> instructions = {}; ///< instructions of warps, by class
  uint64_t blockVisits = 0, divergentBlockVisits = 0;            ///< executions of basic blocks by warps
  double activeLanes = 1;                                        ///< mean fraction of lanes active per instruction
  AccessCounts globalReads, globalWrites, globalAtomics, sharedReads, sharedWrites;
  uint64_t dramBytesRead = 0, dramBytesWritten = 0; ///< bytes between L2 and DRAM
  uint64_t warpBarriers = 0, blockBarriers = 0, clusterBarriers = 0, gridBarriers = 0, shuffles = 0;
  std::vector<SiteReport> sites;
  std::vector<BindingReport> bindings;
  std::vector<Fault> faults;
  double compileSeconds = 0, runSeconds = 0;
};

/// Runs a kernel. Returns the report, or an error if the kernel cannot run. A fault of the kernel is part of the
/// report; the buffers are then not written back.
std::pair<Report, std::string> simulate(const Launch &launch);

std::string toJson(const Report &report);

} // namespace tilewright::simulator

#endif
