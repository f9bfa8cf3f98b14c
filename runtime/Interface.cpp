// The interface for C (include/tilewright/runtime.h): no exception passes it.
#include "runtime/include/tilewright/runtime.h"

#include "runtime/Processor.h"
#include "runtime/ProgramFile.h"

#include <stdexcept>

using namespace tilewright::runtime;

static_assert(TW_ALIGNMENT == kTensorAlignment);

namespace {
constexpr unsigned kMostThreads = 64; ///< as `tilewright.load` accepts

thread_local std::string lastError;

std::vector<tw_tensor> describe(const std::vector<TensorDescription> &tensors) {
  std::vector<tw_tensor> made;
  for (const TensorDescription &tensor : tensors)
    made.push_back({tensor.name.c_str(), tensor.dtype.c_str(), tensor.shape.size(), tensor.shape.data(), tensor.bytes,
                    tensor.alignment});
  return made;
}

const tw_tensor *at(const std::vector<tw_tensor> &tensors, size_t index) {
  return index < tensors.size() ? &tensors[index] : nullptr;
}

/// Calls a function and returns what it does, or `otherwise` if it throws; the message is then the last error.
template <typename Function, typename Result>
Result guarded(Function function, Result otherwise) noexcept {
  try {
    return function();
  } catch (const std::exception &error) {
    try {
      lastError = error.what();
    } catch (...) {
      lastError.clear();
    }
    return otherwise;
  }
}
} // namespace

struct tw_program {
  tw_program(const char *path, unsigned threads) : file(path), inputs(describe(file.inputs)), outputs(describe(file.outputs)) {
    std::set<std::string> present = processorFeatures();
    for (const std::string &feature : file.features)
      if (!present.empty() && !present.count(feature))
        throw std::runtime_error("it was compiled for " + file.target + ", but this processor lacks " + feature);
    if (present.count("amxtile"))
      requestTileRegisters();
    ProgramDescription description = file.program;
    for (const auto &[feature, bit] : file.processorBits)
      if (present.count(feature))
        description.processor |= uint64_t{1} << bit;
    if (threads > 0)
      description.threads = threads;
    if (description.threads > kMostThreads)
      throw std::runtime_error(std::to_string(description.threads) + " threads are asked for; 1 to " +
                               std::to_string(kMostThreads) + " are possible");
    program = std::make_unique<DirectProgram>(std::make_shared<Library>(file.code, file.codeBytes),
                                              std::move(description));
  }

  void call(const void *const *from, void *const *to) {
    std::vector<const void *> read;
    for (size_t i = 0; i < inputs.size(); ++i)
      read.push_back(checked("input", inputs[i], from ? from[i] : nullptr));
    std::vector<void *> written;
    for (size_t i = 0; i < outputs.size(); ++i)
      written.push_back(const_cast<void *>(checked("output", outputs[i], to ? to[i] : nullptr)));
    program->run(read, written);
  }

  /// Returns an address that kernels can use for a tensor; throws if it is none.
  static const void *checked(const char *kind, const tw_tensor &tensor, const void *address) {
    std::string name = std::string(kind) + " '" + tensor.name + "'";
    if (!address && tensor.bytes > 0)
      throw std::runtime_error(name + " has no address");
    if (reinterpret_cast<uintptr_t>(address) % tensor.alignment != 0)
      throw std::runtime_error(name + " is not at a multiple of " + std::to_string(tensor.alignment) + " bytes");
    return address;
  }

  ProgramFile file;
  std::vector<tw_tensor> inputs, outputs;
  std::unique_ptr<DirectProgram> program;
};

tw_program *tw_open(const char *path, unsigned threads) {
  return guarded(
      [&] {
        if (!path)
          throw std::runtime_error("no path is given");
        try {
          return new tw_program(path, threads);
        } catch (const std::runtime_error &error) {
          throw std::runtime_error(std::string(path) + ": " + error.what());
        }
      },
      static_cast<tw_program *>(nullptr));
}

void tw_close(tw_program *program) { delete program; }

size_t tw_input_count(const tw_program *program) { return program->inputs.size(); }
size_t tw_output_count(const tw_program *program) { return program->outputs.size(); }
const tw_tensor *tw_input(const tw_program *program, size_t index) { return at(program->inputs, index); }
const tw_tensor *tw_output(const tw_program *program, size_t index) { return at(program->outputs, index); }

bool tw_call(tw_program *program, const void *const *inputs, void *const *outputs) {
  return guarded(
      [&] {
        program->call(inputs, outputs);
        return true;
      },
      false);
}

const char *tw_error(void) { return lastError.c_str(); }
