#include "passes/cost/GridPartition.h"
#include "passes/plan/BarrierCuts.h"
#include "passes/plan/ContractionBlocks.h"
#include "passes/plan/Eligibility.h"
#include "passes/plan/KeptTiles.h"
#include "passes/plan/KernelPhases.h"
#include "passes/plan/TileSizes.h"
#include "passes/plan/Work.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kKeptPadding = 64; ///< a kept tile is aligned to it, and lies as its tensor does modulo a vector
constexpr double kClearly = 0.97;    ///< of the time in blocks as they are, for blocks of another size
/// Of the time of two kernels, for one that has the same code twice, as of two layers of a model. Apart, they share it:
/// it is compiled, assembled and fetched once.
constexpr double kWorthTheCode = 0.95;
/// Of the time of a part in blocks as they are, for a cut: what crosses the barrier is written and read, and
/// contractions are predicted no closer than this.
constexpr double kWorthTheBytes = 0.9;
/// Beside sums, as ptxas counts them where nothing bounds them: 70 in all for two sums of 4 lanes, 90 for two of 8.
constexpr int64_t kBesideSums = 56;

/// Of a thread that adds up over a loop: its own sums, and those of others that they are combined with behind it.
int64_t registersOfSums(const IndexSpace &space, const BlockWork &work) {
  int64_t narrowest = work.accessBytes, sums = 0;
  for (Value input : space.inputs)
    narrowest = std::min(narrowest, tile::elementBytes(cast<RankedTensorType>(input.getType()).getElementType()));
  for (const NestWork &nest : work.nests)
    sums = std::max(sums, nest.accumulators * work.accessBytes / narrowest);
  return sums > 0 ? kBesideSums + 2 * sums : 0;
}

class GridJoiner {
public:
  GridJoiner(const TensorGraph &graph, const Target &target, Partition &partition, Decisions &decisions, bool allowed)
      : graph(graph), target(target), partition(partition), decisions(decisions), allowed(allowed) {}

  void run() {
    llvm::sort(decisions.kernels, [&](ArrayRef<unsigned> a, ArrayRef<unsigned> b) { return first(a) < first(b); });
    for (size_t kernel = 0; allowed && kernel < decisions.kernels.size(); ++kernel)
      while (cutOnePartOf(kernel))
        ;
    for (size_t kernel = 0; kernel < decisions.kernels.size(); ++kernel)
      while (joinOneTo(kernel))
        ;
    for (size_t kernel = 0; allowed && kernel < decisions.kernels.size(); ++kernel)
      keepTiles(kernel);
    shareTilesOfLone();
    countPartials();
  }

private:
  /// Parts of one kernel, planned for blocks of as many threads.
  struct Joining {
    std::vector<PlannedPart> parts;
    std::vector<GridStage> stages;
    GridKernel kernel;
    std::vector<KeptInput> kept;
  };

  const PlannedPart &part(unsigned index) const { return *decisions.parts[index]; }
  unsigned first(ArrayRef<unsigned> kernel) const { return part(kernel.front()).choice.exprs.front(); }
  unsigned groupOf(ArrayRef<unsigned> kernel) const { return partition.groupOf(first(kernel)); }

  bool joinOneTo(size_t kernel) {
    for (size_t reader = kernel + 1; reader < decisions.kernels.size(); ++reader)
      if (tryJoinThroughViews(kernel, reader))
        return true;
    return false;
  }

  //===--------------------------------------------------------------------===//
  // Tiles that blocks share
  //===--------------------------------------------------------------------===//

  /// In kernels that have been joined with nothing: where that pays for what blocks leave to each other, too.
  void shareTilesOfLone() {
    for (SmallVector<unsigned> &parts : decisions.kernels) {
      std::optional<std::vector<GridStage>> stages = parts.size() == 1 ? stagesOf(parts) : std::nullopt;
      if (!stages)
        continue;
      GridPartition own = partitionAtGridSync(*stages, target, {allowed, /*byCost=*/false});
      if (!own.kernels.front().phases.front().front().sharesTiles)
        continue;
      PlannedPart whole = part(parts.front());
      shareBlocks(parts, *stages, own.kernels.front());
      if (predictKernel(withPartials(part(parts.front())), target).seconds > kClearly * whole.predicted.seconds)
        decisions.parts[parts.front()] = std::move(whole);
    }
  }

