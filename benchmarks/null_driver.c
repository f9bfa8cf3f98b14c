/* A driver for CUDA that does nothing, at once: calls of it leave what the host does. `python -m benchmarks.call_costs`
 * builds it where there is no GPU. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING(name)                                                                                                  \
  int name(void) { return 0; }
NOTHING(cuInit)
NOTHING(cuCtxSetCurrent)
NOTHING(cuCtxSynchronize)
NOTHING(cuModuleUnload)
NOTHING(cuFuncSetAttribute)
NOTHING(cuLaunchKernel)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuMemcpyDtoDAsync_v2)
NOTHING(cuMemcpyHtoD_v2)
NOTHING(cuMemcpyDtoH_v2)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuStreamWaitEvent)
NOTHING(cuStreamBeginCapture_v2)
NOTHING(cuGraphLaunch)
NOTHING(cuGraphDestroy)
NOTHING(cuGraphExecDestroy)
NOTHING(cuEventRecord)
NOTHING(cuEventSynchronize)
NOTHING(cuEventDestroy_v2)

#define HANDLE(name)                                                                                                   \
  int name(void **handle) {                                                                                            \
    *handle = (void *)1;                                                                                               \
    return 0;                                                                                                          \
  }
HANDLE(cuDevicePrimaryCtxRetain)
HANDLE(cuModuleLoadDataEx)
HANDLE(cuModuleGetFunction)
HANDLE(cuStreamCreate)
HANDLE(cuGraphInstantiateWithFlags)
HANDLE(cuEventCreate)

#define NUMBER(name, type, number)                                                                                     \
  int name(type *value) {                                                                                              \
    *value = number;                                                                                                   \
    return 0;                                                                                                          \
  }
NUMBER(cuDeviceGetCount, int, 1)
NUMBER(cuDeviceGet, int, 0)
NUMBER(cuDriverGetVersion, int, 13000)
NUMBER(cuDeviceTotalMem_v2, size_t, (size_t)1 << 37)
NUMBER(cuFuncGetAttribute, int, 32)
NUMBER(cuOccupancyMaxActiveBlocksPerMultiprocessor, int, 2)
NUMBER(cuEventElapsedTime, float, 0)

int cuDeviceGetAttribute(int *value, int which) {
  *value = which == 75 ? 9 : which == 76 ? 0 : 1 << 20; /* compute capability 9.0, and much of everything else */
  return 0;
}
int cuDeviceGetName(char *name) {
  strcpy(name, "no GPU");
  return 0;
}
int cuGetErrorName(int code, const char **name) {
  *name = "no error";
  return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
  *address = (uint64_t)aligned_alloc(256, (size + 255) / 256 * 256);
  return *address == 0;
}
int cuMemFree_v2(uint64_t address) {
  free((void *)address);
  return 0;
}
int cuStreamIsCapturing(void *stream, int *status) {
  *status = 0;
  return 0;
}
int cuStreamEndCapture(void *stream, void **graph) {
  *graph = (void *)1;
  return 0;
}
