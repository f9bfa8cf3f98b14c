#include "passes/plan/tiling/TileSizes.h"

#include "passes/backend/Backend.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/tiling/gpu/ContractionBlocks.h"

using namespace mlir;
using namespace tilewright;

namespace {
class TileChooser {
public:
  TileChooser(const TensorGraph &graph, const GroupChoice &group, const Target &target, IterationSpace &space)
      : graph(graph), group(group), target(target), space(space), footprint(graph, group, target, space),
        problem{graph, group, target, footprint} {}

  /// Returns why no tiles fit, or an empty string.
  std::string choose() {
    space.inputs = groupInputs(graph, group);
    space.outputs = groupOutputs(graph, group);
    space.tiles.resize(space.extents.size());
    for (size_t dim = 0; dim < space.extents.size(); ++dim)
      space.tiles[dim] = isGrid(dim) ? 1 : space.extents[dim];
    if (std::string why = backendOf(target).chooseTiles(problem, space); !why.empty())
      return why;
    return finish();
  }

  std::vector<BlockCandidate> blocks() {
    auto bytes = [&] { return footprint.bytes(); };
    if (!contracts())
      return enumerateBlocks(graph, target, space, bytes);
    auto found = contractionBlocks(graph, target, space, walkableDim(graph, group, space), bytes);
    return found ? std::move(*found) : std::vector<BlockCandidate>();
  }

  std::optional<BlockCandidate> block(ArrayRef<int64_t> tiles, int64_t threads) {
    if (contracts())
      return std::nullopt;
    space.tiles = tiles;
    return blockOfTiles(graph, target, space, threads, [&] { return footprint.bytes(); });
  }

  std::string take(ArrayRef<int64_t> tiles) {
    space.tiles = tiles;
    space.counted = countedAlong(graph, group, space.roots, walkedDim(space.extents, space.tiles, space.grid));
    backendOf(target).chooseWorkgroups(problem, space);
    return finish();
  }

  std::string take(const BlockCandidate &block) {
    block.applyTo(space);
    backendOf(target).chooseWorkgroups(problem, space);
    return finish();
  }

private:
  /// Sets everything that follows from tiles and workgroups.
  std::string finish() {
    space.footprintBytes = footprint.bytes();
    space.workgroupStaged = footprint.workgroupStaged();
    space.tileStaged = footprint.tileStaged();
    space.streamed = footprint.streamed();
    if (space.footprintBytes > target.blockBytes)
      return "the tiles of one workgroup take " + std::to_string(space.footprintBytes) + " bytes; the target has " +
             std::to_string(target.blockBytes);
    return "";
  }

  bool isContraction(const GroupRoot &root) const { return graph.exprs()[root.expr].kind == ExprKind::contraction; }
  bool contracts() const {
    return llvm::any_of(space.roots, [&](const GroupRoot &root) { return isContraction(root); });
  }
  bool isGrid(int64_t dim) const { return llvm::is_contained(space.grid, dim); }

  const TensorGraph &graph;
  const GroupChoice &group;
  const Target &target;
  IterationSpace &space;
  TileFootprint footprint;
  TilingProblem problem;
};
} // namespace

std::string tilewright::chooseTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                    IterationSpace &space) {
  return TileChooser(graph, group, target, space).choose();
}

std::string tilewright::takeTiles(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                  IterationSpace &space, ArrayRef<int64_t> tiles) {
  return TileChooser(graph, group, target, space).take(tiles);
}

std::string tilewright::takeBlock(const TensorGraph &graph, const GroupChoice &group, const Target &target,
                                  IterationSpace &space, const BlockCandidate &block) {
  return TileChooser(graph, group, target, space).take(block);
}

std::vector<BlockCandidate> tilewright::blockCandidates(const TensorGraph &graph, const GroupChoice &group,
                                                        const Target &target, IterationSpace space) {
  return TileChooser(graph, group, target, space).blocks();
}

std::optional<BlockCandidate> tilewright::blockOfTiles(const TensorGraph &graph, const GroupChoice &group,
                                                       const Target &target, IterationSpace space,
                                                       ArrayRef<int64_t> tiles, int64_t threads) {
  return TileChooser(graph, group, target, space).block(tiles, threads);
}
