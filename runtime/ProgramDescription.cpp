#include "runtime/ProgramDescription.h"

#include <stdexcept>

using namespace tilewright::runtime;

std::vector<char *> ProgramDescription::slotAddresses(char *own) const {
  std::vector<char *> addresses(inputBytes.size() + outputBytes.size());
  for (uintptr_t constant : constants)
    addresses.push_back(reinterpret_cast<char *>(constant));
  for (size_t offset : offsets)
    addresses.push_back(own + offset);
  for (const Loop &loop : loops)
    addresses.resize(addresses.size() + loop.slots.size());
  for (const Launch &launch : launches)
    check(launch, addresses.size());
  uint32_t begin = 0;
  for (const Loop &loop : loops) {
    check(loop, begin, addresses.size());
    begin = loop.begin;
  }
  return addresses;
}

void ProgramDescription::check(const Launch &launch, size_t slots) const {
  for (uint32_t slot : launch.slots)
    if (slot >= slots)
      throw std::runtime_error("kernel " + launch.kernel + " uses tensor " + std::to_string(slot) +
                               ", which does not exist");
  if (launch.kernel.empty() && launch.slots.size() != 2)
    throw std::runtime_error("a copy of " + std::to_string(launch.slots.size()) + " tensors");
}

void ProgramDescription::check(const Loop &loop, uint32_t begin, size_t slots) const {
  if (loop.begin < begin || loop.end <= loop.begin || loop.end > launches.size())
    throw std::runtime_error("a loop over launches that do not exist");
  for (const MovingSlot &moving : loop.slots)
    for (uint32_t slot : {moving.slot, moving.first, moving.even, moving.odd})
      if (slot >= slots)
        throw std::runtime_error("a loop moves tensor " + std::to_string(slot) + ", which does not exist");
}
