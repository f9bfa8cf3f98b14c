// Maxima that can be used while they are still accumulated. Where exp(x - m) is summed over what m is the maximum of,
// the sum may be taken relative to any number r near m, and becomes the one the graph asks for when it is multiplied by
// exp(r - m); so one pass over x finds both (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018). What follows from m in other ways waits until it is complete. Read off the bodies, whatever they are part of.
#ifndef TILEWRIGHT_GRAPH_ONLINESOFTMAX_H
#define TILEWRIGHT_GRAPH_ONLINESOFTMAX_H

#include "passes/graph/TensorExpr.h"

namespace tilewright {

/// The name of the form in plans and in `numerics`.
inline constexpr llvm::StringLiteral kRunningMaximum = "running maximum";

/// How what an expression computes follows from a maximum m.
enum class Relation {
  independent,  ///< not at all, or from complete results only
  maximum,      ///< it is m
  shifted,      ///< v - m, where v is independent of m
  proportional, ///< v exp(-m)
  sum,          ///< a reduction that adds up what is proportional
  other,
};

/// The relation of each expression, given in program order, to the one at `maximum`. `producerOf` is the index of the
/// expression that computes an input of another, or -1. With `throughRoundings` what is proportional stays so when it
/// is rounded to a narrower type: then it must not be multiplied by a factor any more, but sums of it may.
llvm::SmallVector<Relation> relateTo(llvm::ArrayRef<TensorExpr> exprs, unsigned maximum,
                                     llvm::function_ref<int64_t(unsigned expr, unsigned input)> producerOf,
                                     bool throughRoundings = false);

/// Whether the expression is a maximum of f32 along one dim, which has at least `least` points.
bool isRowMaximum(const TensorExpr &expr, int64_t least);

/// Points of a row that share a reference, on a machine with vectors of so many bytes: as many as its registers hold.
int64_t pointsPerReference(int64_t vectorBytes, int64_t vectorRegisters);
/// Rows of fewer points are read again from the innermost cache as quickly.
inline constexpr int64_t kLeastReferences = 4;

} // namespace tilewright

#endif
