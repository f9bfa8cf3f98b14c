// Products of warpgroups. The PTX ISA defines the descriptors in "Matrix descriptor" and "Shared memory matrix layout".
// A line of a matrix has 32, 64 or 128 bytes, which is also the size of the swizzle. Groups of 8 lines are contiguous.
// The swizzle works on addresses: it combines bits 4 to 6, or fewer for shorter lines, with bits 7 to 9 by XOR.
#include "tools/simulator/Warpgroups.h"
#include "tools/simulator/Machine.h"
#include "tools/simulator/MatrixElements.h"

#include <algorithm>
#include <cstring>

using namespace tilewright::simulator;

namespace {
constexpr uint32_t warpRows = 16, warpsOfGroup = 4, kBytesOfStep = 32, atomBytes = 16, groupLines = 8;

Machine &machineOf(const Thread &thread) { return *thread.block->worker->machine; }

/// A matrix in shared memory that a descriptor describes: points along M or N by 32 bytes of K.
class DescribedMatrix {
public:
  DescribedMatrix(Thread &thread, uint32_t site, uint64_t descriptor, bool alongK, uint32_t bytes)
      : start((descriptor & 0x3fff) << 4), panelBytes((descriptor >> 16 & 0x3fff) << 4),
        groupBytes((descriptor >> 32 & 0x3fff) << 4), bytes(bytes), alongK(alongK) {
    uint32_t mode = descriptor >> 62;
    if (mode == 0 || (descriptor >> 49 & 7) != 0)
      machineOf(thread).fail(thread, "trap", "a matrix without a swizzle, or with an offset of it, is not simulated",
                             site);
    lineBytes = mode == 1 ? 128 : mode == 2 ? 64 : 32;
    if (start / lineBytes % groupLines != 0)
      machineOf(thread).fail(thread, "misaligned",
                             "a matrix begins at byte " + std::to_string(start) +
                                 " of shared memory, but its swizzle of " + std::to_string(lineBytes) +
                                 " bytes repeats only every 8 lines",
                             site);
  }

  bool liesAlongK() const { return alongK; }

  /// Returns the offset of an element in the block's shared memory.
  uint64_t offset(uint32_t point, uint32_t k) const {
    uint32_t line = alongK ? point : k, inner = (alongK ? k : point) * bytes;
    uint64_t address = start + uint64_t(line / groupLines) * groupBytes + line % groupLines * lineBytes +
                       inner / lineBytes * panelBytes + inner % lineBytes;
    uint64_t turns = lineBytes / atomBytes - 1;
    return address ^ (address >> 7 & turns) << 4;
  }

private:
  uint64_t start, panelBytes, groupBytes;
  uint32_t bytes; ///< bytes of an element
  uint32_t lineBytes;
  bool alongK;
};

/// Returns true if a write is visible to a product of the warp: the writer has fenced it before a barrier, or all
/// threads of the warp have done a fence after a barrier.
bool isFenced(const Warp &warp, const SharedShadow::LastWrite &write) {
  if (write.delivered)
    return true;
  const Block &block = *warp.block;
  const Thread &writer = block.threads[write.thread];
  const std::vector<uint32_t> &fences = writer.products.proxyFences;
  if (write.fences < fences.size() && (fences[write.fences] < block.barriers || writer.warp == &warp))
    return true;
  return std::all_of(warp.threads, warp.threads + warp.size, [&](const Thread &reader) {
    const std::vector<uint32_t> &own = reader.products.proxyFences;
    return !own.empty() && own.back() > write.time;
  });
}

/// Checks that the warp may read 16 bytes, and marks them as in use.
void use(Thread &last, uint32_t site, uint64_t atom, std::vector<uint64_t> &pieces) {
  Block &block = *last.block;
  uint32_t granule = machineOf(last).granule;
  checkMemory(last, site, block.shared + atom, atomBytes);
  for (uint32_t byte = 0; byte < atomBytes; byte += granule) {
    uint64_t piece = (atom + byte) / granule;
    if (!isFenced(*last.warp, block.shadow->lastWrite(piece)))
      machineOf(last).fail(last, "unfenced",
                           "byte " + std::to_string(atom + byte) +
                               " of shared memory was written by a thread, and no fence.proxy.async lies between",
                           site);
    block.inUse->begin(piece, site);
    pieces.push_back(piece);
  }
}

/// Reads points of a matrix from `first` on. The K of each point are side by side in the result.
std::vector<float> read(Thread &last, uint32_t site, MatrixType type, bool isLeft, const DescribedMatrix &matrix,
                        uint32_t first, uint32_t points, std::vector<uint64_t> &pieces) {
  const uint32_t bytes = elementBytes(type), together = atomBytes / bytes, depth = kBytesOfStep / bytes;
  std::vector<float> values(points * depth);
  bool along = matrix.liesAlongK();
  for (uint32_t point = 0; point < points; point += along ? 1 : together)
    for (uint32_t k = 0; k < depth; k += along ? together : 1) {
      uint64_t atom = matrix.offset(first + point, k);
      use(last, site, atom, pieces);
      for (uint32_t element = 0; element < together; ++element) {
        float value = elementAt(type, isLeft, last.block->shared + atom + element * bytes);
        values[along ? point * depth + k + element : (point + element) * depth + k] = value;
      }
    }
  return values;
}

/// Reads the warp's rows of lhs from the registers of its lanes (PTX ISA, "Register fragments for
/// wgmma.mma_async.m64nNk16").
std::vector<float> fromRegisters(WarpgroupProduct *const (&products)[32]) {
  constexpr uint32_t depth = 16, words = 4;
  std::vector<float> values(warpRows * depth);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t word = 0; word < words; ++word)
      for (uint32_t half : {0, 1}) {
        uint32_t row = lane / 4 + word % 2 * groupLines, k = lane % 4 * 2 + half + word / 2 * (depth / 2);
        auto bits = static_cast<uint16_t>(products[lane]->lhsWords[word] >> 16 * half);
        values[row * depth + k] = toFloat(products[lane]->type, bits);
      }
  return values;
}

