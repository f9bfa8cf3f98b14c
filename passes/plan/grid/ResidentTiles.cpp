#include "passes/plan/grid/ResidentTiles.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::viewedTensor(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

namespace {
/// A run of neighbouring dims that are all either split into tiles or inside one tile.
struct DimRun {
  int64_t size;
  bool inside;
  bool operator==(const DimRun &other) const { return size == other.size && inside == other.inside; }
};
} // namespace

/// Returns the runs of a tiled shape, innermost last, without dims of one element. Equal runs mean equal tiles.
static SmallVector<DimRun> runsOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> tiles) {
  SmallVector<DimRun> runs;
  auto add = [&](DimRun run) {
    if (run.size == 1)
      return;
    if (!runs.empty() && runs.back().inside == run.inside)
      runs.back().size *= run.size;
    else
      runs.push_back(run);
  };
  for (auto [extent, tile] : llvm::zip(shape, tiles)) {
    add({extent / tile, /*inside=*/false});
    add({tile, /*inside=*/true});
  }
  return runs;
}

std::optional<SmallVector<int64_t>> tilewright::reshapedTiles(ArrayRef<int64_t> shape, ArrayRef<int64_t> tiles,
                                                              ArrayRef<int64_t> reshaped) {
  SmallVector<DimRun> runs = runsOf(shape, tiles),
                      left(llvm::reverse(runs)); // runs still to be matched, the outermost last
  SmallVector<int64_t> result;
  for (int64_t extent : reshaped) {
    int64_t rest = extent;
    if (rest > 1 && !left.empty() && !left.back().inside) {
      int64_t apart = std::gcd(rest, left.back().size);
      rest /= apart;
      if ((left.back().size /= apart) == 1)
        left.pop_back();
    }
    result.push_back(rest);
    if (rest == 1)
      continue;
    if (left.empty() || !left.back().inside || left.back().size % rest != 0)
      return std::nullopt;
    if ((left.back().size /= rest) == 1)
      left.pop_back();
  }
  return runsOf(reshaped, result) == runs ? std::optional(result) : std::nullopt;
}

/// Returns the dim of the space for each dim of a tensor that the root accesses by `map`, -1 for those of one element.
/// Returns nothing if it accesses the tensor at other points than its own.
static std::optional<SmallVector<int64_t>> placesOf(const IterationSpace &space, const GroupRoot &root, Value tensor,
                                                    AffineMap map) {
  SmallVector<int64_t> places;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  for (auto [index, extent] : llvm::zip(map.getResults(), shape)) {
    int64_t dim = extent == 1 ? -1 : pureDim(index), place = dim < 0 ? -1 : root.dims[dim];
    if (extent > 1 && (place < 0 || space.extents[place] != extent || llvm::is_contained(places, place)))
      return std::nullopt;
    places.push_back(place);
  }
  return places;
}

/// Returns the dim of the space for each dim of an input, as all roots that read it have it.
static std::optional<SmallVector<int64_t>> placesOf(const IterationSpace &space, Value input) {
  std::optional<SmallVector<int64_t>> places;
  for (const GroupRoot &root : space.roots)
    for (const RootAccess &access : root.accesses) {
      if (access.producer >= 0 || access.tensor != input)
        continue;
      std::optional<SmallVector<int64_t>> own = placesOf(space, root, input, access.map);
      if (!own || access.guard != IntegerSet() || (places && *places != *own))
        return std::nullopt;
      places = own;
    }
  return places;
}

/// Returns the dim of the space for each dim of an input or of a root's result. Otherwise it returns nothing and sets
/// `why`.
static std::optional<SmallVector<int64_t>> placesOf(const TensorGraph &graph, const IterationSpace &space, Value tensor,
                                                    std::string &why) {
  int64_t maker = tensor.getDefiningOp() ? graph.indexOf(tensor.getDefiningOp()) : -1;
  auto root = llvm::find_if(space.roots, [&](const GroupRoot &own) { return own.expr == maker; });
  if (root != space.roots.end()) {
    const TensorExpr &expr = graph.exprs()[maker];
    if (!expr.reductions.empty()) {
      why = "a reduction or a contraction stores it as it is";
      return std::nullopt;
    }
    return placesOf(space, *root, tensor, expr.results[cast<OpResult>(tensor).getResultNumber()]);
  }
  auto readsInSteps = [&](const GroupRoot &own) {
    return graph.exprs()[own.expr].kind == ExprKind::contraction &&
           llvm::any_of(own.accesses, [&](const RootAccess &access) { return access.tensor == tensor; });
  };
  if (llvm::any_of(space.roots, readsInSteps)) {
    why = "a contraction reads it in steps";
    return std::nullopt;
  }
  std::optional<SmallVector<int64_t>> places = placesOf(space, tensor);
  if (!places)
    why = "some root reads it at other points than its own";
  return places;
}

