#include "runtime/AlignedMemory.h"

#include <cstdlib>
#include <new>

using namespace tilewright::runtime;

/// Least bytes of a block that is kept. The C library keeps smaller ones itself.
static constexpr size_t kLeastKept = 64 << 10;
/// Most bytes of all blocks that a program keeps: a few results of a large model.
static constexpr size_t kMostKept = 256 << 20;

KeptBlocks::~KeptBlocks() {
  for (auto &[bytes, ofSize] : blocks)
    for (char *block : ofSize)
      std::free(block);
}

char *KeptBlocks::take(size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = blocks.find(bytes);
  if (found == blocks.end() || found->second.empty())
    return nullptr;
  char *block = found->second.back();
  found->second.pop_back();
  kept -= bytes;
  return block;
}

bool KeptBlocks::keep(char *block, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  if (bytes < kLeastKept || kept + bytes > kMostKept)
    return false;
  blocks[bytes].push_back(block);
  kept += bytes;
  return true;
}

AlignedMemory::AlignedMemory(size_t bytes, const std::shared_ptr<KeptBlocks> &blocks) : blocks(blocks), bytes(bytes) {
  size_t size = alignedSize(bytes ? bytes : 1);
  memory = blocks ? blocks->take(size) : nullptr;
  if (!memory)
    memory = static_cast<char *>(std::aligned_alloc(kTensorAlignment, size));
  if (!memory)
    throw std::bad_alloc();
}

AlignedMemory::~AlignedMemory() {
  std::shared_ptr<KeptBlocks> alive = blocks.lock();
  if (!alive || !alive->keep(memory, alignedSize(bytes ? bytes : 1)))
    std::free(memory);
}
