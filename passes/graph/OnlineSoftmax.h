// Maxima that can be used while they are still being accumulated. If exp(x - m) is summed over the points that m is the
// maximum of, the sum may be taken relative to any number r near m; multiplied by exp(r - m) it becomes the sum that
// the graph asks for. So one pass over x finds both (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018). Everything that depends on m in another way waits until m is complete. The analysis reads bodies
// only, whatever they are part of.
#ifndef TILEWRIGHT_GRAPH_ONLINESOFTMAX_H
#define TILEWRIGHT_GRAPH_ONLINESOFTMAX_H

#include "passes/graph/TensorExpr.h"
#include "passes/target/Target.h"

namespace tilewright {

/// How the result of an expression depends on a maximum m.
enum class Relation {
  independent,  ///< not at all, or on complete results only
  maximum,      ///< m itself
  shifted,      ///< v - m, where v is independent of m
  proportional, ///< v exp(-m)
  sum,          ///< a reduction that adds up proportional values
  other,
};

/// Returns the relation of each expression (in program order) to the maximum. `producerOf` returns the index of the
/// expression that computes an input of another one, or -1. With `throughRoundings`, a proportional value stays
/// proportional when it is rounded to a narrower type; it must then not be multiplied by a factor any more, but sums of
/// it may.
llvm::SmallVector<Relation> relateTo(llvm::ArrayRef<TensorExpr> exprs, unsigned maximum,
                                     llvm::function_ref<int64_t(unsigned expr, unsigned input)> producerOf,
                                     bool throughRoundings = false);

/// Returns true if the expression is a maximum in f32 along one dim of at least `least` points.
bool isRowMaximum(const TensorExpr &expr, int64_t least);

/// Returns how many points of a row share a reference: as many as the machine's vector registers hold.
int64_t pointsPerReference(int64_t vectorBytes, int64_t vectorRegisters);

/// Returns the fewest points of a row whose maximum others may use while it is accumulated: some references' worth.
int64_t shortestOnlineRow(const Target &target);

} // namespace tilewright

#endif