  /// What blocks leave to each other is written and read once.
  PartWork withPartials(const PlannedPart &planned) const {
    const IndexSpace &space = planned.space;
    int64_t units = space.numTiles() * space.steps, left = 0;
    for (int64_t block = 0; block < space.workgroups; ++block)
      left += block * units / space.workgroups % space.steps != 0;
    double bytes = static_cast<double>(left * sharedTiles(graph, target, space, space.threads).rowBytes);
    PartWork work = planned.work;
    work.inputBytes += bytes;
    work.outputBytes += bytes;
    return work;
  }

  void countPartials() {
    for (std::optional<PlannedPart> &planned : decisions.parts)
      if (planned && planned->space.steps > 0)
        planned->work = withPartials(*planned);
  }

  //===--------------------------------------------------------------------===//
  // Reshapes between kernels
  //===--------------------------------------------------------------------===//

  /// Two kernels with the reshapes between them taken into the parts that read these. Apart, they are the border.
  bool tryJoinThroughViews(size_t kernel, size_t reader) {
    std::map<unsigned, SmallVector<unsigned>> views;
    for (unsigned own : decisions.kernels[reader])
      if (SmallVector<unsigned> between = viewsBetween(decisions.kernels[kernel], own); !between.empty())
        views[own] = between;
    if (views.empty() && !reads(decisions.kernels[reader], decisions.kernels[kernel]))
      return false;
    double seconds = aloneSeconds(decisions.kernels[kernel]) + aloneSeconds(decisions.kernels[reader]);
    if (views.empty())
      return tryJoin(kernel, reader, seconds);
    Partition apart = partition;
    std::map<unsigned, PlannedPart> without;
    bool isJoined = llvm::all_of(views, [&](auto &own) { return takeViews(own.first, own.second, without); }) &&
                    tryJoin(kernel, reader, seconds);
    if (isJoined)
      return true;
    partition = std::move(apart);
    for (auto &[own, planned] : without) {
      decisions.parts[own] = std::move(planned);
      forget(own);
      for (unsigned view : views[own])
        decisions.partOf[view] = -1;
    }
    return false;
  }

  /// Reshapes left to IREE that the part alone reads, of what the producers make.
  SmallVector<unsigned> viewsBetween(ArrayRef<unsigned> producers, unsigned reader) const {
    llvm::SmallSetVector<unsigned, 4> views;
    for (unsigned expr : part(reader).choice.exprs)
      for (unsigned edge : graph.inEdges(expr)) {
        SmallVector<unsigned> chain;
        unsigned from = graph.edges()[edge].producer;
        while (isLeftView(from) && isReadOnlyIn(from, reader, chain) && !graph.inEdges(from).empty()) {
          chain.push_back(from);
          from = graph.edges()[graph.inEdges(from).front()].producer;
        }
        if (llvm::any_of(producers, [&](unsigned own) { return part(own).choice.contains(from); }))
          views.insert(chain.begin(), chain.end());
      }
    return views.takeVector();
  }

  bool isLeftView(unsigned expr) const { return decisions.partOf[expr] < 0 && isView(graph.exprs()[expr]); }