std::optional<SmallVector<int64_t>> tilewright::ownTiles(const TensorGraph &graph, const IterationSpace &space,
                                                         Value tensor, std::string &why) {
  std::optional<SmallVector<int64_t>> places = placesOf(graph, space, tensor, why);
  if (!places)
    return std::nullopt;
  SmallVector<int64_t> tiles, order, grid;
  for (int64_t place : *places) {
    tiles.push_back(place < 0 ? 1 : space.tiles[place]);
    if (place >= 0 && space.extents[place] % space.tiles[place] != 0) {
      why = "tiles are cut at the border";
      return std::nullopt;
    }
    if (place >= 0 && space.tiles[place] < space.extents[place])
      order.push_back(place);
  }
  for (int64_t dim : space.grid)
    if (space.tiles[dim] < space.extents[dim])
      grid.push_back(dim);
  if (order == grid)
    return tiles;
  why = "the order of its tiles is not the order of the blocks";
  return std::nullopt;
}

std::string tilewright::whyNotOneTile(const IterationSpace &space) {
  if (space.workgroups != space.numTiles() || space.steps > 0)
    return "blocks have several tiles";
  if (space.blocksPerTile() > 1)
    return "a block walks its tile in steps";
  if (llvm::any_of(space.roots, [&](const GroupRoot &root) { return space.keptAlong(root) > 0; }))
    return "a part keeps operands for several tiles";
  return "";
}

std::vector<CommonInput> tilewright::commonInputs(const IterationSpace &writer, const IterationSpace &reader) {
  std::vector<CommonInput> common;
  for (auto [i, written] : llvm::enumerate(writer.inputs))
    for (auto [j, read] : llvm::enumerate(reader.inputs))
      if (viewedTensor(written) == viewedTensor(read) && reader.readingNests(read).size() == 1)
        common.push_back({static_cast<unsigned>(i), static_cast<unsigned>(j)});
  return common;
}

std::optional<std::vector<int64_t>> tilewright::tilesAlike(const TensorGraph &graph, const IterationSpace &writer,
                                                           const IterationSpace &reader, CommonInput input) {
  std::string why;
  Value written = writer.inputs[input.writerInput], read = reader.inputs[input.readerInput];
  std::optional<SmallVector<int64_t>> tiles = ownTiles(graph, writer, written, why), places = placesOf(reader, read);
  if (!tiles || !places)
    return std::nullopt;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(written.getType()).getShape();
  std::optional<SmallVector<int64_t>> own =
      reshapedTiles(shape, *tiles, cast<RankedTensorType>(read.getType()).getShape());
  if (!own)
    return std::nullopt;
  IterationSpace alike = reader;
  alike.tiles = alike.extents;
  for (auto [place, tile] : llvm::zip(*places, *own))
    if (place >= 0)
      alike.tiles[place] = tile;
  for (auto [dim, extent] : llvm::enumerate(alike.extents))
    if (alike.tiles[dim] < extent && !llvm::is_contained(alike.grid, static_cast<int64_t>(dim)))
      return std::nullopt;
  return whyNotAlike(graph, writer, written, alike, read).empty() ? std::optional(alike.tiles) : std::nullopt;
}

std::string tilewright::whyNotAlike(const TensorGraph &graph, const IterationSpace &writer, Value written,
                                    const IterationSpace &reader, Value read) {
  std::string why;
  if (viewedTensor(written) != viewedTensor(read))
    return "they are not views of the same tensor";
  std::optional<SmallVector<int64_t>> left = ownTiles(graph, writer, written, why),
                                      found = left ? ownTiles(graph, reader, read, why) : std::nullopt;
  if (!found)
    return why;
  return runsOf(cast<RankedTensorType>(written.getType()).getShape(), *left) ==
                 runsOf(cast<RankedTensorType>(read.getType()).getShape(), *found)
             ? ""
             : "their tiles have different elements";
}
