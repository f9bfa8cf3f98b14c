// The tables that rewriting a kernel creates besides the code. The runtime looks up sites and basic blocks in them.
#ifndef TILEWRIGHT_SIMULATOR_DEVICEPROGRAM_H
#define TILEWRIGHT_SIMULATOR_DEVICEPROGRAM_H

#include "tools/simulator/Shadow.h"
#include "tools/simulator/Simulator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::simulator {

/// The memory space of an access. `cluster` is the shared memory of any block of the cluster.
enum class Space { global, shared, cluster, generic };

constexpr int32_t unknownBase = -1;

/// An op that reports to the runtime: a memory access, a barrier or a shuffle.
struct Site {
  std::string operation, location;
  // The following fields are for memory accesses only.
  bool isAccess = false;
  bool isInMainLoop = false;
  Space space = Space::generic;
  AccessKind kind;
  uint32_t bytes = 0, alignment = 1;
  /// The binding or the shared variable from which the address is computed, if the code shows it.
  int32_t base = unknownBase;
};

struct BasicBlock {
  std::array<uint32_t, numInstructionClasses> instructions = {};
  uint32_t total = 0;
  std::string location;
};

/// A variable of the module, in shared or in global memory.
struct Variable {
  std::string name;
  uint64_t bytes = 0, alignment = 16;
  bool dynamic = false;
};

struct DeviceProgram {
  std::string kernel;
  std::vector<Site> sites;
  std::vector<BasicBlock> basicBlocks;
  std::vector<Variable> shared, global;
  std::array<uint32_t, 3> maxThreads = {0, 0, 0};
  uint32_t minBlocksPerMultiprocessor = 1;
  uint32_t cluster = 1; ///< number of blocks in a cluster
  uint32_t numBindings = 0, numConstants = 0;
  bool gridBarrier = false;

  /// Returns the size of the pieces of memory for which the shadow has one cell each: the largest size, in bytes, such
  /// that every access covers whole pieces.
  uint32_t granule() const {
    uint32_t result = 16;
    for (const Site &site : sites)
      if (site.isAccess)
        while (site.bytes % result != 0 || site.alignment % result != 0)
          result /= 2;
    return result;
  }
};

} // namespace tilewright::simulator

#endif
