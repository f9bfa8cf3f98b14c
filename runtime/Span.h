// Times of parts of a call.
#ifndef TILEWRIGHT_RUNTIME_SPAN_H
#define TILEWRIGHT_RUNTIME_SPAN_H

#include <chrono>

namespace tilewright::runtime {

/// The time that a thread spent on a launch, or on its workgroups of one, in seconds of a clock that never goes back; 0
/// and 0 if it came too late for any.
struct Span {
  double start = 0, end = 0;
};

/// Returns the time of that clock.
inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace tilewright::runtime

#endif