  bool isReadOnlyIn(unsigned expr, unsigned reader, ArrayRef<unsigned> chain) const {
    return !graph.escapes(expr) && llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
      unsigned consumer = graph.edges()[edge].consumer;
      return part(reader).choice.contains(consumer) || llvm::is_contained(chain, consumer);
    });
  }

  /// Keeps the part without them in `without`; false if there is none with them.
  bool takeViews(unsigned own, ArrayRef<unsigned> views, std::map<unsigned, PlannedPart> &without) {
    SmallVector<unsigned> exprs(part(own).choice.exprs);
    llvm::append_range(exprs, views);
    llvm::sort(exprs);
    std::optional<PlannedPart> with = planPart(graph, exprs, target);
    if (!with)
      return false;
    with->apartSeconds = part(own).apartSeconds;
    for (unsigned view : views) {
      partition.merge(groupOf({own}), partition.groupOf(view));
      decisions.partOf[view] = own;
    }
    without.insert({own, std::move(*decisions.parts[own])});
    decisions.parts[own] = std::move(*with);
    forget(own);
    return true;
  }

  void forget(unsigned own) { ofSize.erase(ofSize.lower_bound({own, 0, 0}), ofSize.lower_bound({own + 1, 0, 0})); }

  //===--------------------------------------------------------------------===//
  // Two kernels in one
  //===--------------------------------------------------------------------===//

  bool contracts(const PlannedPart &own) const {
    return llvm::any_of(own.choice.exprs,
                        [&](unsigned expr) { return graph.exprs()[expr].kind == ExprKind::contraction; });
  }

  bool reads(ArrayRef<unsigned> reader, ArrayRef<unsigned> producer) const {
    for (unsigned a : reader)
      for (unsigned b : producer)
        if (readsResultsOf(graph, part(a).choice, part(b).choice))
          return true;
    return false;
  }

  /// Whether each part of the one kernel has its like in the other.
  bool repeats(ArrayRef<unsigned> reader, ArrayRef<unsigned> producer) const {
    return llvm::all_of(reader, [&](unsigned a) {
      return llvm::any_of(producer, [&](unsigned b) { return areAlike(part(a).choice, part(b).choice); });
    });
  }

  /// The same ops, but for what they read.
  bool areAlike(const PartChoice &a, const PartChoice &b) const {
    return a.exprs.size() == b.exprs.size() && llvm::all_of(llvm::zip(a.exprs, b.exprs), [&](auto pair) {
             return OperationEquivalence::isEquivalentTo(
                 graph.exprs()[std::get<0>(pair)].op, graph.exprs()[std::get<1>(pair)].op,
                 OperationEquivalence::ignoreValueEquivalence, nullptr, OperationEquivalence::IgnoreLocations);
           });
  }

  /// Apart, the two take so many seconds.
  bool tryJoin(size_t kernel, size_t reader, double apart) {
    SmallVector<unsigned> producers = decisions.kernels[kernel], both = producers;
    llvm::append_range(both, decisions.kernels[reader]);
    Declined why = {"", "scope grid allowed"};
    if (!partition.canMerge(groupOf(producers), groupOf(decisions.kernels[reader])))
      return false; // the reason that stands there already says more
    if (int64_t bindings = countBindings(graph, decisions, both, target); bindings > target.maxBindings) {
      why = {
          llvm::formatv("one kernel at scope grid has {0} bindings; the target has {1}", bindings, target.maxBindings),
          "a target with more bindings"};
      return decline(producers, decisions.kernels[reader], why);
    }
    bool isRepeated = repeats(decisions.kernels[reader], producers);
    std::string cut;
    if (std::optional<Joining> joining = inOneKernel(both, isRepeated ? kWorthTheCode * apart : apart, &cut)) {
      sayBarrier(producers, decisions.kernels[reader], joining->kernel.seconds, apart);
      partition.merge(groupOf(producers), groupOf(decisions.kernels[reader]));
      decisions.kernels.erase(decisions.kernels.begin() + reader);
      carryOut(both, *joining, kernel);
      return true;
    }
    if (allowed)
      why.wouldChange = stagesOf(both) ? "a launch that costs more, or blocks that take less" : "blocks of one size";
    why.reason =
        isRepeated ? llvm::formatv("scope launch and not grid: one kernel would have the same code twice, and is not "
                                   "predicted to take 5% less than the {0:f2} us of two",
                                   apart * 1e6)
        : !cut.empty() ? "scope launch and not grid: " + cut
                       : llvm::formatv("scope launch and not grid: in blocks of one size, as one kernel has, they are "
                                       "predicted slower than the {0:f2} us of two kernels",
                                       apart * 1e6);
    return decline(producers, decisions.kernels[reader], why);
  }

  /// One kernel of parts, where it is predicted to take no longer than `bound`; else nothing, and in `cut` why their
  /// stages are cut, if they are.
  std::optional<Joining> inOneKernel(ArrayRef<unsigned> parts, double bound, std::string *cut = nullptr) {
    std::optional<std::vector<GridStage>> stages = stagesOf(parts);
    GridPartition asTheyAre =
        stages ? partitionAtGridSync(*stages, target, {allowed, /*byCost=*/true}) : GridPartition();
    if (cut && !asTheyAre.cuts.empty())
      *cut = asTheyAre.cuts.front().reason;
    bool joins = stages && asTheyAre.kernels.size() == 1 && asTheyAre.seconds() <= bound;
    double most = joins ? kClearly * asTheyAre.seconds() : bound;
    bool mayResize = !joins || llvm::none_of(parts, [&](unsigned own) { return contracts(part(own)); });
    if (std::optional<Joining> alike = allowed && mayResize ? inBlocksAlike(parts, most) : std::nullopt)
      return alike;
    if (!joins)
      return std::nullopt;
    Joining joining{{}, std::move(*stages), std::move(asTheyAre.kernels.front()), {}};
    for (unsigned own : parts)
      joining.parts.push_back(part(own));
    return joining;
  }

  //===--------------------------------------------------------------------===//
  // A part in two phases
  //===--------------------------------------------------------------------===//

  /// While parts grew, what stays outside was charged a launch. Where a barrier takes less time than the few blocks
  /// that compute several contractions, or whole rows behind one, the part is cut there.
  bool cutOnePartOf(size_t kernel) {
    SmallVector<unsigned> parts = decisions.kernels[kernel];
    double whole = aloneSeconds(parts), least = kWorthTheBytes * whole;
    std::optional<CutPart> best;
    for (unsigned own : parts)
      if (contracts(part(own)))
        for (const BarrierCut &pieces : barrierCuts(graph, part(own).choice.exprs))
          if (std::optional<CutPart> cut = cutAt(parts, own, pieces, least)) {
            least = cut->seconds;
            best = std::move(cut);
          }
    if (!best)
      return false;
    place(*best);
    for (unsigned front : best->places)
      decisions.barriers[{front, best->places.back()}] =
          llvm::formatv("with a barrier of the grid here the kernel is predicted to take {0:f2} us, with one block for "
                        "both ends {1:f2} us",
                        best->seconds * 1e6, whole * 1e6);
    // Stages know the parts where they stand.
    carryOut(best->parts, *inOneKernel(best->parts, best->bound), kernel);
    return true;
  }

  /// A part of a kernel in pieces, and the kernel with them.
  struct CutPart {
    std::vector<PlannedPart> pieces;
    SmallVector<unsigned> places; ///< of the pieces among all parts
    SmallVector<unsigned> parts;  ///< of the kernel
    double bound = 0;             ///< below which the kernel was looked for
    double seconds = 0;           ///< of the kernel
  };

  /// Nothing if there is no such kernel, or it is not predicted to take less time than `bound`.
  std::optional<CutPart> cutAt(ArrayRef<unsigned> parts, unsigned own, const BarrierCut &pieces, double bound) {
    CutPart cut{{}, {}, SmallVector<unsigned>(parts), bound};
    for (ArrayRef<unsigned> exprs : pieces) {
      std::optional<PlannedPart> planned = planPart(graph, exprs, target);
      if (!planned)
        return std::nullopt;
      cut.pieces.push_back(std::move(*planned));
    }
    if (secondsAtLeast(cut.pieces) >= bound)
      return std::nullopt;
    size_t before = decisions.parts.size();
    for (size_t front = 0; front + 1 < pieces.size(); ++front)
      cut.parts.push_back(before + front);
    cut.places = llvm::to_vector(llvm::seq<unsigned>(before, before + pieces.size() - 1));
    cut.places.push_back(own);
    PlannedPart whole = part(own);
    place(cut);
    bool isBound = countBindings(graph, decisions, cut.parts, target) <= target.maxBindings;
    std::optional<Joining> joining = isBound ? inOneKernel(cut.parts, bound) : std::nullopt;
    cut.seconds = joining ? joining->kernel.seconds : bound;
    for (unsigned place : cut.places)
      forget(place);
    decisions.parts.resize(before);
    decisions.parts[own] = std::move(whole);
    for (unsigned expr : part(own).choice.exprs)
      decisions.partOf[expr] = own;
    return cut.seconds < bound ? std::optional(std::move(cut)) : std::nullopt;
  }

  /// Whatever else stands in the kernel.
  double secondsAtLeast(ArrayRef<PlannedPart> pieces) const {
    double slowest = 0;
    for (const PlannedPart &piece : pieces)
      slowest = std::max(slowest, piece.predicted.seconds);
    return slowest + target.gpu.gridBarrierSeconds;
  }

  void place(const CutPart &cut) {
    decisions.parts.resize(decisions.parts.size() + cut.pieces.size() - 1);
    for (auto [place, piece] : llvm::zip(cut.places, cut.pieces)) {
      for (unsigned expr : piece.choice.exprs)
        decisions.partOf[expr] = place;
      decisions.parts[place] = piece;
      forget(place);
    }
  }

  //===--------------------------------------------------------------------===//
  // Blocks of one size
  //===--------------------------------------------------------------------===//

  /// Each part was planned for blocks of its own size, and the kernel has those of the largest. The size for which all
  /// together take the least time; nothing if that is not less than `most`.
  std::optional<Joining> inBlocksAlike(ArrayRef<unsigned> both, double most) {
    std::optional<Joining> best;
    for (int64_t threads : {128, 256, 512, 1024}) {
      std::optional<Joining> joining = inBlocksOf(both, threads);
      if (!joining || joining->kernel.seconds >= most)
        continue;
      most = joining->kernel.seconds;
      best = std::move(joining);
    }
    return best;
  }

  /// As many of them as the part with most shared memory leaves on an SM, for which the others are chosen anew.
  std::optional<Joining> inBlocksOf(ArrayRef<unsigned> both, int64_t threads) {
    std::optional<Joining> joining = inBlocksOf(both, threads, /*resident=*/0);
    if (joining)
      joining = inBlocksOf(both, threads, joining->kernel.residentBlocks);
    return joining;
  }

  std::optional<Joining> inBlocksOf(ArrayRef<unsigned> both, int64_t threads, int64_t resident) {
    Joining joining;
    for (unsigned own : both) {
      const std::optional<PlannedPart> &planned = inBlocksOf(own, threads, resident);
      if (!planned)
        return std::nullopt;
      joining.parts.push_back(*planned);
      GridStage &stage = joining.stages.emplace_back(stageOf(own, both, planned->space.blockWork));
      if (contracts(*planned) && !describeContraction(planned->space, threads, stage))
        return std::nullopt;
    }
    GridPartition cut = partitionAtGridSync(joining.stages, target, {allowed, /*byCost=*/false});
    if (cut.kernels.size() > 1)
      return std::nullopt;
    joining.kernel = std::move(cut.kernels.front());
    return joining;
  }

  /// The quickest blocks of a part of which so many are resident (0: as many as fit); nothing if there are none.
  const std::optional<PlannedPart> &inBlocksOf(unsigned own, int64_t threads, int64_t resident) {
    auto [known, isNew] = ofSize.try_emplace({own, threads, resident});
    std::optional<PlannedPart> &planned = known->second;
    if (!isNew)
      return planned;
    std::vector<BlockCandidate> blocks = blockCandidates(graph, part(own).choice, target, part(own).space);
    llvm::erase_if(blocks, [&](const BlockCandidate &block) {
      return block.threads != threads || block.latency.residentBlocks < resident;
    });
    if (contracts(part(own))) {
      auto quickest = llvm::min_element(blocks, [](const BlockCandidate &a, const BlockCandidate &b) {
        return a.latency.seconds < b.latency.seconds;
      });
      return planned = quickest == blocks.end() ? std::nullopt : inBlocks(own, *quickest);
    }
    for (BlockCandidate &block : blocks) {
      block.work.mostResident = resident;
      block.latency = blockLatency(block.work, target);
    }
    int64_t best = bestBlock(blocks, target);
    return planned = best < 0 ? std::nullopt : inBlocks(own, blocks[best]);
  }

  //===--------------------------------------------------------------------===//
  // Tiles that blocks keep
  //===--------------------------------------------------------------------===//

  /// A pair of parts of a kernel, and the inputs that the blocks of one may keep for the other.
  struct Keeping {
    unsigned writer, reader; ///< indices into the kernel's parts
    std::vector<CommonInput> inputs;
  };

  /// Where phases of a kernel read the same tensor by tiles that can agree, with blocks that keep theirs, if that is
  /// predicted to take less time than any blocks that read it again.
  void keepTiles(size_t kernel) {
    SmallVector<unsigned> parts = decisions.kernels[kernel];
    if (parts.size() < 2 || llvm::any_of(parts, [&](unsigned own) { return contracts(part(own)); }))
      return;
    double least = kClearly * aloneSeconds(parts);
    std::optional<Joining> best;
    for (unsigned writer = 0; writer < parts.size(); ++writer)
      for (unsigned reader = writer + 1; reader < parts.size(); ++reader) {
        Keeping keeping{writer, reader, commonInputs(part(parts[writer]).space, part(parts[reader]).space)};
        if (keeping.inputs.empty())
          continue;
        for (const BlockCandidate &block :
             blockCandidates(graph, part(parts[writer]).choice, target, part(parts[writer]).space))
          if (std::optional<Joining> joining = keepingTiles(parts, keeping, block);
              joining && joining->kernel.seconds < least) {
            least = joining->kernel.seconds;
            best = std::move(joining);
          }
      }
    if (best)
      carryOut(parts, *best, kernel);
  }

  /// With this block for the part that reads first; nothing if some blocks could not keep their tile.
  std::optional<Joining> keepingTiles(ArrayRef<unsigned> parts, Keeping keeping, const BlockCandidate &block) {
    if (!block.discarded.empty() || block.cluster > 1)
      return std::nullopt;
    unsigned writer = parts[keeping.writer], reader = parts[keeping.reader];
    std::optional<PlannedPart> first = inBlocks(writer, block);
    std::optional<std::vector<int64_t>> tiles =
        first ? tilesAlike(graph, first->space, part(reader).space, keeping.inputs.front()) : std::nullopt;
    std::optional<BlockCandidate> alike =
        tiles ? blockOfTiles(graph, part(reader).choice, target, part(reader).space, *tiles, block.threads)
              : std::nullopt;
    std::optional<PlannedPart> second = alike && alike->discarded.empty() ? inBlocks(reader, *alike) : std::nullopt;
    if (!second)
      return std::nullopt;
    llvm::erase_if(keeping.inputs,
                   [&](CommonInput input) { return !whyNotAlike(graph, first->space, second->space, input).empty(); });
    Joining joining;
    int64_t kept = keep(parts, keeping, *first, *second, joining);
    for (auto [place, own] : llvm::enumerate(parts)) {
      std::optional<PlannedPart> planned = place == keeping.writer   ? first
                                           : place == keeping.reader ? second
                                                                     : inBlocksOf(own, block.threads, /*resident=*/0);
      if (!planned)
        return std::nullopt;
      GridStage &stage = joining.stages.emplace_back(stageOf(own, parts, planned->space.blockWork));
      stage.work.sharedBytes += place == keeping.writer ? 0 : kept;
      stage.walks &= place != keeping.writer && place != keeping.reader;
      joining.parts.push_back(std::move(*planned));
    }
    GridPartition cut = partitionAtGridSync(joining.stages, target, {allowed, /*byCost=*/false});
    if (cut.kernels.size() > 1 || !areFirst(cut.kernels.front(), keeping))
      return std::nullopt;
    joining.kernel = std::move(cut.kernels.front());
    return joining;
  }

  /// A block finds its tile by its own number, so both parts begin their phases.
  static bool areFirst(const GridKernel &kernel, const Keeping &keeping) {
    return llvm::all_of(ArrayRef({keeping.writer, keeping.reader}), [&](unsigned stage) {
      return llvm::any_of(kernel.phases, [&](ArrayRef<GridShare> phase) { return phase.front().stage == stage; });
    });
  }

  std::optional<PlannedPart> inBlocks(unsigned own, const BlockCandidate &block) const {
    PlannedPart shaped = part(own);
    if (!takeBlock(graph, shaped.choice, target, shaped.space, block).empty())
      return std::nullopt;
    shaped.work = workOf(graph, shaped.space);
    shaped.predicted = predictKernel(shaped.work, target);
    return shaped;
  }

  /// Moves what the second part reads of the inputs to shared memory, in its predictions too. Returns the bytes that a
  /// block keeps; those that the first part does not hold for its own nests anyway are added to its memory.
  int64_t keep(ArrayRef<unsigned> parts, const Keeping &keeping, PlannedPart &writer, PlannedPart &reader,
               Joining &joining) const {
    int64_t kept = 0;
    for (CommonInput input : keeping.inputs) {
      Value written = writer.space.inputs[input.writerInput], read = reader.space.inputs[input.readerInput];
      double all = tensorBytes(read);
      int64_t bytes = llvm::divideCeil(tensorBytes(read), writer.space.numTiles());
      int64_t placed = llvm::alignTo(bytes + kKeptPadding, kKeptPadding);
      joining.kept.push_back(
          {parts[keeping.writer], input.writerInput, parts[keeping.reader], input.readerInput, bytes});
      kept += placed;
      bool holds = llvm::is_contained(writer.space.tileStaged, written);
      writer.space.blockWork.sharedBytes += holds ? kKeptPadding : placed;
      writer.work.blockBytes += holds ? 0 : all;
      reader.work.inputBytes -= all;
      reader.work.blockBytes += all;
      readFromBlock(reader.space, read, all);
    }
    return kept;
  }

  void readFromBlock(IndexSpace &space, Value input, double bytes) const {
    BlockWork &work = space.blockWork;
    work.bytes -= bytes;
    work.movedBytes = std::max(work.bytes, work.movedBytes - bytes);
    unsigned nest = space.readingNests(input).front();
    for (const PartRoot &root : space.roots)
      for (const RootAccess &access : root.accesses)
        if (root.nest == nest && access.tensor == input) {
          work.nests[nest].globalLoads -= 1;
          work.nests[nest].sharedLoads += 1;
        }
  }

  /// Of a kernel as it stands.
  double aloneSeconds(ArrayRef<unsigned> kernel) const {
    std::optional<std::vector<GridStage>> stages = stagesOf(kernel);
    return stages ? partitionAtGridSync(*stages, target, {allowed, /*byCost=*/false}).seconds() : 0;
  }

  bool decline(ArrayRef<unsigned> producers, ArrayRef<unsigned> readers, const Declined &why) {
    for (unsigned a : producers)
      for (unsigned b : readers)
        if (readsResultsOf(graph, part(b).choice, part(a).choice))
          note(decisions.declined[{a, b}], why, contracts(part(a)) || contracts(part(b)));
    return false;
  }

  /// What stands between contractions at block scope is said as well.
  static void note(Declined &declined, const Declined &why, bool keepsReason) {
    if (std::string reason = inBlocks(declined); keepsReason && !reason.empty())
      declined.reason = reason + "; " + why.reason;
    else
      declined = why;
  }

  /// Why the two are not one part, without what was said of kernels before.
  static std::string inBlocks(const Declined &declined) {
    StringRef reason = declined.reason;
    return reason.take_front(reason.find("scope launch")).rtrim("; ").str();
  }

  /// The kernels were predicted to take so many seconds together and apart.
  void sayBarrier(ArrayRef<unsigned> producers, ArrayRef<unsigned> readers, double together, double apart) {
    for (unsigned a : producers)
      for (unsigned b : readers) {
        if (!readsResultsOf(graph, part(b).choice, part(a).choice))
          continue;
        std::string &reason = decisions.barriers[{a, b}];
        reason = llvm::formatv("one kernel with a barrier of the grid here is predicted to take {0:f2} us, two kernels "
                               "{1:f2} us",
                               together * 1e6, apart * 1e6);
        auto known = decisions.declined.find({a, b});
        if (std::string inBlock = known == decisions.declined.end() ? "" : inBlocks(known->second); !inBlock.empty())
          reason += "; in one block for both: " + inBlock;
      }
  }

  /// All parts of a kernel run in blocks of one size.
  int64_t threadsOf(ArrayRef<unsigned> parts) const {
    int64_t threads = 0;
    for (unsigned own : parts)
      threads = std::max(threads, part(own).space.threads);
    return threads;
  }

  /// Nothing if a contraction's tile is not for blocks of the size that the parts agree on.
  std::optional<std::vector<GridStage>> stagesOf(ArrayRef<unsigned> parts) const {
    int64_t threads = threadsOf(parts);
    std::vector<GridStage> stages;
    for (unsigned own : parts) {
      GridStage &stage = stages.emplace_back(stageOf(own, parts, part(own).space.blockWork));
      if (contracts(part(own)) && !describeContraction(part(own).space, threads, stage))
        return std::nullopt;
    }
    return stages;
  }

  GridStage stageOf(unsigned own, ArrayRef<unsigned> parts, const BlockWork &work) const {
    GridStage stage;
    const TensorExpr &expr = graph.exprs()[part(own).choice.exprs.back()];
    stage.name = llvm::formatv("op {0} ({1})", part(own).choice.exprs.back(), expr.op->getName());
    stage.work = work;
    // What the proof counts on (countedRegisters), and launch bounds hold the assembler to: fewer blocks where it would
    // have to spill.
    stage.work.registers =
        std::min(target.gpu.registersPerThread, std::max(kUnknownRegisters, registersOfSums(part(own).space, work)));
    for (auto [i, other] : llvm::enumerate(parts))
      if (other != own && readsResultsOf(graph, part(own).choice, part(other).choice))
        stage.producers.push_back(i);
    return stage;
  }

  bool describeContraction(const IndexSpace &space, int64_t threads, GridStage &stage) const {
    std::optional<BlockWork> work = contractionBlockWork(graph, target, space, threads);
    if (!work)
      return false;
    stage.work = *work;
    stage.work.registers = std::max(stage.work.registers, kUnknownRegisters);
    stage.seconds = [this, &space, threads](double blocks, double together) {
      return contractionSeconds(graph, target, space, threads, blocks, together);
    };
    stage.steps = sharedTiles(graph, target, space, threads).steps;
    stage.sharedSeconds = [this, &space, threads](double blocks, double together) {
      return sharedSeconds(graph, target, space, threads, blocks, together);
    };
    return true;
  }

  void carryOut(ArrayRef<unsigned> parts, const Joining &joining, size_t kernel) {
    for (auto [own, planned] : llvm::zip(parts, joining.parts))
      decisions.parts[own] = planned;
    llvm::append_range(decisions.kept, joining.kept);
    decisions.kernels[kernel] = shareBlocks(parts, joining.stages, joining.kernel);
  }

  /// Gives the parts the blocks that they have in the kernel. Returns them in the order of its phases.
  SmallVector<unsigned> shareBlocks(ArrayRef<unsigned> parts, ArrayRef<GridStage> stages, const GridKernel &joined) {
    SmallVector<unsigned> order;
    for (const std::vector<GridShare> &phase : joined.phases) {
      int64_t together = llvm::divideCeil(blocksOf(phase), target.gpu.guaranteedSms);
      for (const GridShare &share : phase) {
        PlannedPart &own = *decisions.parts[parts[share.stage]];
        const GridStage &stage = stages[share.stage];
        order.push_back(parts[share.stage]);
        own.space.workgroups = own.work.workgroups = share.blocks;
        own.space.steps = share.sharesTiles ? stage.steps : 0;
        BlockWork work = own.space.blockWork;
        work.mostResident = joined.residentBlocks;
        own.work.latencySeconds = share.sharesTiles
                                      ? target.gpu.gridBarrierSeconds + stage.sharedSeconds(share.blocks, together)
                                  : stage.seconds ? stage.seconds(share.blocks, together)
                                                  : blockLatency(work, target).seconds;
      }
    }
    for (unsigned own : parts)
      if (contracts(part(own)))
        decisions.parts[own]->space.threads = joined.threads;
    return order;
  }

  static int64_t blocksOf(ArrayRef<GridShare> phase) {
    int64_t blocks = 0;
    for (const GridShare &share : phase)
      blocks += share.blocks;
    return blocks;
  }

  const TensorGraph &graph;
  const Target &target;
  Partition &partition;
  Decisions &decisions;
  bool allowed;
  /// By part, threads of a block and blocks on an SM.
  std::map<std::tuple<unsigned, int64_t, int64_t>, std::optional<PlannedPart>> ofSize;
};
} // namespace

void tilewright::joinAtGrid(const TensorGraph &graph, const Target &target, Partition &partition, Decisions &decisions,
                            bool allowed) {
  if (target.gpu.guaranteedSms > 0)
    GridJoiner(graph, target, partition, decisions, allowed).run();
}
