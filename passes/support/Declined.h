// The no of a decision: the reason, and what would have to change. Reasons are for people; `explain` prints them.
#ifndef TILEWRIGHT_SUPPORT_DECLINED_H
#define TILEWRIGHT_SUPPORT_DECLINED_H

#include <optional>
#include <string>
#include <utility>

namespace tilewright {

/// The reason why something was not done, and what would have to change for it to be done.
struct Declined {
  std::string reason, wouldChange;
};

/// A value, or the reason why there is none.
template <typename T> class OrDeclined {
public:
  OrDeclined(T value) : value(std::move(value)) {}
  OrDeclined(Declined why) : declined(std::move(why)) {}

  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }
  /// Returns the value without the reason.
  std::optional<T> optional() && { return std::move(value); }
  /// Returns the reason; empty if there is a value.
  const Declined &why() const { return declined; }

private:
  std::optional<T> value;
  Declined declined;
};

} // namespace tilewright

#endif
