// The extension module `tilewright._runtime`: runs kernels without IREE, and without MLIR in the process.
#include "runtime/DirectProgram.h"

#include "python/bindings/RuntimeCalls.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

namespace nb = nanobind;
using namespace tilewright::runtime;

namespace {
/// Lends the memory of a result to numpy, which keeps the object alive.
int lend(PyObject *self, Py_buffer *view, int flags) {
  auto *memory = nb::inst_ptr<AlignedMemory>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->size()), /*readonly=*/0, flags);
}

PyType_Slot memorySlots[] = {{Py_bf_getbuffer, reinterpret_cast<void *>(lend)}, {0, nullptr}};

std::shared_ptr<Library> load(nb::handle elf) {
  Bytes bytes(elf);
  return std::make_shared<Library>(bytes.data(), bytes.size());
}

void runAt(DirectProgram &program, const std::vector<const void *> &inputs, const std::vector<void *> &outputs,
           Span *spans = nullptr) {
  nb::gil_scoped_release release;
  program.run(inputs, outputs, spans);
}

/// Runs the program on contiguous arrays, and returns the memory of its results.
nb::list runArrays(DirectProgram &program, const nb::args &arrays, Span *spans) {
  HostCall call(program.description(), program.blocks(), arrays);
  runAt(program, call.inputs, call.outputs, spans);
  return call.results;
}

nb::list run(DirectProgram &program, const nb::args &arrays) { return runArrays(program, arrays, nullptr); }

/// The forms of a program's inputs.
struct InputForms {
  std::vector<Form> forms;
};

/// Runs the program and returns the memory of its results, or None if the objects do not lend arrays of these forms.
nb::object runLent(DirectProgram &program, const InputForms &inputs, const nb::args &arrays) {
  HostCall call(program.description(), program.blocks(), arrays, inputs.forms);
  if (!call.fits)
    return nb::none();
  runAt(program, call.inputs, call.outputs);
  return call.results;
}

/// Runs the program and returns, for each launch and each thread, when the thread began and ended its part.
std::vector<std::vector<std::pair<double, double>>> trace(DirectProgram &program, const nb::args &arrays) {
  const ProgramDescription &described = program.description();
  std::vector<Span> spans(described.launches.size() * described.threads);
  runArrays(program, arrays, spans.data());
  std::vector<std::vector<std::pair<double, double>>> times(described.launches.size());
  for (size_t number = 0; number < spans.size(); ++number)
    times[number / described.threads].push_back({spans[number].start, spans[number].end});
  return times;
}

void runAddresses(DirectProgram &program, const std::vector<uintptr_t> &inputs, const std::vector<uintptr_t> &outputs) {
  const ProgramDescription &described = program.description();
  if (inputs.size() != described.inputBytes.size() || outputs.size() != described.outputBytes.size())
    throw nb::value_error("another number of addresses than the program has inputs or outputs");
  std::vector<const void *> from;
  std::vector<void *> to;
  for (uintptr_t address : inputs)
    from.push_back(reinterpret_cast<const void *>(address));
  for (uintptr_t address : outputs)
    to.push_back(reinterpret_cast<void *>(address));
  runAt(program, from, to);
}

ProgramDescription describe(const Launches &launches, const Loops &loops, std::vector<size_t> inputs,
                            std::vector<size_t> outputs, std::vector<uintptr_t> constants, std::vector<size_t> offsets,
                            size_t ownBytes, size_t localBytes, uint64_t processor, unsigned threads) {
  ProgramDescription made = describeProgram(launches, loops, std::move(inputs), std::move(outputs),
                                            std::move(constants), std::move(offsets));
  made.ownBytes = ownBytes;
  made.localBytes = localBytes;
  made.processor = processor;
  made.threads = threads;
  return made;
}
} // namespace

NB_MODULE(_runtime, m) {
  nb::set_leak_warnings(false); // users may keep programs until the interpreter exits
  nb::class_<AlignedMemory>(m, "Memory", nb::type_slots(memorySlots));
  nb::class_<Library>(m, "Library")
      .def_static("load", &load, nb::arg("elf"))
      .def("has", [](const Library &library, const std::string &kernel) { return library.find(kernel) != nullptr; },
           nb::arg("kernel"));
  nb::class_<InputForms>(m, "InputForms")
      .def("__init__",
           [](InputForms *self, const std::vector<std::pair<std::string, std::vector<Py_ssize_t>>> &given) {
             new (self) InputForms();
             for (const auto &[format, shape] : given)
               self->forms.push_back({format, shape});
           },
           nb::arg("forms"));
  nb::class_<DirectProgram>(m, "DirectProgram")
      .def("__init__",
           [](DirectProgram *self, std::shared_ptr<Library> library, const Launches &launches, const Loops &loops,
              std::vector<size_t> inputs, std::vector<size_t> outputs, std::vector<uintptr_t> constants,
              std::vector<size_t> offsets, size_t ownBytes, size_t localBytes, uint64_t processor, unsigned threads) {
             new (self) DirectProgram(std::move(library),
                                      describe(launches, loops, std::move(inputs), std::move(outputs),
                                               std::move(constants), std::move(offsets), ownBytes, localBytes, processor,
                                               threads));
           },
           nb::arg("library"), nb::kw_only(), nb::arg("launches"), nb::arg("loops"), nb::arg("input_bytes"),
           nb::arg("output_bytes"), nb::arg("constants"), nb::arg("offsets"), nb::arg("own_bytes"),
           nb::arg("local_bytes"), nb::arg("processor"), nb::arg("threads"))
      .def("run", &run, nb::sig("def run(self, *arrays: object) -> list[Memory]"))
      .def("run_lent", &runLent, nb::sig("def run_lent(self, forms: InputForms, *arrays: object) -> list[Memory] | None"))
      .def("trace", &trace, nb::sig("def trace(self, *arrays: object) -> list[list[tuple[float, float]]]"))
      .def("run_addresses", &runAddresses, nb::arg("inputs"), nb::arg("outputs"));
  bindCuda(m);
}
