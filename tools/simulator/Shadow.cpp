// Happens-before checks on shadow cells. The shadow of shared memory has one host thread. The shadow of global memory
// has many, so it packs a moment in one atomic word.
#include "tools/simulator/Shadow.h"

#include <algorithm>
#include <sys/mman.h>

using namespace tilewright::simulator;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Finding SharedShadow::access(uint64_t piece, const Moment &moment, uint16_t site, AccessKind kind,
                             uint32_t firstBarrier) {
  Cell &cell = cells[piece];
  uint16_t self = moment.warp * 32 + moment.lane;
  auto unordered = [&](uint32_t time, uint16_t thread, uint32_t warpTime, uint32_t arrivals) {
    bool sameWarp = thread / 32 == moment.warp;
    if (moment.clusterWaits > arrivals)
      return false;
    return time == moment.blockBarriers && thread != self && !(sameWarp && warpTime != moment.warpBarriers);
  };
  if (kind.reads && cell.writeTime < firstBarrier)
    return {Conflict::neverWritten};
  bool bothAtomic = kind.atomic && cell.atomicWrite;
  // Barriers of the block do not order accesses of other blocks.
  if (cell.remoteWrite && cell.writeTime >= firstBarrier && moment.clusterWaits <= cell.writeArrivals)
    return {Conflict::race, cell.writeSite, true};
  if (!bothAtomic && !cell.delivered && !cell.remoteWrite &&
      unordered(cell.writeTime, cell.writer, cell.writeWarpTime, cell.writeArrivals))
    return {Conflict::race, cell.writeSite, true};
  if (kind.writes) {
    bool others = cell.readTime == moment.blockBarriers && moment.clusterWaits <= cell.readArrivals &&
                  (cell.otherWarps || (cell.otherLanes && cell.readWarpTime == moment.warpBarriers));
    bool remote = cell.remoteRead && cell.readTime >= firstBarrier && moment.clusterWaits <= cell.readArrivals;
    if (others || remote || unordered(cell.readTime, cell.reader, cell.readWarpTime, cell.readArrivals))
      return {Conflict::race, cell.readSite, false};
  }
  if (kind.writes) {
    cell.writeTime = moment.blockBarriers;
    cell.writeWarpTime = moment.warpBarriers;
    cell.writeFences = moment.proxyFences;
    cell.writer = self;
    cell.writeSite = site;
    cell.atomicWrite = kind.atomic;
    cell.delivered = cell.remoteWrite = cell.remoteRead = false;
    cell.writeArrivals = moment.clusterArrivals;
  } else if (!kind.atomic) { // atomic loads synchronise, so they do not race with later writes
    cell.remoteRead &= cell.readTime >= firstBarrier;
    cell.readArrivals =
        cell.readTime >= firstBarrier ? std::max(cell.readArrivals, moment.clusterArrivals) : moment.clusterArrivals;
    noteRead(cell, moment, site);
  }
  return {};
}

Finding SharedShadow::accessRemotely(uint64_t piece, const Moment &moment, uint32_t rank, uint16_t site,
                                     AccessKind kind, uint32_t firstBarrier, uint32_t now) {
  Cell &cell = cells[piece];
  uint16_t self = 0x8000 | rank << 10 | (moment.warp * 32 + moment.lane);
  bool isWritten = cell.writeTime >= firstBarrier, isRead = cell.readTime >= firstBarrier;
  if (kind.reads && !isWritten)
    return {Conflict::neverWritten};
  bool ownWrite = cell.remoteWrite && cell.writer == self, ownRead = cell.remoteRead && cell.reader == self;
  if (isWritten && !ownWrite && moment.clusterWaits <= cell.writeArrivals)
    return {Conflict::race, cell.writeSite, true};
  if (kind.writes && isRead && !ownRead && moment.clusterWaits <= cell.readArrivals)
    return {Conflict::race, cell.readSite, false};
  if (kind.writes) {
    cell.writeTime = now;
    cell.writer = self;
    cell.writeSite = site;
    cell.writeArrivals = moment.clusterArrivals;
    cell.remoteWrite = true;
    cell.atomicWrite = cell.delivered = cell.remoteRead = false;
    return {};
  }
  cell.readArrivals = isRead ? std::max(cell.readArrivals, moment.clusterArrivals) : moment.clusterArrivals;
  cell.readTime = now;
  cell.reader = self;
  cell.readSite = site;
  cell.remoteRead = true;
  return {};
}

void SharedShadow::deliver(uint64_t piece, const Moment &moment, uint16_t site) {
  Cell &cell = cells[piece];
  cell.writeTime = moment.blockBarriers;
  cell.writeSite = site;
  cell.remoteWrite = false;
  cell.delivered = true;
}

