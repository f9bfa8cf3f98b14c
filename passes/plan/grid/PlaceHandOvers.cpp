#include "passes/plan/grid/PlaceHandOvers.h"

#include "passes/plan/grid/RecentUse.h"
#include "passes/plan/grid/ResidentTiles.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/tiling/gpu/BlockMemory.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A group of a later phase that reads a tensor.
struct Reader {
  unsigned group, input, phase;
  std::string whyNotShared = ""; ///< why its blocks do not find the tensor in shared memory; empty: they do
  std::string whyNotCached = ""; ///< why they do not find it in the L2 either
};

/// A result of a group that later phases of the kernel read, readers in the order of their phases.
struct HandOver {
  Value tensor;
  unsigned group, result, phase;
  int64_t tileBytes; ///< bytes of one block's tile
  SmallVector<Reader> readers;
};

/// The hand-overs of one kernel.
class KernelPlacer {
public:
  KernelPlacer(Plan &plan, const TensorGraph &graph, const Target &target, KernelPlan &kernel,
               llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf)
      : plan(plan), graph(graph), target(target), kernel(kernel), groupOf(groupOf), phases(phasesOf(plan, kernel)) {}

  void run() {
    collect();
    placeInShared();
    placeInL2();
    state();
  }

private:
  const IterationSpace &spaceOf(unsigned group) const { return groupOf(kernel.groups[group].ops.front().id).space; }

  void collect() {
    for (auto [phase, groups] : llvm::enumerate(phases))
      for (unsigned group : groups)
        for (auto [result, tensor] : llvm::enumerate(spaceOf(group).outputs)) {
          HandOver own{tensor, group, static_cast<unsigned>(result), static_cast<unsigned>(phase),
                       static_cast<int64_t>(llvm::divideCeil(tensorBytes(tensor), spaceOf(group).numTiles())), {}};
          addReaders(own);
          if (!own.readers.empty())
            handOvers.push_back(std::move(own));
        }
  }

  void addReaders(HandOver &own) const {
    for (unsigned phase = own.phase + 1; phase < phases.size(); ++phase)
      for (unsigned group : phases[phase]) {
        ArrayRef<Value> inputs = spaceOf(group).inputs;
        const Value *input = llvm::find(inputs, own.tensor);
        auto number = static_cast<unsigned>(input - inputs.begin());
        auto finds = [&](const ResidentTile &tile) { return tile.reader == group && tile.readerInput == number; };
        if (input != inputs.end() && llvm::none_of(kernel.residentTiles, finds))
          own.readers.push_back({group, number, phase, whyNotOwn(own, group)});
      }
  }

  /// Returns why blocks of a reading group do not read what they wrote themselves, or an empty string.
  std::string whyNotOwn(const HandOver &own, unsigned reader) const {
    if (isa<LoopLikeOpInterface>(own.tensor.getDefiningOp()->getParentOp()))
      return "the kernel of a loop keeps weights in shared memory";
    for (unsigned group : {own.group, reader}) {
      if (llvm::none_of(phases, [&](ArrayRef<unsigned> phase) { return phase.front() == group; }))
        return "the blocks of parts side by side have other numbers";
      if (std::string why = whyNotOneTile(spaceOf(group)); !why.empty())
        return why;
    }
    return whyNotAlike(graph, spaceOf(own.group), own.tensor, spaceOf(reader), own.tensor);
  }

  void placeInShared() {
    SmallVector<HandedOn> tiles;
    for (const HandOver &own : handOvers) {
      HandedOn &tile = tiles.emplace_back(HandedOn{residentTileBytes(own.tileBytes), own.phase, {}});
      for (const Reader &reader : own.readers)
        if (reader.whyNotShared.empty())
          tile.read.push_back(reader.phase);
    }
    BlockMemory memory(plan, graph, kernel, target, groupOf);
    SmallVector<unsigned> kept = keepByRecentUse(tiles, roomOf(memory));
    std::vector<ResidentTile> before = kernel.residentTiles;
    for (auto [own, tile, count] : llvm::zip(handOvers, tiles, kept))
      for (Reader &reader : own.readers) {
        if (!reader.whyNotShared.empty())
          continue;
        if (count == 0 || reader.phase > tile.read[count - 1])
          reader.whyNotShared = "shared memory has no room for it beside tiles that were used since";
        else
          kernel.residentTiles.push_back({own.group, 0, reader.group, reader.input, own.tileBytes, own.result});
      }
    if (!memory.hasRoom(memory.bytes(), BlockMemory(plan, graph, kernel, target, groupOf).bytes())) {
      kernel.residentTiles = std::move(before);
      for (HandOver &own : handOvers)
        for (Reader &reader : own.readers)
          if (reader.whyNotShared.empty())
            reader.whyNotShared = "shared memory has no room for it beside inputs that stay there";
    }
  }

