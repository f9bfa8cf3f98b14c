// Memory of tensors. A program keeps the large results that its caller has given up for later calls: the system would
// clear every page of new memory, which takes longer than many a kernel.
#ifndef TILEWRIGHT_RUNTIME_ALIGNEDMEMORY_H
#define TILEWRIGHT_RUNTIME_ALIGNEDMEMORY_H

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tilewright::runtime {

/// Alignment in bytes of the tensors that kernels write.
inline constexpr size_t kTensorAlignment = 64;

/// Rounds up to a multiple of it.
constexpr size_t alignedSize(size_t bytes) { return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment; }

/// Blocks of memory that were given up, by size. Several threads may use it.
class KeptBlocks {
public:
  ~KeptBlocks();
  /// Returns a block of this size, or null if none is kept.
  char *take(size_t bytes);
  /// Keeps a block; returns false if it should rather be freed.
  bool keep(char *block, size_t bytes);

private:
  std::mutex mutex;
  std::unordered_map<size_t, std::vector<char *>> blocks;
  size_t kept = 0;
};

class AlignedMemory {
public:
  /// Throws std::bad_alloc if there is none. The content is undefined. The memory comes from `blocks`, if one fits, and
  /// goes back there if they still exist.
  explicit AlignedMemory(size_t bytes, const std::shared_ptr<KeptBlocks> &blocks = nullptr);
  ~AlignedMemory();
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;

  char *data() const { return memory; }
  size_t size() const { return bytes; }

private:
  std::weak_ptr<KeptBlocks> blocks;
  char *memory;
  size_t bytes;
};

} // namespace tilewright::runtime

#endif
