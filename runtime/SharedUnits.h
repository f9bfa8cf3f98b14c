// Units of work that threads share: each begins with a part of its own, and helps others when that is done.
#ifndef TILEWRIGHT_RUNTIME_SHAREDUNITS_H
#define TILEWRIGHT_RUNTIME_SHAREDUNITS_H

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace tilewright::runtime {

/// The units of several launches. A thread's part of a launch are neighbours, and the same ones in launches with as
/// many units, so it often finds in its own caches what it wrote before. A thread that is late loses units to others.
class SharedUnits {
public:
  SharedUnits(uint32_t launches, unsigned threads)
      : launches(launches), threads(threads), parts(new std::atomic<uint64_t>[uint64_t(launches) * threads]) {}

  /// Gives each thread a part of the units of a launch. No thread may take units meanwhile.
  void share(uint32_t launch, uint32_t count);

  /// Returns the next unit of a launch for a thread: the first one of its own part, or the last one of another's.
  /// Returns nothing if all are taken.
  std::optional<uint32_t> take(uint32_t launch, unsigned thread);

private:
  /// The units of a part that are left: the first one, and the one behind the last, in the lower half.
  std::atomic<uint64_t> &part(uint32_t launch, unsigned thread) { return parts[uint64_t(thread) * launches + launch]; }

  uint32_t launches;
  unsigned threads;
  /// By thread, then launch, so that threads mostly write to lines of their own.
  std::unique_ptr<std::atomic<uint64_t>[]> parts;
};

} // namespace tilewright::runtime

#endif
