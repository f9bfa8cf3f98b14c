// Implements least-recently-used replacement with a doubly linked list through an array of sectors, so that an access
// takes constant time.
#include "tools/simulator/L2Cache.h"

#include <algorithm>

using namespace tilewright::simulator;

L2Cache::L2Cache(uint64_t capacityBytes)
    : entries(1, Entry{head, head, clean, false}), capacity(std::max<uint64_t>(1, capacityBytes / sectorBytes)) {}

void L2Cache::beginKernel() { kernels.emplace_back(); }

void L2Cache::access(const SectorRun &run) {
  for (uint32_t index = 0; index < run.count; ++index)
    touch(run.first + index, run.reads, run.writes);
}

void L2Cache::flush() {
  while (used > 0)
    evict();
}

void L2Cache::touch(uint32_t sector, bool reads, bool writes) {
  uint32_t slot = sector + 1;
  if (slot >= entries.size())
    entries.resize(std::max<size_t>(slot + 1, 2 * entries.size()), Entry{head, head, clean, false});
  Entry &entry = entries[slot];
  if (entry.present) {
    unlink(slot);
  } else {
    if (used == capacity)
      evict();
    kernels.back().bytesRead += reads ? sectorBytes : 0;
    entry.present = true;
    entry.writer = clean;
    ++used;
  }
  if (writes)
    entry.writer = static_cast<uint32_t>(kernels.size() - 1);
  pushFront(slot);
}

void L2Cache::unlink(uint32_t slot) {
  Entry &entry = entries[slot];
  entries[entry.previous].next = entry.next;
  entries[entry.next].previous = entry.previous;
}

void L2Cache::pushFront(uint32_t slot) {
  Entry &entry = entries[slot];
  entry.previous = head;
  entry.next = entries[head].next;
  entries[entry.next].previous = slot;
  entries[head].next = slot;
}

void L2Cache::evict() {
  uint32_t victim = entries[head].previous;
  unlink(victim);
  if (entries[victim].writer != clean)
    kernels[entries[victim].writer].bytesWritten += sectorBytes;
  entries[victim].present = false;
  --used;
}

/// Replays one phase of the kernel, between two grid barriers.
static void replayPart(const std::vector<BlockTrace> &traces, size_t part, uint64_t resident, L2Cache &cache) {
  struct Stream {
    const std::vector<SectorRun> *runs;
    size_t position;
  };
  std::vector<Stream> streams;
  size_t nextBlock = 0;
  auto nextRuns = [&]() -> const std::vector<SectorRun> * {
    while (nextBlock < traces.size()) {
      const BlockTrace &trace = traces[nextBlock++];
      if (part < trace.size() && !trace[part].empty())
        return &trace[part];
    }
    return nullptr;
  };
  while (streams.size() < resident) {
    const std::vector<SectorRun> *runs = nextRuns();
    if (!runs)
      break;
    streams.push_back({runs, 0});
  }
  while (!streams.empty()) {
    for (Stream &stream : streams) {
      cache.access((*stream.runs)[stream.position++]);
      if (stream.position == stream.runs->size())
        stream = {nextRuns(), 0};
    }
    streams.erase(std::remove_if(streams.begin(), streams.end(), [](const Stream &s) { return !s.runs; }),
                  streams.end());
  }
}

void tilewright::simulator::replay(std::vector<BlockTrace> &traces, uint64_t resident, L2Cache &cache) {
  size_t parts = 0;
  for (const BlockTrace &trace : traces)
    parts = std::max(parts, trace.size());
  for (size_t part = 0; part < parts; ++part)
    replayPart(traces, part, resident, cache);
}
