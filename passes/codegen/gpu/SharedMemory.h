// The limit up to which CUDA kernels may declare shared memory statically.
#ifndef TILEWRIGHT_CODEGEN_GPU_SHAREDMEMORY_H
#define TILEWRIGHT_CODEGEN_GPU_SHAREDMEMORY_H

#include <cstdint>

namespace tilewright {

/// Bytes of shared memory that a kernel may declare statically; more has to be requested at the launch.
constexpr int64_t kStaticSharedBytes = 48 * 1024;

} // namespace tilewright

#endif
