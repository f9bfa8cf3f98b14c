// Programs on GPUs in the extension module `tilewright._runtime`.
#include "runtime/CudaProgram.h"

#include "python/bindings/RuntimeCalls.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unordered_map.h>

using namespace tilewright::runtime;
namespace nb = nanobind;

namespace {
using Addresses = std::unordered_map<std::string, uintptr_t>;

template <typename Function> void set(Function *&function, const Addresses &addresses, const char *name) {
  auto found = addresses.find(name);
  if (found == addresses.end() || !found->second)
    throw nb::value_error((std::string("the driver lacks ") + name).c_str());
  function = reinterpret_cast<Function *>(found->second);
}

CudaFunctions functionsAt(const Addresses &addresses) {
  CudaFunctions driver;
#define TILEWRIGHT_SET(name) set(driver.name, addresses, #name)
  TILEWRIGHT_SET(cuCtxSetCurrent);
  TILEWRIGHT_SET(cuLaunchKernel);
  TILEWRIGHT_SET(cuLaunchCooperativeKernel);
  TILEWRIGHT_SET(cuMemcpyDtoDAsync_v2);
  TILEWRIGHT_SET(cuMemcpyHtoDAsync_v2);
  TILEWRIGHT_SET(cuMemcpyDtoHAsync_v2);
  TILEWRIGHT_SET(cuStreamSynchronize);
  TILEWRIGHT_SET(cuStreamIsCapturing);
  TILEWRIGHT_SET(cuStreamWaitEvent);
  TILEWRIGHT_SET(cuEventRecord);
  TILEWRIGHT_SET(cuGraphLaunch);
  TILEWRIGHT_SET(cuGetErrorName);
#undef TILEWRIGHT_SET
  return driver;
}

/// Function (0 for a copy), threads of a block, bytes of dynamic shared memory, and whether blocks wait for each other.
using Kernels = std::vector<std::tuple<uintptr_t, unsigned, unsigned, bool>>;

void make(CudaProgram *self, const Addresses &driver, uintptr_t context, const Kernels &kernels,
          const Launches &launches, const Loops &loops, std::vector<size_t> inputs, std::vector<size_t> outputs,
          std::vector<uintptr_t> constants, std::vector<size_t> offsets, uint64_t own, uintptr_t done) {
  std::vector<CudaKernel> loaded;
  for (const auto &[function, threads, sharedBytes, meetsAtGrid] : kernels)
    loaded.push_back({reinterpret_cast<void *>(function), threads, sharedBytes, meetsAtGrid});
  new (self) CudaProgram(functionsAt(driver), reinterpret_cast<void *>(context), std::move(loaded),
                         describeProgram(launches, loops, std::move(inputs), std::move(outputs), std::move(constants),
                                         std::move(offsets)),
                         own, reinterpret_cast<void *>(done));
}

std::vector<void *> pointers(const std::vector<uintptr_t> &handles) {
  std::vector<void *> made;
  for (uintptr_t handle : handles)
    made.push_back(reinterpret_cast<void *>(handle));
  return made;
}

void checkCounts(const CudaProgram &program, size_t inputs, size_t outputs, size_t marks) {
  const ProgramDescription &described = program.description();
  if (inputs != described.inputBytes.size() || outputs != described.outputBytes.size())
    throw nb::value_error("another number of addresses than the program has inputs or outputs");
  if (marks != 0 && marks != described.launches.size() + 1)
    throw nb::value_error("another number of events than the program has launches, and one");
}

void run(CudaProgram &program, const std::vector<uint64_t> &inputs, const std::vector<uint64_t> &outputs,
         uintptr_t stream) {
  checkCounts(program, inputs.size(), outputs.size(), 0);
  nb::gil_scoped_release release;
  program.run(inputs, outputs, reinterpret_cast<void *>(stream));
}

nb::list runArrays(CudaProgram &program, const std::vector<uint64_t> &placed, uintptr_t stream,
                   const std::vector<uintptr_t> &marks, const nb::args &arrays, Span *spans) {
  HostCall call(program.description(), program.blocks(), arrays);
  checkCounts(program, call.inputs.size(), placed.size() - call.inputs.size(), marks.size());
  {
    nb::gil_scoped_release release;
    program.runOnHost(call.inputs, call.outputs, placed, reinterpret_cast<void *>(stream), pointers(marks), spans);
  }
  return call.results;
}

/// Runs the program on contiguous arrays in the host's memory, and returns the memory of its results there.
nb::list runOnHost(CudaProgram &program, const std::vector<uint64_t> &placed, uintptr_t stream,
                   const nb::args &arrays) {
  return runArrays(program, placed, stream, {}, arrays, nullptr);
}

/// Does the same with events between launches, and returns when the host began and ended each launch.
std::vector<std::pair<double, double>> traceOnHost(CudaProgram &program, const std::vector<uint64_t> &placed,
                                                   uintptr_t stream, const std::vector<uintptr_t> &marks,
                                                   const nb::args &arrays) {
  std::vector<Span> spans(program.description().launches.size());
  runArrays(program, placed, stream, marks, arrays, spans.data());
  std::vector<std::pair<double, double>> times;
  for (const Span &span : spans)
    times.push_back({span.start, span.end});
  return times;
}

void launchGraph(CudaProgram &program, uintptr_t graph, uintptr_t stream) {
  nb::gil_scoped_release release;
  program.launchGraph(reinterpret_cast<void *>(graph), reinterpret_cast<void *>(stream));
}

/// Returns a tensor in the memory of a GPU for DLPack, which keeps `owner` alive. `code` is DLPack's of the type of its
/// elements.
nb::ndarray<> lend(nb::handle owner, uintptr_t address, const std::vector<size_t> &shape, uint8_t code, uint8_t bits,
                   int device) {
  return nb::ndarray<>(reinterpret_cast<void *>(address), shape.size(), shape.data(), owner, /*strides=*/nullptr,
                       nb::dlpack::dtype{code, bits, 1}, nb::device::cuda::value, device);
}
} // namespace

void tilewright::runtime::bindCuda(nb::module_ &module) {
  nb::class_<CudaProgram>(module, "CudaProgram")
      .def("__init__", &make, nb::kw_only(), nb::arg("driver"), nb::arg("context"), nb::arg("kernels"),
           nb::arg("launches"), nb::arg("loops"), nb::arg("input_bytes"), nb::arg("output_bytes"),
           nb::arg("constants"), nb::arg("offsets"), nb::arg("own"), nb::arg("done"))
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs"), nb::arg("stream"))
      .def("run_on_host", &runOnHost,
           nb::sig("def run_on_host(self, placed: Sequence[int], stream: int, *arrays: object) -> list[Memory]"))
      .def("trace_on_host", &traceOnHost,
           nb::sig("def trace_on_host(self, placed: Sequence[int], stream: int, marks: Sequence[int], "
                   "*arrays: object) -> list[tuple[float, float]]"))
      .def("launch_graph", &launchGraph, nb::arg("graph"), nb::arg("stream"));
  module.def("lend_cuda", &lend,
             nb::sig("def lend_cuda(owner: object, address: int, shape: Sequence[int], code: int, bits: int, device: "
                     "int) -> object"));
}
