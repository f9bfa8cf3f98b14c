#include "passes/plan/grid/RecentUse.h"

#include "passes/support/BestFit.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tilewright;

namespace {
/// The tensors in the memory, phase by phase.
class Memory {
public:
  Memory(ArrayRef<HandedOn> tensors, int64_t capacity)
      : tensors(tensors), capacity(capacity), kept(tensors.size(), 0), used(tensors.size(), 0) {}

  SmallVector<unsigned> run() {
    unsigned last = 0;
    for (const HandedOn &tensor : tensors)
      last = std::max(last, tensor.read.empty() ? 0 : tensor.read.back());
    for (unsigned phase = 0; phase <= last; ++phase)
      step(phase);
    dropWhatFindsNoPlace();
    return kept;
  }

private:
  void step(unsigned phase) {
    for (unsigned tensor : held)
      if (is_contained(tensors[tensor].read, phase)) {
        used[tensor] = phase;
        ++kept[tensor];
      }
    for (auto [tensor, handed] : enumerate(tensors))
      if (handed.written == phase && !handed.read.empty() && handed.bytes <= capacity) {
        used[tensor] = phase;
        held.push_back(tensor);
        makeRoom(phase);
      }
    erase_if(held, [&](unsigned tensor) { return tensors[tensor].read.back() <= phase; });
  }

  /// Spills tensors until the rest has room. What this phase uses stays, except for the tensor that came last.
  void makeRoom(unsigned phase) {
    while (bytesHeld() > capacity) {
      auto isOlder = [&](unsigned a, unsigned b) { return used[a] < used[b]; };
      auto oldest = std::min_element(held.begin(), held.end(), isOlder);
      held.erase(used[*oldest] < phase ? oldest : std::prev(held.end()));
    }
  }

  int64_t bytesHeld() const {
    int64_t bytes = 0;
    for (unsigned tensor : held)
      bytes += tensors[tensor].bytes;
    return bytes;
  }

  /// Gives up tensors, the largest first, until all others have an offset of their own as long as they are kept.
  void dropWhatFindsNoPlace() {
    while (true) {
      SmallVector<LiveBuffer> ranges;
      size_t largest = tensors.size();
      for (auto [tensor, handed] : enumerate(tensors)) {
        if (kept[tensor] == 0)
          continue;
        ranges.push_back({handed.bytes, handed.written, handed.read[kept[tensor] - 1]});
        if (largest == tensors.size() || handed.bytes > tensors[largest].bytes)
          largest = tensor;
      }
      if (placeByBestFit(ranges).end <= capacity)
        return;
      kept[largest] = 0;
    }
  }

  ArrayRef<HandedOn> tensors;
  int64_t capacity;
  SmallVector<unsigned> kept, used, held; ///< reads kept and phase of the last use by tensor; tensors in the memory
};
} // namespace

SmallVector<unsigned> tilewright::keepByRecentUse(ArrayRef<HandedOn> tensors, int64_t capacity) {
  return Memory(tensors, capacity).run();
}
