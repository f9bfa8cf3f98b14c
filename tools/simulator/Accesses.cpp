// Checks and counts memory accesses. Each thread's access is checked at once. The cost belongs to the whole warp, so it
// is counted when every lane has reached the same occurrence of the same site, or it is certain that no other lane
// will.
#include "tools/simulator/Machine.h"

using namespace tilewright::simulator;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

namespace {
/// A memory access of one thread.
struct Checked {
  Machine &machine;
  Thread &thread;
  uint32_t siteIndex;
  const Site &site;
  char *address;
  uint32_t bytes;
};

std::string words(const Checked &access) {
  AccessKind kind = access.site.kind;
  return std::string(kind.atomic   ? "atomic access to "
                     : kind.writes ? "write of "
                                   : "read of ") +
         std::to_string(access.bytes) + " bytes";
}

std::string threadName(const Machine &machine, const Thread &thread) {
  const auto &size = machine.blockSize;
  const auto &id = thread.block->id;
  auto text = [](uint64_t x, uint64_t y, uint64_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  return "thread " + text(thread.index % size[0], thread.index / size[0] % size[1], thread.index / size[0] / size[1]) +
         " of block " + text(id[0], id[1], id[2]);
}

[[noreturn]] void outOfBounds(const Checked &access, const std::string &name, uint64_t bytes, int64_t offset) {
  access.machine.fail(access.thread, "out-of-bounds",
                      words(access) + " at byte " + std::to_string(offset) + " of " + name + ", which has " +
                          std::to_string(bytes) + ", by " + threadName(access.machine, access.thread),
                      access.siteIndex);
}

void judge(const Checked &access, const Finding &finding, const std::string &name, uint64_t offset) {
  if (finding.conflict == Conflict::none)
    return;
  std::string where = " byte " + std::to_string(offset) + " of " + name;
  std::string thread = threadName(access.machine, access.thread);
  if (finding.conflict == Conflict::neverWritten)
    access.machine.fail(access.thread, "never-written", thread + " reads" + where + ", which nobody has written",
                        access.siteIndex);
  access.machine.fail(access.thread, "race",
                      thread + (access.site.kind.writes ? " writes" : " reads") + where + ", which another thread " +
                          (finding.otherWrites ? "writes" : "reads") + " with no barrier between the two",
                      access.siteIndex, access.machine.program.sites[finding.otherSite].location);
}

[[noreturn]] void unfinished(const Checked &access, const std::string &name, uint64_t offset, uint32_t copySite) {
  const Site &copy = access.machine.program.sites[copySite];
  access.machine.fail(access.thread, "unfinished",
                      threadName(access.machine, access.thread) + (access.site.kind.writes ? " writes" : " reads") +
                          " byte " + std::to_string(offset) + " of " + name + ", which " + copy.operation +
                          " still fills: wait for the " +
                          (copy.operation.find("bulk") == std::string::npos ? "group that it is committed to"
                                                                            : "mbarrier that it completes on"),
                      access.siteIndex, copy.location);
}

[[noreturn]] void inUse(const Checked &access, const std::string &name, uint64_t offset, uint32_t productSite) {
  const Site &product = access.machine.program.sites[productSite];
  access.machine.fail(access.thread, "unfinished",
                      threadName(access.machine, access.thread) + " writes byte " + std::to_string(offset) + " of " +
                          name + ", which " + product.operation +
                          " still reads: wait for the group that it is committed to",
                      access.siteIndex, product.location);
}

/// Checks an access to the shared memory of `block`, by a thread of the block or of another block of its cluster.
void checkShared(const Checked &access, Block &block) {
  const SharedLayout &layout = access.machine.layout;
  bool isRemote = &block != access.thread.block;
  int64_t address = access.address - block.shared;
  size_t found = layout.places.size();
  for (size_t index = 0; index < layout.places.size() && found == layout.places.size(); ++index) {
    const SharedLayout::Place &place = layout.places[index];
    bool inside = address >= place.offset && address + access.bytes <= place.offset + place.bytes;
    if (access.site.base == int32_t(index) || (access.site.base == unknownBase && inside))
      found = index;
  }
  if (found == layout.places.size())
    outOfBounds(access, "the block's shared memory", layout.usedBytes, address);
  const SharedLayout::Place &place = layout.places[found];
  std::string const &name = access.machine.program.shared[found].name;
  int64_t offset = address - place.offset;
  if (offset < 0 || offset + access.bytes > place.bytes)
    outOfBounds(access, "shared @" + name, place.bytes, offset);
  uint32_t granule = access.machine.granule;
  Moment moment = momentOf(access.thread);
  for (uint32_t byte = 0; byte < access.bytes; byte += granule) {
    uint64_t piece = (address + byte) / granule;
    if (isRemote) {
      judge(access,
            block.shadow->accessRemotely(piece, moment, access.thread.block->rank, access.siteIndex, access.site.kind,
                                         block.firstBarrier, block.barriers),
            "shared @" + name, offset + byte);
      continue;
    }
    if (block.unfinished->any() && block.unfinished->siteOf(piece) >= 0)
      unfinished(access, "shared @" + name, offset + byte, block.unfinished->siteOf(piece));
    if (access.site.kind.writes && block.inUse->any() && block.inUse->siteOf(piece) >= 0)
      inUse(access, "shared @" + name, offset + byte, block.inUse->siteOf(piece));
    uint32_t copySite = 0;
    if (block.transactions.any() && block.transactions.isUnreached(access.thread, piece, copySite))
      unfinished(access, "shared @" + name, offset + byte, copySite);
    Finding finding = block.shadow->access(piece, moment, access.siteIndex, access.site.kind, block.firstBarrier);
    if (finding.conflict != Conflict::none)
      judge(access, finding, "shared @" + name, offset + byte);
  }
}

/// Checks an access to the shared memory of a block of the cluster. That block must have begun and must not have ended.
void checkCluster(const Checked &access) {
  const Block &own = *access.thread.block;
  for (Block *block : own.cluster) {
    if (access.address < block->shared || access.address >= block->shared + access.machine.layout.arenaBytes)
      continue;
    if (block != &own && access.thread.clusterWaits == 0)
      access.machine.fail(access.thread, "race",
                          threadName(access.machine, access.thread) +
                              " reaches into another block, which may not have begun: wait at a barrier of the cluster",
                          access.siteIndex);
    if (block->live == 0)
      access.machine.fail(access.thread, "out-of-bounds",
                          words(access) + " of a block that has ended, by " + threadName(access.machine, access.thread),
                          access.siteIndex);
    return checkShared(access, *block);
  }
  outOfBounds(access, "the cluster's shared memory", access.machine.layout.usedBytes, access.address - own.shared);
}

void checkGlobal(const Checked &access) {
  const GlobalMemory &memory = access.machine.memory;
  const Region *region =
      access.site.base == unknownBase ? memory.find(access.address) : &memory.regions[access.site.base];
  if (!region)
    access.machine.fail(access.thread, "out-of-bounds",
                        words(access) + " outside every buffer, by " + threadName(access.machine, access.thread),
                        access.siteIndex);
  int64_t offset = access.address - region->begin;
  if (!region->contains(access.address, access.bytes))
    outOfBounds(access, region->name, region->bytes, offset);
  uint32_t granule = access.machine.granule;
  Moment moment = momentOf(access.thread);
  for (uint32_t byte = 0; byte < access.bytes; byte += granule) {
    Finding finding = region->shadow->access((offset + byte) / granule, moment, access.siteIndex, access.site.kind);
    if (finding.conflict != Conflict::none)
      judge(access, finding, region->name, offset + byte);
  }
}

bool within(const char *address, const char *begin, uint64_t bytes) {
  return address >= begin && address < begin + bytes;
}

bool onOwnStack(const char *address) {
  auto stack = [](const void *pointer) { return reinterpret_cast<uintptr_t>(pointer) / stackBytes; };
  return stack(address) == stack(__builtin_frame_address(0));
}
/// Occurrences by which a lane may be ahead of the others before it lets them run. This bounds the memory for
/// occurrences.
constexpr size_t mostOpenOccurrences = 1024;

void noteOccurrence(Machine &machine, Thread &thread, uint32_t siteIndex, char *address) {
  Warp &warp = *thread.warp;
  Occurrences &occurrences = warp.occurrences[siteIndex];
  uint32_t occurrence = occurrences.next[thread.lane]++;
  if (occurrence == occurrences.open.size())
    occurrences.open.emplace_back();
  Occurrences::Occurrence &mine = occurrences.open[occurrence];
  mine.lanes |= 1u << thread.lane;
  mine.addresses[thread.lane] = address;
  if ((mine.lanes & warp.present) == warp.present && occurrence == occurrences.done) {
    countAccess(machine, *thread.block, siteIndex, mine);
    ++occurrences.done;
    if (occurrences.done == occurrences.open.size() || occurrences.done == mostOpenOccurrences)
      occurrences.forgetDone();
  }
  if (occurrence - occurrences.done > mostOpenOccurrences)
    machine.giveWay(thread);
}
} // namespace

void tilewright::simulator::checkMemory(Thread &thread, uint32_t siteIndex, char *address, uint32_t bytes) {
  Machine &machine = *thread.block->worker->machine;
  const Site &site = machine.program.sites[siteIndex];
  Checked access{machine, thread, siteIndex, site, address, bytes};
  if (reinterpret_cast<uintptr_t>(address) % site.alignment != 0)
    machine.fail(thread, "misaligned",
                 words(access) + " at an address that is not a multiple of " + std::to_string(site.alignment) +
                     ", by " + threadName(machine, thread),
                 siteIndex);
  bool shared = site.space == Space::shared ||
                (site.space == Space::generic && within(address, thread.block->shared, machine.layout.arenaBytes));
  if (site.space == Space::cluster)
    checkCluster(access);
  else if (shared)
    checkShared(access, *thread.block);
  else
    checkGlobal(access);
}

void tilewright::simulator::accessMemory(Thread &thread, uint32_t siteIndex, char *address, uint32_t bytes) {
  Machine &machine = *thread.block->worker->machine;
  const Site &site = machine.program.sites[siteIndex];
  if (site.space == Space::generic && onOwnStack(address))
    return; // it is a variable of the thread itself
  checkMemory(thread, siteIndex, address, bytes);
  noteOccurrence(machine, thread, siteIndex, address);
  if (site.kind.atomic)
    machine.giveWay(thread); // it may be in a loop that waits for another thread
}

/// Reports an access. The kernel calls it before every access to memory that threads share.
extern "C" void tilewright_simulator_access(uint32_t siteIndex, char *address) {
  Thread &thread = currentThread();
  accessMemory(thread, siteIndex, address, thread.block->worker->machine->program.sites[siteIndex].bytes);
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

void AccessCounts::add(const AccessCounts &other) {
  requests += other.requests;
  bytes += other.bytes;
  sectors += other.sectors;
  idealSectors += other.idealSectors;
  conflicts += other.conflicts;
}

namespace {
/// Counts the sectors and the distinct bytes of the lanes' accesses, and appends the sectors to the trace. `starts` are
/// the lanes' addresses in the numbering of sectors, in ascending order.
void countSectors(const uint64_t *starts, uint32_t lanes, uint32_t bytes, AccessKind kind, AccessCounts &counts,
                  std::vector<SectorRun> &trace, uint64_t &sectors) {
  uint64_t covered = 0, distinct = 0; // `covered` is the end of the bytes so far
  SectorRun run{0, 0, kind.reads, kind.writes};
  auto close = [&] {
    if (run.count > 0)
      trace.push_back(run);
    sectors += run.count;
  };
  for (uint32_t index = 0; index < lanes; ++index) {
    uint64_t begin = std::max(starts[index], covered), end = starts[index] + bytes;
    if (begin >= end)
      continue;
    distinct += end - begin;
    covered = end;
    uint32_t first = begin / sectorBytes, last = (end - 1) / sectorBytes;
    uint32_t behind = run.first + run.count; // first sector behind the run
    if (run.count == 0 || first > behind) {
      close();
      run.first = first;
      run.count = last - first + 1;
    } else if (last >= behind) {
      run.count = last - run.first + 1;
    }
  }
  close();
  counts.sectors += sectors;
  counts.idealSectors += (distinct + sectorBytes - 1) / sectorBytes;
}

void countGlobal(Machine &machine, Block &block, const Site &site, AccessCounts &counts, char *const *addresses,
                 uint32_t lanes) {
  const std::vector<Region> &regions = machine.memory.regions;
  uint64_t starts[32];
  const Region *region = site.base == unknownBase ? machine.memory.find(addresses[0]) : &regions[site.base];
  for (uint32_t index = 0; index < lanes; ++index) {
    const Region *own = region->contains(addresses[index], 1) ? region : machine.memory.find(addresses[index]);
    starts[index] = own->firstSector * sectorBytes + (addresses[index] - own->begin);
  }
  std::sort(starts, starts + lanes);
  uint64_t sectors = 0;
  countSectors(starts, lanes, site.bytes, site.kind, counts, block.trace.back(), sectors);
  BindingReport &binding = block.worker->regions[region - regions.data()];
  binding.sectorsRead += site.kind.reads ? sectors : 0;
  binding.sectorsWritten += site.kind.writes ? sectors : 0;
}

/// Returns the bank conflicts of an access. Shared memory has 32 banks of 4 bytes. Wide accesses proceed by half or
/// quarter warps, each of at most 128 bytes. In one pass, a bank delivers one word to any number of lanes.
uint64_t bankConflicts(uint32_t bytes, const Occurrences::Occurrence &occurrence) {
  uint32_t together = bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32;
  uint32_t words = std::max(1u, bytes / 4);
  uint64_t conflicts = 0;
  for (uint32_t begin = 0; begin < 32; begin += together) {
    uint32_t wanted[32][32], counts[32] = {}, passes = 0;
    for (uint32_t lane = begin; lane < begin + together; ++lane) {
      if (!(occurrence.lanes >> lane & 1))
        continue;
      uint32_t first = reinterpret_cast<uintptr_t>(occurrence.addresses[lane]) / 4; // arenas start at bank 0
      for (uint32_t word = first; word < first + words; ++word) {
        uint32_t bank = word % 32, &count = counts[bank];
        if (std::find(wanted[bank], wanted[bank] + count, word) == wanted[bank] + count && count < 32)
          wanted[bank][count++] = word;
        passes = std::max(passes, count);
      }
    }
    conflicts += passes > 0 ? passes - 1 : 0;
  }
  return conflicts;
}
} // namespace

void tilewright::simulator::countAccess(Machine &machine, Block &block, uint32_t siteIndex,
                                        const Occurrences::Occurrence &occurrence) {
  const Site &site = machine.program.sites[siteIndex];
  AccessCounts &counts = block.worker->sites[siteIndex];
  char *addresses[32];
  uint32_t lanes = 0;
  for (uint32_t set = occurrence.lanes; set; set &= set - 1)
    addresses[lanes++] = occurrence.addresses[__builtin_ctz(set)];
  ++counts.requests;
  counts.bytes += uint64_t(lanes) * site.bytes;
  if (site.space == Space::cluster || within(addresses[0], block.shared, machine.layout.arenaBytes))
    counts.conflicts += bankConflicts(site.bytes, occurrence);
  else
    countGlobal(machine, block, site, counts, addresses, lanes);
}
