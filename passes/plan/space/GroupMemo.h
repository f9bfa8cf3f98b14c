// The memo holds what planning has found out about groups, by canonical signature (GroupSignature.h). It belongs to an
// MLIR context, so it survives the whole compilation: passes that plan only to compare forms and the pass that makes
// the final plan share it. Keys hold addresses of types, maps and attributes, which are unique in a context and live as
// long as it does. All functions may be called by several threads at once.
#ifndef TILEWRIGHT_PLAN_SPACE_GROUPMEMO_H
#define TILEWRIGHT_PLAN_SPACE_GROUPMEMO_H

#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <mutex>
#include <unordered_map>

namespace mlir {
class DialectRegistry;
class MLIRContext;
} // namespace mlir

namespace tilewright {

using MemoKey = llvm::SmallVector<int64_t, 64>;

class GroupMemo {
public:
  /// A memo that does not remember lets everything be planned anew, for comparison.
  explicit GroupMemo(bool remembers = true) : remembers(remembers) {}
  GroupMemo(const GroupMemo &) = delete;
  GroupMemo &operator=(const GroupMemo &) = delete;

  /// Returns the context's memo; null if the context's registry has none (addGroupMemo).
  static GroupMemo *of(mlir::MLIRContext *context);

  /// Returns a number that is the same for equal keys.
  int64_t numberOf(const MemoKey &key);

  /// Returns what was kept as a T under this key, or null. It stays valid as long as the memo.
  template <typename T> const T *find(const MemoKey &key) const {
    std::lock_guard<std::mutex> lock(mutex);
    auto known = answers.find({tagOf<T>(), key});
    return known == answers.end() ? nullptr : static_cast<const T *>(known->second.get());
  }

  /// Keeps a value under this key, and returns it. If another thread was faster, its equal value is returned.
  template <typename T> const T &keep(MemoKey key, T value) {
    auto kept = std::make_shared<const T>(std::move(value));
    std::lock_guard<std::mutex> lock(mutex);
    if (!remembers)
      return *static_cast<const T *>(forgotten.emplace_back(std::move(kept)).get());
    auto [known, isNew] = answers.try_emplace({tagOf<T>(), std::move(key)}, std::move(kept));
    return *static_cast<const T *>(known->second.get());
  }

  /// Returns the number of answers that are kept.
  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex);
    return answers.size();
  }

private:
  /// Returns an address that stands for the type of an answer.
  template <typename T> static const void *tagOf() {
    static const char tag = 0;
    return &tag;
  }

  using Question = std::pair<const void *, MemoKey>;
  struct Hash {
    size_t operator()(const MemoKey &key) const { return llvm::hash_combine_range(key.begin(), key.end()); }
    size_t operator()(const Question &question) const {
      return llvm::hash_combine(question.first, (*this)(question.second));
    }
  };

  bool remembers;
  mutable std::mutex mutex;
  std::unordered_map<MemoKey, int64_t, Hash> numbers;
  std::unordered_map<Question, std::shared_ptr<const void>, Hash> answers;
  std::vector<std::shared_ptr<const void>> forgotten; ///< answers that nobody finds, whose addresses are in use
};

/// Gives every context of the registry a memo of its own.
void addGroupMemo(mlir::DialectRegistry &registry);

} // namespace tilewright

#endif
