// Each level keeps the lines of a set in a linked list in order of their last use.
#include "core/CacheSimulator.h"

#include "llvm/ADT/DenseMap.h"
#include <algorithm>

using namespace tilewright;

/// One level of the hierarchy. The lines of each set are a linked list through one array, most recently used first.
class CacheSimulator::Level {
public:
  explicit Level(const CacheShape &shape) : lineBytes(shape.lineBytes) {
    int64_t lines = std::max<int64_t>(1, shape.capacityBytes / shape.lineBytes);
    ways = shape.ways > 0 ? std::min(shape.ways, lines) : lines;
    sets.resize(std::max<int64_t>(1, lines / ways));
    places.resize(sets.size() * ways);
    found.reserve(places.size());
  }

  struct Evicted {
    uint64_t line;
    bool isDirty;
  };

  /// Returns true if the line is in the cache, and makes it the most recently used one.
  bool find(uint64_t line, bool isStore) {
    auto known = found.find(line);
    if (known == found.end())
      return false;
    Place &place = places[known->second];
    place.isDirty |= isStore;
    Set &set = sets[line % sets.size()];
    if (set.first != known->second) {
      unlink(set, known->second);
      pushFront(set, known->second);
    }
    return true;
  }

  /// Inserts a line that is not in the cache. Returns true if it evicted another line.
  bool insert(uint64_t line, bool isDirty, Evicted &evicted) {
    Set &set = sets[line % sets.size()];
    bool isFull = set.used == ways;
    int64_t index = isFull ? set.last : (line % sets.size()) * ways + set.used++;
    if (isFull) {
      evicted = {places[index].line, places[index].isDirty};
      found.erase(places[index].line);
      unlink(set, index);
    }
    places[index] = {line, -1, -1, isDirty};
    pushFront(set, index);
    found[line] = index;
    return isFull;
  }

  std::vector<uint64_t> empty() {
    std::vector<uint64_t> dirty;
    for (auto &[line, index] : found)
      if (places[index].isDirty)
        dirty.push_back(line);
    std::sort(dirty.begin(), dirty.end());
    found.clear();
    std::fill(sets.begin(), sets.end(), Set());
    return dirty;
  }

  const uint64_t lineBytes;
  CacheTraffic traffic;

private:
  struct Place {
    uint64_t line;
    int64_t before = -1, after = -1;
    bool isDirty = false;
  };
  struct Set {
    int64_t first = -1, last = -1, used = 0;
  };

  void unlink(Set &set, int64_t index) {
    Place &place = places[index];
    (place.before < 0 ? set.first : places[place.before].after) = place.after;
    (place.after < 0 ? set.last : places[place.after].before) = place.before;
  }

  void pushFront(Set &set, int64_t index) {
    places[index].before = -1;
    places[index].after = set.first;
    (set.first < 0 ? set.last : places[set.first].before) = index;
    set.first = index;
  }

  int64_t ways;
  std::vector<Set> sets;
  std::vector<Place> places;
  llvm::DenseMap<uint64_t, int64_t> found;
};

CacheSimulator::CacheSimulator(const std::vector<CacheShape> &shapes) {
  for (const CacheShape &shape : shapes)
    levels.push_back(std::make_unique<Level>(shape));
}

CacheSimulator::~CacheSimulator() = default;

void CacheSimulator::access(uint64_t address, uint64_t bytes, bool isStore) {
  if (bytes == 0 || levels.empty())
    return;
  uint64_t size = levels[0]->lineBytes;
  for (uint64_t line = address / size, last = (address + bytes - 1) / size; line <= last; ++line)
    touch(0, line, isStore);
}

void CacheSimulator::replay(const uint64_t *records, size_t count) {
  for (const uint64_t *record = records, *end = records + count; record != end; ++record)
    access(*record >> 16, (*record >> 1) & 0x7fff, *record & 1);
}

/// Accesses a line at a level. Level `levels.size()` is memory, which holds every line.
void CacheSimulator::touch(size_t number, uint64_t line, bool isStore) {
  if (number == levels.size())
    return;
  Level &level = *levels[number];
  if (level.find(line, isStore)) {
    ++level.traffic.hits;
    return;
  }
  auto below = [&](uint64_t own) {
    return number + 1 == levels.size() ? own : own * level.lineBytes / levels[number + 1]->lineBytes;
  };
  ++level.traffic.fills;
  touch(number + 1, below(line), /*isStore=*/false);
  Level::Evicted evicted;
  if (level.insert(line, isStore, evicted) && evicted.isDirty) {
    ++level.traffic.writeBacks;
    touch(number + 1, below(evicted.line), /*isStore=*/true);
  }
}

void CacheSimulator::flush() {
  for (size_t number = 0; number < levels.size(); ++number)
    for (uint64_t line : levels[number]->empty()) {
      ++levels[number]->traffic.writeBacks;
      if (number + 1 < levels.size())
        touch(number + 1, line * levels[number]->lineBytes / levels[number + 1]->lineBytes, /*isStore=*/true);
    }
}

std::vector<CacheTraffic> CacheSimulator::traffic() const {
  std::vector<CacheTraffic> result;
  for (const std::unique_ptr<Level> &level : levels)
    result.push_back(level->traffic);
  return result;
}
