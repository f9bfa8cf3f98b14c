// A set of expressions as bits, by which a search looks up what it knows about a fusion group.
#ifndef TILEWRIGHT_PLAN_SEARCH_EXPRSET_H
#define TILEWRIGHT_PLAN_SEARCH_EXPRSET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include <cstdint>

namespace tilewright {

class ExprSet {
public:
  /// An empty set of expressions below `size`.
  explicit ExprSet(size_t size) : words((size + 63) / 64) {}
  ExprSet(size_t size, llvm::ArrayRef<unsigned> exprs) : ExprSet(size) {
    for (unsigned expr : exprs)
      insert(expr);
  }

  void insert(unsigned expr) { words[expr / 64] |= uint64_t(1) << (expr % 64); }
  void erase(unsigned expr) { words[expr / 64] &= ~(uint64_t(1) << (expr % 64)); }
  bool contains(unsigned expr) const { return words[expr / 64] >> (expr % 64) & 1; }

  ExprSet &operator|=(const ExprSet &other) {
    for (auto [own, theirs] : llvm::zip_equal(words, other.words))
      own |= theirs;
    return *this;
  }
  ExprSet &operator&=(const ExprSet &other) {
    for (auto [own, theirs] : llvm::zip_equal(words, other.words))
      own &= theirs;
    return *this;
  }
  /// Removes the members of the other set.
  ExprSet &operator-=(const ExprSet &other) {
    for (auto [own, theirs] : llvm::zip_equal(words, other.words))
      own &= ~theirs;
    return *this;
  }

  bool empty() const {
    return llvm::all_of(words, [](uint64_t word) { return word == 0; });
  }

  /// Returns the members in program order.
  llvm::SmallVector<unsigned> members() const {
    llvm::SmallVector<unsigned> found;
    for (auto [number, word] : llvm::enumerate(words))
      for (uint64_t rest = word; rest != 0; rest &= rest - 1)
        found.push_back(64 * number + llvm::countr_zero(rest));
    return found;
  }

  bool operator==(const ExprSet &other) const { return words == other.words; }
  size_t hash() const { return llvm::hash_combine_range(words.begin(), words.end()); }

private:
  llvm::SmallVector<uint64_t, 16> words;
};

inline ExprSet operator|(ExprSet a, const ExprSet &b) { return a |= b; }
inline ExprSet operator&(ExprSet a, const ExprSet &b) { return a &= b; }
inline ExprSet operator-(ExprSet a, const ExprSet &b) { return a -= b; }

} // namespace tilewright

#endif
