#include "runtime/CudaProgram.h"

#include <stdexcept>

using namespace tilewright::runtime;

CudaProgram::CudaProgram(const CudaFunctions &driver, void *context, std::vector<CudaKernel> kernels,
                         ProgramDescription description, uint64_t own, void *done)
    : driver(driver), context(context), kernels(std::move(kernels)), described(std::move(description)),
      addresses(described.slotAddresses(reinterpret_cast<char *>(own))), done(done) {
  if (this->kernels.size() != described.launches.size())
    throw std::runtime_error("another number of kernels than launches");
}

void CudaProgram::expect(int code, const std::string &what) const {
  if (code == 0)
    return;
  const char *name = nullptr;
  driver.cuGetErrorName(code, &name);
  throw std::runtime_error(what + ": " + (name ? name : "error " + std::to_string(code)));
}

/// The turn of a call: it begins behind the last call, and the next one begins behind it, also if it fails.
class CudaProgram::Turn {
public:
  Turn(CudaProgram &program, void *stream) : program(program), stream(stream), lock(program.turn) {
    const CudaFunctions &driver = program.driver;
    program.expect(driver.cuCtxSetCurrent(program.context), "the GPU cannot be used");
    int capturing = 0;
    program.expect(driver.cuStreamIsCapturing(stream, &capturing), "the stream cannot be used");
    isOrdered = capturing == 0; // what is captured does not run now, so it can neither wait nor be waited for
    if (isOrdered && program.hasRun)
      program.expect(driver.cuStreamWaitEvent(stream, program.done, 0), "the stream cannot wait for the last call");
  }
  ~Turn() {
    if (isOrdered && program.driver.cuEventRecord(program.done, stream) == 0)
      program.hasRun = true;
  }
  Turn(const Turn &) = delete;
  Turn &operator=(const Turn &) = delete;

private:
  CudaProgram &program;
  void *stream;
  std::lock_guard<std::mutex> lock;
  bool isOrdered = false;
};

void CudaProgram::launch(uint32_t number, void *stream) {
  const Launch &launch = described.launches[number];
  const CudaKernel &kernel = kernels[number];
  auto address = [&](uint32_t slot) { return reinterpret_cast<uint64_t>(addresses[slot]); };
  if (!kernel.function) {
    uint64_t from = address(launch.slots[0]), to = address(launch.slots[1]);
    if (from != to && launch.bytes > 0)
      expect(driver.cuMemcpyDtoDAsync_v2(to, from, launch.bytes, stream), "a tensor cannot be copied");
    return;
  }
  // The driver reads each parameter where a pointer points to: here to the addresses themselves.
  parameters.clear();
  for (uint32_t slot : launch.slots)
    parameters.push_back(&addresses[slot]);
  int code = kernel.meetsAtGrid
                 ? driver.cuLaunchCooperativeKernel(kernel.function, launch.workgroups, 1, 1, kernel.threads, 1, 1,
                                                    kernel.sharedBytes, stream, parameters.data())
                 : driver.cuLaunchKernel(kernel.function, launch.workgroups, 1, 1, kernel.threads, 1, 1,
                                         kernel.sharedBytes, stream, parameters.data(), nullptr);
  expect(code, "kernel " + launch.kernel + " cannot be launched");
}

void CudaProgram::launchAll(const std::vector<uint64_t> &inputs, const std::vector<uint64_t> &outputs, void *stream,
                            const std::vector<void *> &marks, Span *spans) {
  for (size_t input = 0; input < inputs.size(); ++input)
    addresses[input] = reinterpret_cast<char *>(inputs[input]);
  for (size_t output = 0; output < outputs.size(); ++output)
    addresses[inputs.size() + output] = reinterpret_cast<char *>(outputs[output]);
  auto mark = [&](size_t number) {
    if (!marks.empty())
      expect(driver.cuEventRecord(marks[number], stream), "the time of a kernel cannot be marked");
  };
  mark(0);
  LaunchOrder(described, addresses).run([&](uint32_t number, unsigned) {
    double start = spans ? now() : 0;
    launch(number, stream);
    if (spans)
      spans[number] = {start, now()};
    mark(number + 1);
  });
}

void CudaProgram::run(const std::vector<uint64_t> &inputs, const std::vector<uint64_t> &outputs, void *stream) {
  Turn turn(*this, stream);
  launchAll(inputs, outputs, stream, /*marks=*/{});
}

void CudaProgram::runOnHost(const std::vector<const void *> &inputs, const std::vector<void *> &outputs,
                            const std::vector<uint64_t> &placed, void *stream, const std::vector<void *> &marks,
                            Span *spans) {
  Turn turn(*this, stream);
  auto middle = placed.begin() + static_cast<ptrdiff_t>(inputs.size());
  std::vector<uint64_t> from(placed.begin(), middle), to(middle, placed.end());
  for (size_t input = 0; input < inputs.size(); ++input)
    if (size_t bytes = described.inputBytes[input])
      expect(driver.cuMemcpyHtoDAsync_v2(from[input], inputs[input], bytes, stream), "an input cannot be copied");
  launchAll(from, to, stream, marks, spans);
  for (size_t output = 0; output < outputs.size(); ++output)
    if (size_t bytes = described.outputBytes[output])
      expect(driver.cuMemcpyDtoHAsync_v2(outputs[output], to[output], bytes, stream), "a result cannot be copied");
  expect(driver.cuStreamSynchronize(stream), "a kernel failed");
}

void CudaProgram::launchGraph(void *graph, void *stream) {
  Turn turn(*this, stream);
  expect(driver.cuGraphLaunch(graph, stream), "the graph cannot be launched");
}
