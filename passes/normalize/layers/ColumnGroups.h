// Divides the columns of products between blocks that keep their weights in shared memory.
#ifndef TILEWRIGHT_NORMALIZE_LAYERS_COLUMNGROUPS_H
#define TILEWRIGHT_NORMALIZE_LAYERS_COLUMNGROUPS_H

#include "passes/target/Target.h"

namespace tilewright {

/// The columns of a product of each layer, in groups that a block each keeps the weights of.
struct ColumnGroups {
  int64_t count = 1, columns = 0; ///< of a layer; and of a group, of which the last ones may be of zeros
};

/// Returns the groups of `columns` columns of each layer, with `weightBytes` bytes of weights in a column, such that
/// one block for each group is resident at once and keeps its weights in shared memory; one group if there are no such.
ColumnGroups groupColumns(int64_t columns, int64_t weightBytes, int64_t layers, const Target &target);

} // namespace tilewright

#endif
