// Products that four warps ask for together and that go on by themselves (wgmma): both operands are read from shared
// memory, as descriptors say, until the group that a product was committed to has been waited for. Until then nobody
// may write them, and the sums are neither read nor written. They are read past what threads do themselves: what
// threads wrote there has to be fenced.
#ifndef TILEWRIGHT_SIMULATOR_WARPGROUPS_H
#define TILEWRIGHT_SIMULATOR_WARPGROUPS_H

#include "tools/simulator/Matrices.h"

#include <cstdint>
#include <vector>

namespace tilewright::simulator {

/// The sums of a lane, which the results take the place of, and where both operands lie.
struct WarpgroupProduct {
  MatrixType type;
  uint32_t lanes; ///< of the tile: columns of the right operand
  bool lhsLiesAlongK, rhsLiesAlongK;
  uint64_t left, right;              ///< descriptors
  float *sums;                       ///< of the lane: lanes / 2
  const uint32_t *factors = nullptr; ///< of the lane, four words of the left operand that no descriptor says; or null
};

/// A product that is not complete.
struct OpenProduct {
  uint32_t site;
  uint32_t group;               ///< the one that the next commit closes
  std::vector<uint64_t> pieces; ///< of shared memory that it reads; with the first lane of its warp
};

/// Those of a thread, and when it fenced what it wrote.
struct ThreadProducts {
  std::vector<OpenProduct> open;
  uint32_t groups = 0;               ///< committed so far
  bool fenced = false;               ///< registers, since the thread last waited
  std::vector<uint32_t> proxyFences; ///< barriers of the block before each fence between threads and others
};

/// What the first warp of four asked for, product by product: the others ask for the same.
struct WarpgroupLog {
  struct Entry {
    uint32_t site;
    uint64_t left, right;
  };
  std::vector<Entry> entries;
};

/// Of a block: how many open products read a piece of its shared memory, and the site of one.
class PiecesInUse {
public:
  explicit PiecesInUse(uint64_t pieces) : counts(pieces), sites(pieces) {}
  bool any() const { return total > 0; }
  /// The site of a product, or -1.
  int32_t siteOf(uint64_t piece) const { return counts[piece] ? int32_t(sites[piece]) : -1; }
  void begin(uint64_t piece, uint32_t site) { ++counts[piece], sites[piece] = site, ++total; }
  void end(uint64_t piece) { --counts[piece], --total; }

private:
  std::vector<uint16_t> counts;
  std::vector<uint32_t> sites;
  uint64_t total = 0;
};

void fenceRegisters(Thread &thread);
/// What the thread wrote is there for those who read past it, once a barrier lies between.
void fenceProxies(Thread &thread);
/// The last lane of a warp computes for all, whose products are given.
void startProducts(Thread &last, uint32_t site, WarpgroupProduct *const (&products)[32]);
void commitProducts(Thread &thread);
/// Completes all but the last `groups` committed groups.
void waitForProducts(Thread &thread, uint32_t groups);
/// The thread reads or writes sums of the product at the site.
void touchAccumulators(Thread &thread, uint32_t site, uint32_t product);
/// A thread that ends has waited for all it asked for; a block's warps have asked for the same.
void checkProductsAreComplete(Thread &thread);

} // namespace tilewright::simulator

#endif
