// Arrays in the host's memory, and descriptions of programs, for programs on processors and on GPUs alike.
#ifndef TILEWRIGHT_BINDINGS_RUNTIMECALLS_H
#define TILEWRIGHT_BINDINGS_RUNTIMECALLS_H

#include "runtime/AlignedMemory.h"
#include "runtime/ProgramDescription.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace tilewright::runtime {
namespace nb = nanobind;

/// The memory of a contiguous array, held for as long as the object lives.
class Bytes {
public:
  explicit Bytes(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE) != 0)
      throw nb::python_error();
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() { PyBuffer_Release(&view); }
  const void *data() const { return view.buf; }
  size_t size() const { return static_cast<size_t>(view.len); }

private:
  Py_buffer view;
};

/// The contiguous arrays that a program is called with, and memory for its results.
class HostCall {
public:
  /// Throws nb::value_error if the arrays do not have the number and the sizes of the program's inputs.
  HostCall(const ProgramDescription &described, const std::shared_ptr<KeptBlocks> &blocks, const nb::args &arrays) {
    if (arrays.size() != described.inputBytes.size())
      throw nb::value_error("another number of arrays than the program has inputs");
    for (nb::handle array : arrays) {
      held.push_back(std::make_unique<Bytes>(array));
      if (held.back()->size() != described.inputBytes[inputs.size()])
        throw nb::value_error("an array of another size than the input has");
      inputs.push_back(held.back()->data());
    }
    for (size_t bytes : described.outputBytes) {
      auto memory = std::make_unique<AlignedMemory>(bytes, blocks);
      outputs.push_back(memory->data());
      results.append(nb::cast(std::move(memory)));
    }
  }

  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  nb::list results; ///< the memory of the outputs

private:
  std::vector<std::unique_ptr<Bytes>> held;
};

/// Kernel (empty for a copy), workgroups, slots, and bytes of a copy.
using Launches = std::vector<std::tuple<std::string, uint32_t, std::vector<uint32_t>, size_t>>;
/// Slot, slots that it begins behind (in step 0, in even and in odd steps), and the offset in step 0, offset and
/// stride.
using MovingSlots = std::vector<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int64_t, int64_t>>;
/// First launch, end, steps, and moving slots.
using Loops = std::vector<std::tuple<uint32_t, uint32_t, uint32_t, MovingSlots>>;

inline Loop describeLoop(uint32_t begin, uint32_t end, uint32_t steps, const MovingSlots &slots) {
  Loop loop{begin, end, steps, {}};
  for (const auto &[slot, first, even, odd, firstOffset, offset, stride] : slots)
    loop.slots.push_back({slot, first, even, odd, firstOffset, offset, stride});
  return loop;
}

/// Returns the description of a program on any machine. `constants` are addresses, `offsets` are in its own memory.
inline ProgramDescription describeProgram(const Launches &launches, const Loops &loops, std::vector<size_t> inputs,
                                          std::vector<size_t> outputs, std::vector<uintptr_t> constants,
                                          std::vector<size_t> offsets) {
  ProgramDescription made;
  for (const auto &[kernel, workgroups, slots, bytes] : launches)
    made.launches.push_back({kernel, workgroups, slots, bytes});
  for (const auto &[begin, end, steps, slots] : loops)
    made.loops.push_back(describeLoop(begin, end, steps, slots));
  made.inputBytes = std::move(inputs);
  made.outputBytes = std::move(outputs);
  made.constants = std::move(constants);
  made.offsets = std::move(offsets);
  return made;
}

/// Binds programs on GPUs.
void bindCuda(nb::module_ &module);

} // namespace tilewright::runtime

#endif
