// The device's memory. Buffers are far apart from each other, so that an address belongs to one of them or to none. The
// shared variables of a block have gaps between them for the same reason.
#ifndef TILEWRIGHT_SIMULATOR_MEMORY_H
#define TILEWRIGHT_SIMULATOR_MEMORY_H

#include "tools/simulator/DeviceProgram.h"
#include "tools/simulator/Shadow.h"

#include <memory>
#include <vector>

namespace tilewright::simulator {

struct Region {
  std::string name;
  char *begin = nullptr;
  uint64_t bytes = 0;
  uint32_t firstSector = 0; ///< number of its first sector; consecutive unless the caller gives an address
  bool empty = false;
  std::unique_ptr<GlobalShadow> shadow;

  bool contains(const char *address, uint64_t size) const {
    return address >= begin && size <= bytes && uint64_t(address - begin) <= bytes - size;
  }
};

class GlobalMemory {
public:
  ~GlobalMemory();

  /// Copies the caller's buffers in. Returns false if the host has no memory for them.
  bool addBindings(const std::vector<Binding> &bindings, uint32_t granule);
  /// Adds a variable of the module, at the address that the linker chose. Returns false if the host has no memory.
  bool addVariable(const Variable &variable, char *address, uint32_t granule);
  void copyBack(const std::vector<Binding> &bindings) const;

  const Region *find(const char *address) const;
  std::vector<Region> regions; ///< bindings first
  uint32_t nextSector = 0;     ///< next sector for regions without an address; others lie behind these sectors

private:
  bool add(Region region, bool written, uint32_t granule, uint64_t address);
  std::vector<std::pair<void *, uint64_t>> mappings;
};

/// The offsets of shared variables in a block's arena.
struct SharedLayout {
  SharedLayout(const std::vector<Variable> &variables, uint64_t dynamicBytes);

  struct Place {
    int64_t offset, bytes;
  };
  std::vector<Place> places; ///< in the order of the variables
  uint64_t arenaBytes = 0;   ///< bytes including gaps
  uint64_t usedBytes = 0;    ///< bytes that the kernel needs on the device
};

} // namespace tilewright::simulator

#endif
