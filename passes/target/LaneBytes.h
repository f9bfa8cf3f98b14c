#ifndef TILEWRIGHT_TARGET_LANEBYTES_H
#define TILEWRIGHT_TARGET_LANEBYTES_H

#include <cstdint>

namespace tilewright {

/// Of a lane of a processor's vector: elements are computed on, and accumulated, in f32, but for few.
inline constexpr int64_t kLaneBytes = 4;

} // namespace tilewright

#endif
