// Asynchronous products of warpgroups (wgmma), which four warps start together. The operands are in shared memory, at
// locations that descriptors give. Until a thread has waited for the group to which a product was committed, nobody may
// write the operands, and nobody may read or write the accumulators. Products read through the asynchronous proxy, so
// threads must fence what they wrote to the operands.
#ifndef TILEWRIGHT_SIMULATOR_WARPGROUPS_H
#define TILEWRIGHT_SIMULATOR_WARPGROUPS_H

#include "tools/simulator/Matrices.h"

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

/// A product, as one lane starts it. The results replace the lane's accumulators.
struct WarpgroupProduct {
  MatrixType type;
  uint32_t n;                        ///< columns of rhs
  bool lhsLiesAlongK, rhsLiesAlongK; ///< true if the operand is contiguous along K
  uint64_t left, right;              ///< descriptors of lhs and rhs
  float *accumulators;               ///< those of the lane; their number is n / 2
  const uint32_t *lhsWords = nullptr; ///< the lane's four words of lhs if lhs is in registers; null if it is in memory
};

/// A product in flight.
struct OpenProduct {
  uint32_t site;
  uint32_t group;               ///< group to which the next commit adds it
  std::vector<uint64_t> pieces; ///< pieces of shared memory that it reads; only the first lane of a warp has them
};

/// The products of a thread, and its fences.
struct ThreadProducts {
  std::vector<OpenProduct> open;
  uint32_t groups = 0;               ///< groups committed so far
  bool fenced = false;               ///< true if the thread has fenced its registers since it last waited
  std::vector<uint32_t> proxyFences; ///< barriers that the block had passed before each fence.proxy of the thread
};

/// The products that the first warp of a warpgroup started, in order. The other three warps must start the same ones.
struct WarpgroupLog {
  struct Entry {
    uint32_t site;
    uint64_t left, right;
  };
  std::vector<Entry> entries;
};

/// The pieces of a block's shared memory that products in flight read: how many products read a piece, and the site of
/// one of them.
class PiecesInUse {
public:
  explicit PiecesInUse(uint64_t pieces) : counts(pieces), sites(pieces) {}
  bool any() const { return total > 0; }
  /// Returns the site of a product that reads a piece, or -1.
  int32_t siteOf(uint64_t piece) const { return counts[piece] ? int32_t(sites[piece]) : -1; }
  void begin(uint64_t piece, uint32_t site) { ++counts[piece], sites[piece] = site, ++total; }
  void end(uint64_t piece) { --counts[piece], --total; }

private:
  std::vector<uint16_t> counts;
  std::vector<uint32_t> sites;
  uint64_t total = 0;
};

void fenceRegisters(Thread &thread);
/// Makes the thread's writes visible to products, once a barrier follows.
void fenceProxies(Thread &thread);
/// Computes the products of all lanes of a warp. The last lane to arrive calls it.
void startProducts(Thread &last, uint32_t site, WarpgroupProduct *const (&products)[32]);
void commitProducts(Thread &thread);
/// Completes all but the last `groups` committed groups.
void waitForProducts(Thread &thread, uint32_t groups);
/// Checks that the thread may read or write accumulators of a product.
void touchAccumulators(Thread &thread, uint32_t site, uint32_t product);
/// Reports a fault if a thread ends without having waited for all of its products, or if the warps of a warpgroup have
/// not started the same products.
void checkProductsAreComplete(Thread &thread);

} // namespace tilewright::simulator

#endif
