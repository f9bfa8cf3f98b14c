#include "passes/plan/space/StagedInputs.h"

#include "passes/layout/BufferedSlice.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/support/AffineAlgebra.h"

using namespace mlir;
using namespace tilewright;

StagedInputs::StagedInputs(const TensorGraph &graph, const GroupChoice &group, const IterationSpace &space,
                           ArrayRef<OpPlan> ops)
    : graph(graph), space(space) {
  collect(group, ops);
}

void StagedInputs::collect(const GroupChoice &group, ArrayRef<OpPlan> ops) {
  using Nest = std::pair<WalkPhase, unsigned>;
  int64_t walked = walkedDim(space.extents, space.tiles, space.grid);
  SmallVector<WalkPhase> phases;
  if (walked >= 0)
    phases = walkAlong(graph, group, space.roots, walked).phases;
  SmallVector<std::pair<Nest, const GroupRoot *>> roots;
  for (auto [number, root] : llvm::enumerate(space.roots))
    roots.push_back({{phases.empty() ? WalkPhase::before : phases[number], root.nest}, &root});
  llvm::stable_sort(roots, llvm::less_first());
  for (auto [nest, root] : roots) {
    const OpPlan *op = llvm::find_if(ops, [expr = root->expr](const OpPlan &op) { return op.id == expr; });
    // A nest whose results are kept for later tiles runs before those tiles.
    if (op == ops.end() || !op->microKernel.empty() || space.keptAlong(*root) > 0)
      continue;
    for (const RootAccess &access : root->accesses)
      if (access.producer < 0 && !access.gathered) {
        AffineMap map = overSpace(access.map, root->dims, space.extents.size());
        add({root, access.tensor, map, access.guard != IntegerSet()}, nest);
      }
  }
}

void StagedInputs::add(Read read, const std::pair<WalkPhase, unsigned> &nest) {
  for (auto [known, first] : llvm::zip(reads, firsts))
    if (known.isSame(read)) {
      known.isAgain |= nest != first;
      return;
    }
  reads.push_back(std::move(read));
  firsts.push_back(nest);
}

/// Returns true if a tile reads the same elements several times, and a copy takes no more elements than the tensor has.
bool StagedInputs::isForTile(const Read &read) const {
  return (read.isAgain || repeatsInTile(read)) && !read.isGuarded &&
         isKeptByPoints(read.map, space.extents, cast<RankedTensorType>(read.tensor.getType()).getShape());
}

bool StagedInputs::usesGrid(AffineMap map) const {
  return llvm::any_of(space.grid, [&](int64_t dim) {
    return space.tiles[dim] < space.extents[dim] && map.isFunctionOfDim(dim);
  });
}

bool StagedInputs::repeatsInTile(const Read &read) const {
  SmallVector<int64_t> loops = llvm::filter_to_vector(
      read.root->dims, [&](int64_t place) { return place >= 0 && space.tiles[place] > 1; });
  llvm::sort(loops);
  return isReadAgain(read.map, loops);
}

/// Returns true if all tiles of a workgroup read the same of an input. A scalar is loaded at most once per tile, so a
/// copy would cost as much as reading it.
bool StagedInputs::isForWorkgroup(const Read &read) const {
  return !usesGrid(read.map) && cast<RankedTensorType>(read.tensor.getType()).getNumElements() > 1 &&
         (space.numTiles() > space.workgroups || repeatsInTile(read));
}

SmallVector<tile::Lifetime> StagedInputs::choose(const Target &target) const {
  SmallVector<tile::Lifetime> lifetimes(space.inputs.size(), tile::Lifetime::kernel);
  int64_t left = target.traits.stagesForWorkgroup ? target.costs.cpu.stagedInputBytes : 0;
  for (const Read &read : reads) {
    auto input = llvm::find(space.inputs, read.tensor);
    assert(input != space.inputs.end() && "an input of the group");
    tile::Lifetime &lifetime = lifetimes[input - space.inputs.begin()];
    if (lifetime == tile::Lifetime::workgroup)
      continue;
    if (int64_t bytes = tensorBytes(read.tensor); isForWorkgroup(read) && bytes <= left) {
      lifetime = tile::Lifetime::workgroup;
      left -= bytes;
    } else if (isForTile(read)) {
      lifetime = tile::Lifetime::tile;
    }
  }
  return lifetimes;
}

std::string StagedInputs::whyNot(Value input, tile::Lifetime lifetime) const {
  if (lifetime == tile::Lifetime::kernel)
    return "";
  auto own = llvm::make_filter_range(reads, [&](const Read &read) { return read.tensor == input; });
  if (own.empty())
    return "only contractions, gathers, or nests that run before the tiles read it, and they read it where it is";
  if (lifetime == tile::Lifetime::tile && llvm::none_of(own, [&](const Read &read) { return isForTile(read); }))
    return "a tile reads no element twice, only some points read it, or a copy would be larger than the tensor";
  return "";
}