  /// Returns the bytes by which a block may grow so that all blocks stay resident. They are a multiple of every
  /// alignment, so that what lies behind them needs no more padding than before.
  int64_t roomOf(const BlockMemory &memory) const {
    int64_t before = memory.bytes(), room = 0;
    for (unsigned group = 0; group < kernel.groups.size(); ++group) // tiles of inputs and sums of rows count as well
      before = std::max(before, spaceOf(group).blockWork.sharedBytes);
    while (memory.hasRoom(before, before + room + kWarpgroupAlignment))
      room += kWarpgroupAlignment;
    return room;
  }

  void placeInL2() {
    auto l2 = llvm::find_if(target.levels, [](const MemoryLevel &level) { return level.name == "L2"; });
    int64_t capacity = l2 == target.levels.end() ? 0 : l2->capacityBytes * l2->units;
    SmallVector<HandedOn> tensors;
    for (const HandOver &own : handOvers) {
      HandedOn &tensor = tensors.emplace_back(HandedOn{tensorBytes(own.tensor), own.phase, {}});
      for (const Reader &reader : own.readers)
        if (!reader.whyNotShared.empty() && (tensor.read.empty() || tensor.read.back() != reader.phase))
          tensor.read.push_back(reader.phase);
    }
    for (auto [own, tensor, count] : llvm::zip(handOvers, tensors, keepByRecentUse(tensors, capacity)))
      for (Reader &reader : own.readers)
        if (!reader.whyNotShared.empty() && (count == 0 || reader.phase > tensor.read[count - 1]))
          reader.whyNotCached = "the L2 has no room for it beside tensors that were used since";
  }

  /// States the places at the edges, and takes what blocks find in shared memory off the predicted traffic.
  void state() {
    double found = 0;
    for (const HandOver &own : handOvers)
      for (const Reader &reader : own.readers) {
        found += reader.whyNotShared.empty() ? static_cast<double>(tensorBytes(own.tensor)) : 0;
        for (unsigned number : graph.outEdges(graph.indexOf(own.tensor.getDefiningOp()))) {
          EdgePlan &edge = plan.edges[number];
          if (edge.result == cast<OpResult>(own.tensor).getResultNumber() &&
              llvm::any_of(kernel.groups[reader.group].ops, [&](const OpPlan &op) { return op.id == edge.consumer; }))
            edge.place = placeFor(reader);
        }
      }
    for (CostTerm &term : kernel.predicted)
      if (term.name == kRequestedOfL2)
        term.value = std::max(0.0, term.value - found);
  }

  static std::string placeFor(const Reader &reader) {
    if (reader.whyNotShared.empty())
      return "shared memory: each block reads the tile that it wrote";
    if (reader.whyNotCached.empty())
      return "L2: " + reader.whyNotShared;
    return "memory: " + reader.whyNotShared + ", and " + reader.whyNotCached;
  }

  Plan &plan;
  const TensorGraph &graph;
  const Target &target;
  KernelPlan &kernel;
  llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf;
  Phases phases;
  std::vector<HandOver> handOvers;
};
} // namespace

void tilewright::placeHandOvers(Plan &plan, const TensorGraph &graph, const Target &target,
                                llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) {
  for (KernelPlan &kernel : plan.kernels)
    if (phasesOf(plan, kernel).size() > 1)
      KernelPlacer(plan, graph, target, kernel, groupOf).run();
}
