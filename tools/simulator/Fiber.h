// Fibers: one stack per GPU thread, and a hand-written switch between them. A switch takes a few nanoseconds, whereas a
// switch by the system would take a microsecond. A fiber stays on the host thread that started it.
#ifndef TILEWRIGHT_SIMULATOR_FIBER_H
#define TILEWRIGHT_SIMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

namespace tilewright::simulator {

/// Size of a stack. Stacks are aligned to their size, so that any address within a stack leads to its owner.
constexpr size_t stackBytes = 64 * 1024;
/// Bytes of a stack that are reserved for the runtime's own frames.
constexpr size_t runtimeStackBytes = 24 * 1024;

/// The saved state of a fiber; opaque.
struct Context {
  void *state = nullptr;
};

/// Saves the current state in `from` and continues with `to`.
void switchContext(Context &from, Context &to);

/// The stacks of a block's threads. The system provides memory for them only when they are used.
class Stacks {
public:
  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  bool valid() const { return memory != nullptr; }
  /// Returns a context that calls `entry` on the given stack, which belongs to `owner`. `entry` must not return.
  Context start(size_t index, void *owner, void (*entry)());

private:
  char *memory = nullptr, *base = nullptr;
  size_t bytes = 0;
};

/// Returns the owner of the stack on which the caller runs.
inline void *stackOwner() {
  uintptr_t frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return *reinterpret_cast<void **>((frame | (stackBytes - 1)) + 1 - sizeof(void *));
}

} // namespace tilewright::simulator

#endif