void checkGroup(Thread &last, uint32_t site, const WarpgroupProduct &product) {
  Block &block = *last.block;
  Warp &warp = *last.warp;
  uint32_t number = last.index / 32, group = number / warpsOfGroup;
  if ((group + 1) * warpsOfGroup > block.warps.size())
    machineOf(last).fail(last, "barrier", "the block does not have four warps for this product", site);
  if (block.warpgroups.size() <= group)
    block.warpgroups.resize(group + 1);
  std::vector<WarpgroupLog::Entry> &entries = block.warpgroups[group].entries;
  if (warp.products == entries.size())
    entries.push_back({site, product.left, product.right});
  const WarpgroupLog::Entry &entry = entries[warp.products++];
  if (entry.site != site || entry.left != product.left || entry.right != product.right)
    machineOf(last).fail(last, "barrier", "the four warps of a group start different products", site,
                         machineOf(last).program.sites[entry.site].location);
}
} // namespace

void tilewright::simulator::fenceRegisters(Thread &thread) { thread.products.fenced = true; }

void tilewright::simulator::fenceProxies(Thread &thread) {
  thread.products.proxyFences.push_back(thread.block->barriers);
}

void tilewright::simulator::startProducts(Thread &last, uint32_t site, WarpgroupProduct *const (&products)[32]) {
  const WarpgroupProduct &product = *products[0];
  Warp &warp = *last.warp;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (products[lane]->left != product.left || products[lane]->right != product.right)
      machineOf(last).fail(last, "barrier", "the lanes of a warp give different descriptors", site);
    if (!warp.threads[lane].products.fenced)
      machineOf(last).fail(last, "unfenced", "no wgmma.fence lies between the thread's last wait and this product",
                           site);
  }
  checkGroup(last, site, product);
  uint32_t firstRow = last.index / 32 % warpsOfGroup * warpRows;
  const uint32_t bytes = elementBytes(product.type), depth = kBytesOfStep / bytes;
  DescribedMatrix rightMatrix(last, site, product.right, product.rhsLiesAlongK, bytes);
  std::vector<uint64_t> pieces;
  std::vector<float> left;
  if (product.lhsWords) {
    left = fromRegisters(products);
  } else {
    DescribedMatrix leftMatrix(last, site, product.left, product.lhsLiesAlongK, bytes);
    left = read(last, site, product.type, /*isLeft=*/true, leftMatrix, firstRow, warpRows, pieces);
  }
  std::vector<float> right = read(last, site, product.type, /*isLeft=*/false, rightMatrix, 0, product.n, pieces);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < product.n / 2; ++i) {
      uint32_t row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      uint32_t sum; // bits of a float, or an integer
      std::memcpy(&sum, &products[lane]->accumulators[i], sizeof(sum));
      sum = addProducts(product.type, sum, &left[row * depth], &right[column * depth], depth);
      std::memcpy(&products[lane]->accumulators[i], &sum, sizeof(sum));
    }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    ThreadProducts &own = warp.threads[lane].products;
    own.open.push_back({site, own.groups, {}});
  }
  warp.threads[0].products.open.back().pieces = std::move(pieces);
}

void tilewright::simulator::commitProducts(Thread &thread) { ++thread.products.groups; }

void tilewright::simulator::waitForProducts(Thread &thread, uint32_t groups) {
  ThreadProducts &products = thread.products;
  auto rest = products.open.begin();
  for (; rest != products.open.end() && rest->group + groups < products.groups; ++rest)
    for (uint64_t piece : rest->pieces)
      thread.block->inUse->end(piece);
  products.open.erase(products.open.begin(), rest);
  products.fenced = false;
}

void tilewright::simulator::touchAccumulators(Thread &thread, uint32_t site, uint32_t product) {
  for (const OpenProduct &open : thread.products.open)
    if (open.site == product)
      machineOf(thread).fail(thread, "unfinished",
                             open.group < thread.products.groups
                                 ? "uses accumulators of a product that the thread has not waited for"
                                 : "uses accumulators of a product that the thread has not committed",
                             site, machineOf(thread).program.sites[product].location);
}

void tilewright::simulator::checkProductsAreComplete(Thread &thread) {
  if (!thread.products.open.empty())
    machineOf(thread).fail(thread, "unfinished",
                           thread.products.open.front().group < thread.products.groups
                               ? "the thread ends without waiting for this product"
                               : "the thread ends without committing this product",
                           thread.products.open.front().site);
  Block &block = *thread.block;
  if (block.live > 1)
    return;
  for (size_t number = 0; number < block.warps.size(); ++number) {
    size_t group = number / warpsOfGroup;
    if (group < block.warpgroups.size() && block.warps[number].products != block.warpgroups[group].entries.size())
      machineOf(thread).fail(thread, "barrier", "not all four warps of a group start this product",
                             block.warpgroups[group].entries[block.warps[number].products].site);
  }
}
