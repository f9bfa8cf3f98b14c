#include "runtime/AlignedMemory.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

using namespace tilewright::runtime;

namespace {
/// Least bytes of a block that is kept. The C library keeps smaller ones itself.
constexpr size_t kLeastKept = 64 << 10;
/// Most bytes of all blocks that are kept: a few results of a large model.
constexpr size_t kMostKept = 256 << 20;

class KeptBlocks {
public:
  char *take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = blocks.find(bytes);
    if (found == blocks.end() || found->second.empty())
      return nullptr;
    char *block = found->second.back();
    found->second.pop_back();
    kept -= bytes;
    return block;
  }

  bool keep(char *block, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    if (bytes < kLeastKept || kept + bytes > kMostKept)
      return false;
    blocks[bytes].push_back(block);
    kept += bytes;
    return true;
  }

private:
  std::mutex mutex;
  std::unordered_map<size_t, std::vector<char *>> blocks;
  size_t kept = 0;
};

/// Never destroyed, because results may be given up while the process ends.
KeptBlocks &keptBlocks() {
  static auto &blocks = *new KeptBlocks();
  return blocks;
}
} // namespace

AlignedMemory::AlignedMemory(size_t bytes) : bytes(bytes) {
  size_t size = alignedSize(bytes ? bytes : 1);
  memory = size >= kLeastKept ? keptBlocks().take(size) : nullptr;
  if (!memory)
    memory = static_cast<char *>(std::aligned_alloc(kTensorAlignment, size));
  if (!memory)
    throw std::bad_alloc();
}

AlignedMemory::~AlignedMemory() {
  if (!keptBlocks().keep(memory, alignedSize(bytes ? bytes : 1)))
    std::free(memory);
}
