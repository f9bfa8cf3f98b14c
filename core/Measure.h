// Measures rates of this processor: multiply-adds from registers, and copies and reads within one level of the memory. Each call
// is one trial; Python repeats trials and judges how well they agree (tilewright/calibration).
#ifndef TILEWRIGHT_CORE_MEASURE_H
#define TILEWRIGHT_CORE_MEASURE_H

#include "core/Core.h"

namespace tilewright {

/// Returns the f32 operations per second of `threads` threads together, which multiply and add in registers of
/// `vectorBytes` bytes (16, 32 or 64) for about `seconds`. A multiply-add counts as two operations. Returns 0 if this
/// processor has no such registers.
TILEWRIGHT_CORE double measureMultiplyAdds(int64_t vectorBytes, unsigned threads, double seconds);

/// Returns the bytes per second that `threads` threads together read and write while each copies between two halves of
/// `bytes` bytes of its own for about `seconds`, in registers of `vectorBytes` bytes. Returns 0 if this processor has
/// no such registers, or has not enough memory.
TILEWRIGHT_CORE double measureCopies(int64_t vectorBytes, uint64_t bytes, unsigned threads, double seconds);

/// Returns the bytes per second that `threads` threads together read, each again and again from `bytes` bytes of its own
/// for about `seconds`, in registers of `vectorBytes` bytes. Returns 0 as `measureCopies` does.
TILEWRIGHT_CORE double measureReads(int64_t vectorBytes, uint64_t bytes, unsigned threads, double seconds);

} // namespace tilewright

#endif
