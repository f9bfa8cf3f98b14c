// Places buffers between inaccessible pages, and shared variables between gaps.
#include "tools/simulator/Memory.h"
#include "tools/simulator/L2Cache.h"

#include <cstring>
#include <sys/mman.h>

using namespace tilewright::simulator;

/// Gap between buffers in global memory. An index that is wrong by less than this cannot reach another buffer.
static constexpr uint64_t guardBytes = uint64_t(1) << 30;
/// Gap between variables in shared memory. It is a multiple of the banks' width, so that it moves no variable to other
/// banks.
static constexpr uint64_t sharedGuardBytes = 4096;

static uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

GlobalMemory::~GlobalMemory() {
  for (auto [address, bytes] : mappings)
    munmap(address, bytes);
}

bool GlobalMemory::addBindings(const std::vector<Binding> &bindings, uint32_t granule) {
  for (size_t index = 0; index < bindings.size(); ++index) {
    const Binding &binding = bindings[index];
    uint64_t bytes = roundUp(binding.bytes, 4096);
    uint64_t reserved = bytes + 2 * guardBytes;
    void *mapped = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      return false;
    mappings.push_back({mapped, reserved});
    char *begin = static_cast<char *>(mapped) + guardBytes;
    if (bytes > 0 && mprotect(begin, bytes, PROT_READ | PROT_WRITE) != 0)
      return false;
    if (binding.bytes > 0)
      std::memcpy(begin, binding.data, binding.bytes);
    Region region;
    region.name = "binding " + std::to_string(index);
    region.begin = begin;
    region.bytes = binding.bytes;
    region.empty = binding.empty;
    if (!add(std::move(region), !binding.empty, granule, binding.address))
      return false;
  }
  return true;
}

bool GlobalMemory::addVariable(const Variable &variable, char *address, uint32_t granule) {
  Region region;
  region.name = "variable @" + variable.name;
  region.begin = address;
  region.bytes = variable.bytes;
  return add(std::move(region), /*written=*/true, granule, Binding::anywhere);
}

bool GlobalMemory::add(Region region, bool written, uint32_t granule, uint64_t address) {
  bool isPlaced = address != Binding::anywhere;
  region.firstSector = isPlaced ? static_cast<uint32_t>(address / sectorBytes) : nextSector;
  if (!isPlaced)
    nextSector += static_cast<uint32_t>(roundUp(region.bytes, sectorBytes) / sectorBytes);
  region.shadow = std::make_unique<GlobalShadow>(roundUp(region.bytes, granule) / granule, written);
  bool valid = region.shadow->valid();
  regions.push_back(std::move(region));
  return valid;
}

void GlobalMemory::copyBack(const std::vector<Binding> &bindings) const {
  for (size_t index = 0; index < bindings.size(); ++index)
    if (bindings[index].bytes > 0)
      std::memcpy(bindings[index].data, regions[index].begin, bindings[index].bytes);
}

const Region *GlobalMemory::find(const char *address) const {
  for (const Region &region : regions)
    if (region.contains(address, 1))
      return &region;
  return nullptr;
}

SharedLayout::SharedLayout(const std::vector<Variable> &variables, uint64_t dynamicBytes) {
  arenaBytes = sharedGuardBytes;
  // Align variables as declared and no better, so that a kernel that relies on more does not work by luck.
  auto place = [&](uint64_t bytes, uint64_t alignment) {
    uint64_t unit = std::max<uint64_t>(alignment, 128), offset = roundUp(arenaBytes, unit);
    offset += offset / unit % 2 == 0 ? unit : 0;
    arenaBytes = roundUp(offset + bytes, 128) + sharedGuardBytes;
    return Place{int64_t(offset), int64_t(bytes)};
  };
  for (const Variable &variable : variables) {
    places.push_back(variable.dynamic ? Place{0, 0} : place(variable.bytes, variable.alignment));
    usedBytes = variable.dynamic ? usedBytes : roundUp(usedBytes, variable.alignment) + variable.bytes;
  }
  uint64_t alignment = 1;
  for (const Variable &variable : variables)
    alignment = variable.dynamic ? std::max(alignment, variable.alignment) : alignment;
  Place dynamic = place(dynamicBytes, alignment);
  for (size_t index = 0; index < variables.size(); ++index)
    if (variables[index].dynamic)
      places[index] = dynamic; // all dynamic variables are the same memory
  usedBytes += dynamicBytes;
}
