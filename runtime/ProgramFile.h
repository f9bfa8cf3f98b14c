// A program in one file, as `tilewright export` writes it: what to launch, the code, and the weights.
#ifndef TILEWRIGHT_RUNTIME_PROGRAMFILE_H
#define TILEWRIGHT_RUNTIME_PROGRAMFILE_H

#include "runtime/DirectProgram.h"

namespace tilewright::runtime {

/// An input or an output.
struct TensorDescription {
  std::string name, dtype;    ///< numpy's name of the element type
  std::vector<int64_t> shape;
  size_t bytes = 0, alignment = 1;
};

/// An open file. Its pages are mapped as long as the object lives; the constants of the program lie there.
///
/// The file begins with a header: "tilewrt", the version of the format (a byte), the CRC-32 of all that follows the
/// header up to the constants (u32), zero (u32), the offset at which these end (u64) and the size of the file (u64).
/// Numbers are little-endian, a text is its length (u32) and its bytes, a list is its length (u32) and its elements.
/// The description follows in the order of `ProgramFile.cpp`'s `readDescription`, then the code, then the constants at
/// multiples of 64 bytes. `python/tilewright/runtime/exported.py` writes it.
class ProgramFile {
public:
  /// Throws std::runtime_error if the file cannot be read, is damaged or was written by another version.
  explicit ProgramFile(const std::string &path);
  ~ProgramFile();
  ProgramFile(const ProgramFile &) = delete;
  ProgramFile &operator=(const ProgramFile &) = delete;

  std::string target;                     ///< what the code was compiled for
  std::vector<std::string> features;      ///< of the processor, which all of the code needs
  /// Features by which kernels choose their variant, each with its bit.
  std::vector<std::pair<std::string, uint32_t>> processorBits;
  std::vector<TensorDescription> inputs, outputs;
  ProgramDescription program; ///< without the features of this processor
  const char *code = nullptr; ///< an ELF library
  size_t codeBytes = 0;

private:
  void map(const std::string &path);
  void readHeader();
  void readDescription();

  const char *data = nullptr;
  size_t bytes = 0, described = 0; ///< size of the file, and where its constants may begin
};

} // namespace tilewright::runtime

#endif
