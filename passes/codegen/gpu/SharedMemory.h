#ifndef TILEWRIGHT_CODEGEN_GPU_SHAREDMEMORY_H
#define TILEWRIGHT_CODEGEN_GPU_SHAREDMEMORY_H

#include <cstdint>

namespace tilewright {

/// A kernel declares up to this many bytes of shared memory itself; more has to be asked for at the launch.
constexpr int64_t kStaticSharedBytes = 48 * 1024;

} // namespace tilewright

#endif
