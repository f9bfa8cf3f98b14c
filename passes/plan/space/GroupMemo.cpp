#include "passes/plan/space/GroupMemo.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace tilewright;

namespace tilewright::detail {
/// Ties a memo to the tile dialect of a context, which lives as long as the context.
struct GroupMemoOfContext : DialectInterface::Base<GroupMemoOfContext> {
  explicit GroupMemoOfContext(Dialect *dialect) : Base(dialect) {}
  GroupMemo memo;
};
} // namespace tilewright::detail

GroupMemo *GroupMemo::of(MLIRContext *context) {
  auto *dialect = context->getLoadedDialect<tile::TileDialect>();
  auto *owner = dialect ? dialect->getRegisteredInterface<detail::GroupMemoOfContext>() : nullptr;
  return owner ? &owner->memo : nullptr;
}

int64_t GroupMemo::numberOf(const MemoKey &key) {
  std::lock_guard<std::mutex> lock(mutex);
  return numbers.try_emplace(key, numbers.size()).first->second;
}

void tilewright::addGroupMemo(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, tile::TileDialect *dialect) { dialect->addInterfaces<detail::GroupMemoOfContext>(); });
}
