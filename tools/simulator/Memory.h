// The device's memory: buffers far apart from each other, so that an address belongs to one of them or to none, and the
// layout of a block's shared variables, with gaps between them for the same reason.
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
  uint32_t firstSector = 0; ///< sectors are numbered through, where the caller does not say where a buffer lies
  bool empty = false;
  std::unique_ptr<GlobalShadow> shadow;

  bool contains(const char *address, uint64_t size) const {
    return address >= begin && size <= bytes && uint64_t(address - begin) <= bytes - size;
  }
};

class GlobalMemory {
public:
  ~GlobalMemory();

  /// Copies the caller's buffers in; false if the host has no memory for them.
  bool addBindings(const std::vector<Binding> &bindings, uint32_t granule);
  /// A variable of the module, which lies where the linker put it.
  bool addVariable(const Variable &variable, char *address, uint32_t granule);
  void copyBack(const std::vector<Binding> &bindings) const;

  const Region *find(const char *address) const;
  std::vector<Region> regions; ///< bindings first
  uint32_t nextSector = 0;     ///< of what has no address of its own; those have addresses behind it

private:
  bool add(Region region, bool written, uint32_t granule, uint64_t address);
  std::vector<std::pair<void *, uint64_t>> mappings;
};

/// Where the shared variables lie in a block's arena.
struct SharedLayout {
  SharedLayout(const std::vector<Variable> &variables, uint64_t dynamicBytes);

  struct Place {
    int64_t offset, bytes;
  };
  std::vector<Place> places; ///< in the order of the variables
  uint64_t arenaBytes = 0;
  uint64_t usedBytes = 0; ///< what the kernel needs on the device
};

} // namespace tilewright::simulator

#endif
