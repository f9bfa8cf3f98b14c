// Propagation goes backwards from the root first. Then each further output is aligned: its tile is derived from the
// tiles it shares with the root, carried backwards in turn, and accepted only if it needs nothing beyond the root's
// tiles.
#include "passes/graph/TilePropagation.h"

#include "dialects/tile/TileDialect.h"
#include "passes/graph/TileRegion.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;

namespace tilewright {
namespace {

ArrayRef<int64_t> shapeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getShape(); }

struct TensorRegion {
  TileRegion region, resident;
  bool exact = true;
};

/// The state of propagation. It is copied to try an output, and the copy is kept if the output fits.
struct State {
  std::map<unsigned, TileRegion> domains;
  llvm::MapVector<Value, TensorRegion> tensors;
};

class Propagator {
public:
  Propagator(const TileGraph &tileGraph, unsigned root, const PropagationOptions &options)
      : graph(tileGraph.graph()), options(options), members(tileGraph.subgraph(root, options.level)) {
    grid.context = graph.exprs()[root].op->getContext();
    result.root = root;
  }

  TilePropagation run();

private:
  TileRegion rootRegion();
  TileRegion domainOf(const TensorExpr &expr, unsigned resultNumber, const TileRegion &region);
  TileRegion resultOf(const TensorExpr &expr, unsigned resultNumber, const TileRegion &domain);
  bool isMember(unsigned expr) const { return llvm::is_contained(members, expr); }
  bool isOutput(unsigned expr) const;
  bool isFedFromOutside(const TensorExpr &expr) const;
  void demand(State &state, unsigned expr, const TileRegion &domain);
  void backward(State &state, const std::map<unsigned, TileRegion> &from);
  void readInputs(State &state, unsigned expr);
  std::optional<TileRegion> alignedRegion(const State &state, unsigned output);
  std::string align(State &state, unsigned output);
  void finish(const State &state);
  void addTensor(const State &state, Value tensor, const TensorRegion &region);

  const TensorGraph &graph;
  const PropagationOptions &options;
  std::vector<unsigned> members;
  TileGrid grid;
  TilePropagation result;
};

TileRegion Propagator::rootRegion() {
  TileRegion region;
  ArrayRef<int64_t> shape = shapeOf(graph.exprs()[result.root].op->getResult(0));
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    int64_t tile = dim < options.outputTile.size() ? std::min(options.outputTile[dim], extent) : extent;
    int64_t tiles = llvm::divideCeil(extent, tile);
    grid.index.push_back({0, tiles - 1});
    result.numTiles *= tiles;
    AffineExpr index = tiles == 1 ? getAffineConstantExpr(0, grid.context) : getAffineDimExpr(dim, grid.context);
    region.push_back({index * tile, {0, tile - 1}});
  }
  return region;
}

