// One stack per GPU thread and a switch between them by hand: a few nanoseconds, where the system's would take a
// microsecond. A fiber stays on the host thread that started it.
#ifndef TILEWRIGHT_SIMULATOR_FIBER_H
#define TILEWRIGHT_SIMULATOR_FIBER_H

#include <cstddef>
#include <cstdint>

namespace tilewright::simulator {

/// Stacks are aligned to their size, so that their owner is found from any address within.
constexpr size_t stackBytes = 64 * 1024;
/// Of it, what the runtime's own frames may need.
constexpr size_t runtimeStackBytes = 24 * 1024;

/// Where a stack of execution was left; opaque.
struct Context {
  void *state = nullptr;
};

/// Leaves `from` and goes on where `to` was left.
void switchContext(Context &from, Context &to);

/// A block of stacks, not backed by memory until they are used.
class Stacks {
public:
  explicit Stacks(size_t count);
  ~Stacks();
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;

  bool valid() const { return memory != nullptr; }
  /// A context that calls `entry` on the given stack, which belongs to `owner`. `entry` must not return.
  Context start(size_t index, void *owner, void (*entry)());

private:
  char *memory = nullptr, *base = nullptr;
  size_t bytes = 0;
};

/// The owner of the stack that the caller runs on.
inline void *stackOwner() {
  uintptr_t frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return *reinterpret_cast<void **>((frame | (stackBytes - 1)) + 1 - sizeof(void *));
}

} // namespace tilewright::simulator

#endif