void SharedShadow::noteRead(Cell &cell, const Moment &moment, uint16_t site) {
  uint16_t self = moment.warp * 32 + moment.lane;
  bool together = cell.readTime == moment.blockBarriers;
  bool sameWarp = cell.reader / 32 == moment.warp;
  if (!together) {
    cell.otherLanes = cell.otherWarps = false;
  } else if (!sameWarp) {
    cell.otherWarps = true;
  } else if (cell.readWarpTime != moment.warpBarriers) {
    cell.otherLanes = false; // a warp barrier orders the earlier reads before this one
  } else if (cell.reader != self) {
    cell.otherLanes = true;
  }
  cell.readTime = moment.blockBarriers;
  cell.readWarpTime = moment.warpBarriers;
  cell.reader = self;
  cell.readSite = site;
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

namespace {
/// The scope in which the readers of a piece lie: one thread, lanes of one warp, warps of one block, or several blocks.
enum Spread : uint64_t { one = 0, lanes = 1, warps = 2, blocks = 3 };

// A moment packed in a word: 5 bits for the lane, 5 for the warp, 22 for the block (counted from 1, so that no word is
// zero), 6 for grid barriers, 14 for block barriers, 10 for warp barriers, and two flags. Counts wrap around.
struct Word {
  uint64_t bits;

  static Word of(const Moment &moment) {
    uint64_t word = moment.lane | uint64_t(moment.warp & 31) << 5 | ((moment.block + 1) & 0x3fffff) << 10;
    word |= uint64_t(moment.gridBarriers & 63) << 32 | uint64_t(moment.blockBarriers & 0x3fff) << 38;
    return {word | uint64_t(moment.warpBarriers & 1023) << 52};
  }
  uint64_t thread() const { return bits & 0xffffffff; }
  uint64_t warp() const { return bits >> 5 & 0x7ffffff; }
  uint64_t block() const { return bits >> 10 & 0x3fffff; }
  uint64_t gridTime() const { return bits >> 32 & 63; }
  uint64_t blockTime() const { return bits >> 38 & 0x3fff; }
  uint64_t warpTime() const { return bits >> 52 & 1023; }
  uint64_t flags() const { return bits >> 62; }
  Word with(uint64_t flags) const { return {(bits & ~(uint64_t(3) << 62)) | flags << 62}; }
};

/// Returns true if a barrier lies between an earlier access and the current one, or both are of the same thread.
bool ordered(Word before, Word now) {
  if (before.bits == 0 || before.thread() == now.thread() || before.gridTime() != now.gridTime())
    return true;
  if (before.block() != now.block())
    return false;
  if (before.blockTime() != now.blockTime())
    return true;
  return before.warp() == now.warp() && before.warpTime() != now.warpTime();
}

/// Returns true if barriers order all earlier readers, which one word represents, before the current access.
bool readersOrdered(Word before, Word now) {
  if (before.bits == 0 || before.gridTime() != now.gridTime())
    return true;
  if (before.flags() == blocks || before.block() != now.block())
    return false;
  if (before.blockTime() != now.blockTime())
    return true;
  if (before.flags() == warps || before.warp() != now.warp())
    return false;
  return before.warpTime() != now.warpTime() || (before.flags() == one && before.thread() == now.thread());
}

/// Returns one word that represents the readers so far and a new one.
Word merge(Word before, Word now) {
  if (before.bits == 0 || before.gridTime() != now.gridTime())
    return now;
  if (before.flags() == blocks)
    return before;
  if (before.block() != now.block())
    return now.with(blocks);
  if (before.blockTime() != now.blockTime())
    return now;
  if (before.flags() == warps || before.warp() != now.warp())
    return now.with(warps);
  if (before.warpTime() != now.warpTime())
    return now;
  return now.with(before.flags() == lanes || before.thread() != now.thread() ? lanes : one);
}
} // namespace

GlobalShadow::GlobalShadow(uint64_t pieces, bool written) : pieces(pieces), written(written) {
  void *mapped = mmap(nullptr, std::max<uint64_t>(1, pieces) * sizeof(Cell), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped != MAP_FAILED)
    cells = static_cast<Cell *>(mapped);
}

GlobalShadow::~GlobalShadow() {
  if (cells)
    munmap(cells, std::max<uint64_t>(1, pieces) * sizeof(Cell));
}

Finding GlobalShadow::access(uint64_t piece, const Moment &moment, uint16_t site, AccessKind kind) {
  Cell &cell = cells[piece];
  Word now = Word::of(moment);
  Word writer{cell.writer.load(std::memory_order_relaxed)};
  if (kind.reads && !written && writer.bits == 0)
    return {Conflict::neverWritten};
  if (kind.writes)
    writer.bits = cell.writer.exchange(now.with(kind.atomic).bits);
  else if (!kind.atomic) // atomic loads synchronise, so they do not race with later writes
    noteRead(cell, now.bits, site);
  if (!kind.writes)
    writer.bits = cell.writer.load();
  if (!(kind.atomic && writer.flags()) && !ordered(writer, now))
    return {Conflict::race, cell.writeSite.load(std::memory_order_relaxed), true};
  if (kind.writes && !readersOrdered({cell.reader.load()}, now))
    return {Conflict::race, cell.readSite.load(std::memory_order_relaxed), false};
  if (kind.writes)
    cell.writeSite.store(site, std::memory_order_relaxed);
  return {};
}

void GlobalShadow::noteRead(Cell &cell, uint64_t word, uint16_t site) {
  uint64_t before = cell.reader.load(std::memory_order_relaxed);
  while (true) {
    uint64_t after = merge({before}, {word}).bits;
    if (after == before)
      return;
    if (cell.reader.compare_exchange_weak(before, after))
      break;
  }
  cell.readSite.store(site, std::memory_order_relaxed);
}

uint64_t GlobalShadow::neverWritten() const {
  uint64_t count = 0;
  for (uint64_t piece = 0; piece < pieces; ++piece)
    count += cells[piece].writer.load(std::memory_order_relaxed) == 0;
  return count;
}