/// Returns the part of the domain that a region of a result needs; reduced dims are whole.
TileRegion Propagator::domainOf(const TensorExpr &expr, unsigned resultNumber, const TileRegion &region) {
  TileRegion domain;
  for (int64_t extent : expr.domain)
    domain.push_back(wholeDim(grid, extent));
  for (auto [position, written] : llvm::enumerate(expr.results[resultNumber].getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(written))
      domain[dim.getPosition()] = region[position];
  return domain;
}

TileRegion Propagator::resultOf(const TensorExpr &expr, unsigned resultNumber, const TileRegion &domain) {
  TileRegion region;
  for (AffineExpr written : expr.results[resultNumber].getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(written);
    region.push_back(dim ? domain[dim.getPosition()] : wholeDim(grid, 1));
  }
  return region;
}

/// Returns true if something outside the tile graph reads a result.
bool Propagator::isOutput(unsigned expr) const {
  return graph.escapes(expr) ||
         llvm::any_of(graph.outEdges(expr), [&](unsigned edge) { return !isMember(graph.edges()[edge].consumer); });
}

/// Returns true if an expression may take its reduced dims in steps, because its inputs are loaded for it and not left
/// by a producer.
bool Propagator::isFedFromOutside(const TensorExpr &expr) const {
  return llvm::all_of(expr.inputs, [&](const TensorAccess &access) {
    Operation *definition = access.tensor.getDefiningOp();
    int64_t producer = definition ? graph.indexOf(definition) : -1;
    return producer < 0 || !isMember(producer);
  });
}

void Propagator::demand(State &state, unsigned expr, const TileRegion &domain) {
  auto [entry, inserted] = state.domains.insert({expr, domain});
  if (inserted)
    return;
  bool exact = true;
  for (auto [dim, requested] : llvm::enumerate(domain))
    entry->second[dim] = unite(grid, entry->second[dim], requested, graph.exprs()[expr].domain[dim], exact);
}

void Propagator::readInputs(State &state, unsigned index) {
  const TensorExpr &expr = graph.exprs()[index];
  TileRegion domain = state.domains.at(index), step = domain;
  if (options.reductionTile > 0 && isFedFromOutside(expr))
    for (int64_t dim : expr.reductions)
      step[dim].range.high = std::min(step[dim].range.high, options.reductionTile - 1);
  for (const TensorAccess &access : expr.inputs) {
    TensorRegion read;
    bool unused = true;
    IntegerSet guard = access.guard;
    read.exact = !guard && !access.gathered;
    for (auto [index, extent] : llvm::zip(access.map.getResults(), shapeOf(access.tensor))) {
      if (access.gathered && isa<AffineConstantExpr>(index)) {
        read.region.push_back(wholeDim(grid, extent));
        read.resident.push_back(wholeDim(grid, extent));
        continue;
      }
      read.region.push_back(imageOf(grid, index, domain, extent, read.exact));
      read.resident.push_back(imageOf(grid, index, step, extent, unused));
    }
    auto [entry, inserted] = state.tensors.insert({access.tensor, read});
    if (inserted)
      continue;
    TensorRegion &known = entry->second;
    known.exact &= read.exact;
    for (auto [dim, extent] : llvm::enumerate(shapeOf(access.tensor))) {
      known.region[dim] = unite(grid, known.region[dim], read.region[dim], extent, known.exact);
      known.resident[dim] = unite(grid, known.resident[dim], read.resident[dim], extent, unused);
    }
  }
}

/// Carries demands to the inputs. Consumers come after producers, so one sweep from the end sees every demand.
void Propagator::backward(State &state, const std::map<unsigned, TileRegion> &from) {
  for (auto &[expr, domain] : from)
    demand(state, expr, domain);
  for (unsigned index : llvm::reverse(members)) {
    if (!state.domains.count(index))
      continue;
    readInputs(state, index);
    for (unsigned edge : graph.inEdges(index)) {
      const TensorEdge &in = graph.edges()[edge];
      if (!isMember(in.producer))
        continue;
      const TensorExpr &producer = graph.exprs()[in.producer];
      demand(state, in.producer,
             domainOf(producer, in.result, state.tensors[producer.op->getResult(in.result)].region));
    }
  }
}

/// Returns the region of an output that goes with the known tiles, or nothing if it shares no tensor with them.
std::optional<TileRegion> Propagator::alignedRegion(const State &state, unsigned output) {
  llvm::MapVector<Value, TileRegion> known;
  for (auto &[tensor, region] : state.tensors)
    known[tensor] = region.region;
  for (auto &[index, domain] : state.domains)
    for (Value value : graph.exprs()[index].op->getResults())
      known[value] = resultOf(graph.exprs()[index], cast<OpResult>(value).getResultNumber(), domain);
  for (unsigned index : members) {
    const TensorExpr &expr = graph.exprs()[index];
    if (index > output || state.domains.count(index))
      continue;
    TileRegion domain;
    for (int64_t extent : expr.domain)
      domain.push_back(wholeDim(grid, extent));
    bool shares = false;
    for (const TensorAccess &access : expr.inputs) {
      auto found = known.find(access.tensor);
      if (found == known.end())
        continue;
      shares = true;
      for (auto [position, read] : llvm::enumerate(access.map.getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(read); dim && !llvm::is_contained(expr.reductions, dim.getPosition()))
          domain[dim.getPosition()] = found->second[position];
    }
    if (index == output)
      return shares ? std::optional<TileRegion>(domain) : std::nullopt;
    if (shares)
      for (Value value : expr.op->getResults())
        known[value] = resultOf(expr, cast<OpResult>(value).getResultNumber(), domain);
  }
  return std::nullopt;
}

/// Adds a further output to the tile graph, or returns why it cannot.
std::string Propagator::align(State &state, unsigned output) {
  std::optional<TileRegion> domain = alignedRegion(state, output);
  if (!domain)
    return "it shares no tensor with the root's tile graph";
  const TensorExpr &expr = graph.exprs()[output];
  int64_t tiles = 1;
  for (auto [dim, extent] : llvm::zip(resultOf(expr, 0, *domain), shapeOf(expr.op->getResult(0))))
    tiles *= llvm::divideCeil(extent, dim.range.size());
  if (tiles != result.numTiles)
    return "its aligned tile would be computed " + std::to_string(result.numTiles) + " times, but there are " +
           std::to_string(tiles);
  State attempt = state;
  backward(attempt, {{output, *domain}});
  for (auto &[index, before] : state.domains)
    if (!contains(grid, before, attempt.domains.at(index)))
      return "it needs a larger tile of a shared producer";
  state = std::move(attempt);
  return "";
}

void Propagator::addTensor(const State &state, Value tensor, const TensorRegion &region) {
  int64_t producer = tensor.getDefiningOp() ? graph.indexOf(tensor.getDefiningOp()) : -1;
  bool inside = producer >= 0 && state.domains.count(producer);
  TensorTile tile{tensor, TileRole::input, {}, region.exact, 0, 0, 0, 0};
  tile.bytes = tile.residentBytes = tile::elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
  for (const TileDim &dim : region.region) {
    tile.shape.push_back(dim.range.size());
    tile.bytes *= dim.range.size();
  }
  for (const TileDim &dim : region.resident)
    tile.residentBytes *= dim.range.size();
  bool used = inside, leaves = false;
  for (auto [position, entry] : llvm::enumerate(result.exprs)) {
    const TensorExpr &expr = graph.exprs()[entry.expr];
    bool reads = llvm::any_of(expr.inputs, [&](const TensorAccess &access) { return access.tensor == tensor; });
    if (inside && entry.expr == producer)
      tile.first = tile.last = position;
    if (!reads)
      continue;
    tile.first = used ? tile.first : position;
    tile.last = position;
    used = true;
  }
  for (OpOperand &use : tensor.getUses()) {
    int64_t user = graph.indexOf(use.getOwner());
    leaves |= user < 0 || !state.domains.count(user);
  }
  if (inside)
    tile.role = leaves ? TileRole::output : TileRole::reuse;
  result.tensors.push_back(std::move(tile));
}

void Propagator::finish(const State &state) {
  for (auto &[index, domain] : state.domains) {
    ExprTile tile{index, {}};
    for (const TileDim &dim : domain)
      tile.sizes.push_back(dim.range.size());
    result.exprs.push_back(std::move(tile));
  }
  for (auto &[index, domain] : state.domains)
    for (const TensorAccess &access : graph.exprs()[index].inputs)
      if (llvm::none_of(result.tensors, [&](const TensorTile &tile) { return tile.tensor == access.tensor; }))
        addTensor(state, access.tensor, state.tensors.find(access.tensor)->second);
  for (auto &[index, domain] : state.domains)
    for (Value value : graph.exprs()[index].op->getResults()) {
      if (llvm::any_of(result.tensors, [&](const TensorTile &tile) { return tile.tensor == value; }))
        continue;
      TileRegion region = resultOf(graph.exprs()[index], cast<OpResult>(value).getResultNumber(), domain);
      addTensor(state, value, {region, region, true});
    }
}

TilePropagation Propagator::run() {
  State state;
  const TensorExpr &root = graph.exprs()[result.root];
  TileRegion region = rootRegion();
  backward(state, {{result.root, domainOf(root, 0, region)}});
  for (unsigned index : members) {
    if (state.domains.count(index) || !isOutput(index))
      continue;
    if (std::string reason = align(state, index); !reason.empty())
      result.unaligned.push_back({index, reason});
  }
  finish(state);
  return std::move(result);
}
} // namespace

TilePropagation propagate(const TileGraph &graph, unsigned root, const PropagationOptions &options) {
  return Propagator(graph, root, options).run();
}

} // namespace tilewright
