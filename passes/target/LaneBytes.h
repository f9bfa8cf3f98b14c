// The lane width that plans and packed layouts for CPUs assume.
#ifndef TILEWRIGHT_TARGET_LANEBYTES_H
#define TILEWRIGHT_TARGET_LANEBYTES_H

#include <cstdint>

namespace tilewright {

/// Bytes per lane of a CPU's vector. Almost all elements are computed and accumulated in f32.
inline constexpr int64_t kLaneBytes = 4;

} // namespace tilewright

#endif
