// A program whose kernels are all ours, run on a GPU without IREE: its launches in order, through the C interface of
// NVIDIA's driver. Loading is left to the caller; this is what a call does.
#ifndef TILEWRIGHT_RUNTIME_CUDAPROGRAM_H
#define TILEWRIGHT_RUNTIME_CUDAPROGRAM_H

#include "runtime/AlignedMemory.h"
#include "runtime/ProgramDescription.h"
#include "runtime/Span.h"

#include <memory>
#include <mutex>

namespace tilewright::runtime {

/// Functions of libcuda that calls use, by the names that cuda.h gives them. They are given by their addresses, so that
/// neither building nor running needs NVIDIA's headers, and tests can give others.
struct CudaFunctions {
  int (*cuCtxSetCurrent)(void *context);
  int (*cuLaunchKernel)(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream, void **parameters,
                        void **extra);
  int (*cuLaunchCooperativeKernel)(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                                   unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream,
                                   void **parameters);
  int (*cuMemcpyDtoDAsync_v2)(uint64_t to, uint64_t from, size_t bytes, void *stream);
  int (*cuMemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t bytes, void *stream);
  int (*cuMemcpyDtoHAsync_v2)(void *to, uint64_t from, size_t bytes, void *stream);
  int (*cuStreamSynchronize)(void *stream);
  int (*cuStreamIsCapturing)(void *stream, int *status);
  int (*cuStreamWaitEvent)(void *stream, void *event, unsigned flags);
  int (*cuEventRecord)(void *event, void *stream);
  int (*cuGraphLaunch)(void *graph, void *stream);
  int (*cuGetErrorName)(int code, const char **name);
};

/// A loaded kernel.
struct CudaKernel {
  void *function = nullptr; ///< null for a copy
  unsigned threads = 1, sharedBytes = 0;
  bool meetsAtGrid = false; ///< its blocks wait for each other, so all of them must be resident at once
};

class CudaProgram {
public:
  /// `kernels` has one for each launch, whose name says in errors what failed. `own` is the GPU memory for what kernels
  /// hand to each other, and `done` an event of the context. Throws std::runtime_error if a slot does not exist.
  CudaProgram(const CudaFunctions &driver, void *context, std::vector<CudaKernel> kernels,
              ProgramDescription description, uint64_t own, void *done);

  /// Launches the kernels on a stream and returns. Inputs and outputs are addresses in GPU memory, multiples of 16.
  /// Calls take turns, on the GPU as well, because they share memory; while the stream is captured into a graph, keeping
  /// its replays apart from other calls is up to the caller. Throws std::runtime_error with the name of the kernel that
  /// cannot be launched.
  void run(const std::vector<uint64_t> &inputs, const std::vector<uint64_t> &outputs, void *stream);

  /// Copies inputs from the host's memory, runs the program on the copies, and copies the outputs back. `placed` are
  /// the addresses of inputs and outputs in GPU memory. Returns when the results are there. `marks` is empty, or has an
  /// event to record before the first launch and one after each. With `spans`, one for each launch, it records when the
  /// host made them: of a launch in a loop, in the last step.
  void runOnHost(const std::vector<const void *> &inputs, const std::vector<void *> &outputs,
                 const std::vector<uint64_t> &placed, void *stream, const std::vector<void *> &marks = {},
                 Span *spans = nullptr);

  /// Launches a graph that `run` was captured into, in turn with other calls.
  void launchGraph(void *graph, void *stream);

  const ProgramDescription &description() const { return described; }
  /// Memory for results on the host.
  const std::shared_ptr<KeptBlocks> &blocks() const { return keptBlocks; }

private:
  class Turn;

  void expect(int code, const std::string &what) const;
  void launch(uint32_t number, void *stream);
  void launchAll(const std::vector<uint64_t> &inputs, const std::vector<uint64_t> &outputs, void *stream,
                 const std::vector<void *> &marks, Span *spans = nullptr);

  CudaFunctions driver;
  void *context;
  std::vector<CudaKernel> kernels;
  ProgramDescription described;
  std::vector<char *> addresses; ///< in GPU memory
  void *done;                    ///< event behind the last call
  bool hasRun = false;
  std::vector<void *> parameters;
  std::shared_ptr<KeptBlocks> keptBlocks = std::make_shared<KeptBlocks>();
  std::mutex turn;
};

} // namespace tilewright::runtime

#endif
