// The code of a program's kernels, loaded by the system's loader: the ELF library that IREE embeds in a module, or one
// of the object with the kernels alone.
#ifndef TILEWRIGHT_RUNTIME_LIBRARY_H
#define TILEWRIGHT_RUNTIME_LIBRARY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace tilewright::runtime {

// The part of IREE's interface for executables (iree/hal/local/executable_library.h, version 0) that kernels read.

struct Environment {
  const void *constants = nullptr, *importThunk = nullptr, *imports = nullptr, *importContexts = nullptr;
  uint64_t processor[8] = {}; ///< features of the processor; [0] has the bits of IREE's schema
};

struct DispatchState {
  uint32_t sizeX = 1, sizeY = 1;
  uint16_t sizeZ = 1, constantCount = 0;
  uint32_t countX = 1, countY = 1;
  uint16_t countZ = 1;
  uint8_t concurrency = 1, bindingCount = 0;
  const uint32_t *constants = nullptr;
  void *const *bindings = nullptr;
  const size_t *bindingBytes = nullptr;
};

struct WorkgroupState {
  uint32_t x = 0, y = 0;
  uint16_t z = 0, reserved = 0;
  uint32_t processor = 0;
  void *localMemory = nullptr;
  uint32_t localBytes = 0;
};

/// Runs one workgroup of a kernel; returns 0 if it succeeded.
using KernelEntry = int (*)(const Environment *, const DispatchState *, const WorkgroupState *);

/// A loaded library. Its code stays valid as long as the object.
class Library {
public:
  /// Loads a library from the bytes of an ELF file. Throws std::runtime_error with the reason if that fails.
  Library(const void *elf, size_t bytes);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  /// Returns the kernel of this name, or null.
  KernelEntry find(const std::string &name) const;

private:
  class MemoryFile;

  /// Open as long as the library is loaded: the loader knows libraries by their paths, and a closed file's path would be
  /// that of the next one.
  std::unique_ptr<MemoryFile> file;
  void *handle = nullptr;
  bool isOfIree = false; ///< it lists its kernels
  std::unordered_map<std::string, KernelEntry> kernels;
};

} // namespace tilewright::runtime

#endif
