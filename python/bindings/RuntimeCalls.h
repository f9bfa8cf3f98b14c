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

#include <algorithm>

namespace tilewright::runtime {
namespace nb = nanobind;

/// The memory of a contiguous array, held for as long as the object lives.
class Bytes {
public:
  explicit Bytes(nb::handle array) : isHeld(PyObject_GetBuffer(array.ptr(), &view, PyBUF_SIMPLE) == 0) {
    if (!isHeld)
      throw nb::python_error();
  }
  Bytes(const Bytes &) = delete;
  Bytes &operator=(const Bytes &) = delete;
  ~Bytes() {
    if (isHeld)
      PyBuffer_Release(&view);
  }
  const void *data() const { return view.buf; }
  size_t size() const { return static_cast<size_t>(view.len); }

protected:
  Bytes(nb::handle array, int flags) : isHeld(PyObject_GetBuffer(array.ptr(), &view, flags) == 0) {
    if (!isHeld)
      PyErr_Clear();
  }

  Py_buffer view;
  bool isHeld;
};

/// The element type of arrays, in the notation of Python's module `struct`, and their shape.
struct Form {
  std::string format;
  std::vector<Py_ssize_t> shape;
};

/// An object that may lend its memory as a contiguous array.
class LentArray : public Bytes {
public:
  explicit LentArray(nb::handle array) : Bytes(array, PyBUF_FORMAT | PyBUF_ND) {}

  /// Returns true if it lends an array of this form, aligned as its elements are.
  bool has(const Form &form) const {
    return isHeld && view.format && form.format == view.format &&
           std::equal(form.shape.begin(), form.shape.end(), view.shape, view.shape + view.ndim) &&
           reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) == 0;
  }
};

/// The contiguous arrays that a program is called with, and memory for its results.
class HostCall {
public:
  /// Throws nb::value_error if the arrays do not have the number and the sizes of the program's inputs.
  HostCall(const ProgramDescription &described, const std::shared_ptr<KeptBlocks> &blocks, const nb::args &arrays) {
    if (arrays.size() != described.inputBytes.size())
      throw nb::value_error("another number of arrays than the program has inputs");
    for (nb::handle array : arrays)
      if (take(std::make_unique<Bytes>(array)).size() != described.inputBytes[inputs.size() - 1])
        throw nb::value_error("an array of another size than the input has");
    addResults(described, blocks);
  }

  /// Makes a call if the objects lend arrays of the forms of the program's inputs; else `fits` is false.
  HostCall(const ProgramDescription &described, const std::shared_ptr<KeptBlocks> &blocks, const nb::args &arrays,
           const std::vector<Form> &forms) {
    fits = arrays.size() == forms.size();
    for (size_t number = 0; fits && number < forms.size(); ++number) {
      auto array = std::make_unique<LentArray>(arrays[number]);
      fits = array->has(forms[number]) && array->size() == described.inputBytes[number];
      take(std::move(array));
    }
    if (fits)
      addResults(described, blocks);
  }

  std::vector<const void *> inputs;
  std::vector<void *> outputs;
  nb::list results; ///< the memory of the outputs
  bool fits = true;

private:
  const Bytes &take(std::unique_ptr<Bytes> array) {
    inputs.push_back(array->data());
    held.push_back(std::move(array));
    return *held.back();
  }

  void addResults(const ProgramDescription &described, const std::shared_ptr<KeptBlocks> &blocks) {
    for (size_t bytes : described.outputBytes) {
      auto memory = std::make_unique<AlignedMemory>(bytes, blocks);
      outputs.push_back(memory->data());
      results.append(nb::cast(std::move(memory)));
    }
  }

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
