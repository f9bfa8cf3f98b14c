// Memory of tensors. Large blocks that are given up are kept for later ones of the same size: the system would clear
// every page of a new one, which takes longer than many a kernel.
#ifndef TILEWRIGHT_RUNTIME_ALIGNEDMEMORY_H
#define TILEWRIGHT_RUNTIME_ALIGNEDMEMORY_H

#include <cstddef>

namespace tilewright::runtime {

/// Alignment in bytes of the tensors that kernels write.
inline constexpr size_t kTensorAlignment = 64;

/// Rounds up to a multiple of it.
constexpr size_t alignedSize(size_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

class AlignedMemory {
public:
  /// Throws std::bad_alloc if there is none. The content is undefined.
  explicit AlignedMemory(size_t bytes);
  ~AlignedMemory();
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;

  char *data() const { return memory; }
  size_t size() const { return bytes; }

private:
  char *memory;
  size_t bytes;
};

} // namespace tilewright::runtime

#endif
