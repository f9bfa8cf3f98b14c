#include "passes/plan/tiling/gpu/PlannedGemms.h"

#include "passes/cost/ChooseGemm.h"
#include "passes/layout/GemmReasons.h"
#include "passes/layout/OperandAccess.h"
#include "passes/plan/ir/Phases.h"
#include "passes/plan/space/ContractionReader.h"
#include "passes/plan/space/SettleMicroKernels.h"
#include "passes/plan/space/WalkedDim.h"
#include "passes/plan/tiling/gpu/PlannedPrefetch.h"
#include "passes/plan/tiling/gpu/PlannedSharing.h"
#include "passes/support/Declined.h"
#include "passes/target/AccessBytes.h"
#include "passes/target/Occupancy.h"
#include "passes/target/Warpgroups.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// A contraction of a plan, as the block computes it.
struct PlannedGemm {
  GemmTile tile;
  MicroKernel kernel;
  GemmUse use;
  int64_t threads;
  std::string whyNotResident; ///< why no copy of lhs can stay in shared memory while a tile is walked; empty: it can
};

/// Reads one contraction of a plan.
class GemmReader : public ContractionReader {
public:
  GemmReader(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel, const GroupPlan &group,
             const Target &target)
      : ContractionReader(plan, graph, group), kernel(kernel), target(target) {}

  /// Returns the operands of the contraction that was read last whose first steps can be copied before it begins, with
  /// its layout: during the contraction before it, or before the grid barrier in front of it.
  tile::Operands prefetchable(const GemmTiling &tiling) {
    if (!hasOneLoop() || !beginsAfterSomething())
      return tile::Operands::none;
    bool ofLhs = tiling.residentSteps == 0 && canStart(lhs(), tiling.lhsCopy);
    bool ofRhs = canStart(rhs(), tiling.rhsCopy);
    return static_cast<tile::Operands>((ofLhs ? 1 : 0) + (ofRhs ? 2 : 0));
  }

  /// Returns the bytes that a thread copies at once of an operand of that contraction, at most; 0 if threads do not
  /// copy it from global memory.
  int64_t widestCopy(const PlannedGemm &gemm, const GemmTiling &tiling, bool isLhs) const {
    int64_t bytes = 0;
    askCopies(gemm, tiling, isLhs, [&](const OperandAccess &access, auto... shape) {
      bytes = access.widestCopy(shape...);
    });
    return bytes;
  }

  /// Returns why a thread cannot copy so many bytes of the operand at once, or an empty string.
  std::string whyNotCopied(const PlannedGemm &gemm, const GemmTiling &tiling, bool isLhs, int64_t bytes) const {
    std::string why = bytes == 0 ? "" : "no thread copies it from global memory, so it must be 0";
    askCopies(gemm, tiling, isLhs, [&](const OperandAccess &access, auto... shape) {
      why = access.whyNotCopied(bytes, shape...);
    });
    return why;
  }

  /// Returns true if the contraction reads an operand from the buffer in which another nest leaves it, so that its
  /// slots are empty: the buffer has whole steps of whole tiles, and elements that are read at once are contiguous.
  bool staysInPlace(const GemmTiling &tiling, bool isLhs) const {
    const RootAccess &access = isLhs ? lhs() : rhs();
    int64_t dim = isLhs ? m : n, points = isLhs ? tiling.heldM : tiling.n;
    auto isWhole = [&](int64_t own, int64_t count) {
      return extents[own] % sizes[own] == 0 && sizes[own] % count == 0;
    };
    if (access.producer < 0 || dim < 0 || access.guard != IntegerSet() || !isWhole(dim, points) ||
        !isWhole(k, tiling.step))
      return false;
    SmallVector<int64_t> shape = shapeOf(access);
    OperandAccess own{access.map, shape, bytesOf(access), sizes, extents};
    int64_t atom = kAtomBytes / own.elementBytes;
    return own.alignedElements(own.liesByK(dim, k) ? k : dim, atom) == atom;
  }

  /// Returns how the operand is copied, for the reader, if threads copy fewer than 16 bytes at once.
  std::string narrowCopies(const GemmChoice &choice) const {
    SmallVector<std::string> texts;
    for (unsigned number : {0u, 1u}) {
      int64_t bytes = number == lhsInput ? choice.lhsCopy : choice.rhsCopy;
      auto type = cast<RankedTensorType>(root->accesses[number].tensor.getType());
      if (bytes == 0 || bytes == kAtomBytes)
        continue;
      std::string width = "element by element";
      if (bytes >= kLeastAsyncBytes)
        width = llvm::formatv("{0} bytes at a time", bytes);
      int64_t row = type.getRank() == 0 ? 1 : type.getShape().back();
      bool isAligned = row * bytesOf(root->accesses[number]) % kAtomBytes == 0;
      texts.push_back(isAligned ? llvm::formatv("operand {0} copied {1}", number, width).str()
                                : llvm::formatv("operand {0} copied {1}: its rows of {2} x {3} are not aligned to {4} "
                                                "bytes",
                                                number, width, row, type.getElementType(), kAtomBytes)
                                      .str());
    }
    return llvm::join(texts, ", ");
  }

  bool hasLayout() const { return group.hasLayout(); }

  /// Returns the contractions in the order in which a block computes them, and which of them are in the loop over
  /// blocks of a walked dim. `atReaders` has each at the first nest that reads it, where it is computed if its
  /// accumulators are handed over in registers.
  SmallVector<std::pair<const OpPlan *, bool>> inOrder(bool atReaders = false) {
    int64_t dim = walked();
    Walk walk = dim < 0 ? Walk() : walkAlong(graph, choice, roots, dim);
    SmallVector<size_t> order = llvm::to_vector(llvm::seq<size_t>(roots.size()));
    if (atReaders)
      llvm::stable_sort(order, [&](size_t a, size_t b) { return firstReaderOf(a) < firstReaderOf(b); });
    SmallVector<std::pair<const OpPlan *, bool>> found;
    for (WalkPhase phase : {WalkPhase::before, WalkPhase::inside, WalkPhase::after})
      for (size_t number : order) {
        const OpPlan &planned = group.op(roots[number].expr);
        WalkPhase own = walk.phases.empty() ? WalkPhase::before : walk.phases[number];
        if (own == phase && !planned.microKernel.empty())
          found.push_back({&planned, phase == WalkPhase::inside});
      }
    return found;
  }

  unsigned rhsNumber() const { return 1 - lhsInput; }

  /// Returns the contraction of an op that has a micro kernel. Declines if no block can compute it in this group.
  OrDeclined<PlannedGemm> read(const OpPlan &op) {
    OrDeclined<ContractionRoles> roles = find(op);
    if (!roles)
      return unreadable(roles.why().reason);
    return describe(op, *roles);
  }

  /// Returns the tiling that the plan states for an op; none if it has no contraction that a block computes.
  std::optional<GemmTiling> tilingOf(const OpPlan &op) {
    if (op.microKernel.empty() || !op.gemm)
      return std::nullopt;
    OrDeclined<PlannedGemm> gemm = read(op);
    if (!gemm)
      return std::nullopt;
    return deriveGemmTiling(gemm->tile, gemm->threads, gemm->kernel, *op.gemm, target.costs.gpu).optional();
  }

private:
  static Declined unreadable(StringRef why) {
    return {"no block of threads can compute it: " + why.str(), "other tiles, or no micro kernel"};
  }

  OrDeclined<PlannedGemm> describe(const OpPlan &op, const ContractionRoles &roles) {
    SmallVector<int64_t> lhsShape = shapeOf(lhs()), rhsShape = shapeOf(rhs());
    OperandAccess ofLhs{lhs().map, lhsShape, bytesOf(lhs()), sizes, extents, lhs().guard},
        ofRhs{rhs().map, rhsShape, bytesOf(rhs()), sizes, extents, rhs().guard};
    k = steppedDim({ofLhs, ofRhs}, reduced);
    bool lhsInBuffer = lhs().producer >= 0, rhsInBuffer = rhs().producer >= 0;
    OperandStorage storage{lhsInBuffer, rhsInBuffer, ofLhs.liesAlong(k) && (ofRhs.liesAlong(k) || hasLayout())};
    std::optional<MicroKernel> micro = blockMicroKernel(target, productTypes(expr(), roles), op.microKernel, storage,
                                                        plan.numerics);
    if (!micro)
      return unreadable("target '" + target.name + "' has no micro kernel for its operands");
    GemmTile tile{m < 0 ? 1 : sizes[m], sizes[n],           sizes[k], ofLhs.elementBytes, ofRhs.elementBytes,
                  ofLhs.liesByK(m, k),  ofRhs.liesByK(n, k)};
    tile.lhsShifted = !lhsInBuffer && ofLhs.beginsInsideWords(m, k);
    tile.rhsShifted = !rhsInBuffer && !hasLayout() && ofRhs.beginsInsideWords(n, k);
    PlannedGemm gemm{tile, *micro, {}, std::max<int64_t>(kernel.threads(), 1), whyNotResident(*micro)};
    gemm.use.alone = isAlone();
    return gemm;
  }

  int64_t walked() const { return walkedDim(group.extents, group.tiles, group.grid); }

  /// Returns true if no SM runs more than one of the group's blocks, and nothing else in a block accumulates.
  bool isAlone() const {
    auto accumulates = [&](const GroupRoot &other) {
      const TensorExpr &own = graph.exprs()[other.expr];
      return &other != root && llvm::any_of(own.reductions, [&](int64_t dim) { return hasPlace(own, dim); });
    };
    return lhs().producer < 0 && rhs().producer < 0 && walked() < 0 &&
           group.numTiles() <= static_cast<int64_t>(target.cores) && llvm::none_of(roots, accumulates);
  }

  std::string whyNotResident(const MicroKernel &micro) {
    int64_t dim = walked();
    if (dim < 0 || !isInsideWalk(dim))
      return "no dim is walked in blocks around it";
    if (lhs().producer >= 0)
      return "another nest leaves its lhs in shared memory anyway";
    auto own = llvm::find(dims, dim);
    if (own != dims.end() && lhs().map.isFunctionOfDim(own - dims.begin()))
      return "its lhs is another one in each block of the walked dim";
    if (roundsInSharedMemory(micro))
      return whyRoundedAgain(micro.name);
    return hasOneLoop() ? "" : "its steps along K are in more than one loop";
  }

  /// Returns true if the steps along K are the only loop around the accumulators.
  bool hasOneLoop() const {
    return llvm::none_of(nest,
                         [&](int64_t other) { return other != m && other != n && other != k && sizes[other] > 1; });
  }

  /// Returns the number of the first root that reads the result of a root, or its own if none does.
  size_t firstReaderOf(size_t number) const {
    for (size_t other = number + 1; other < roots.size(); ++other)
      if (llvm::any_of(roots[other].accesses, [&](const RootAccess &access) {
            return access.producer == static_cast<int64_t>(roots[number].expr);
          }))
        return other;
    return number;
  }

  /// Returns true if another contraction of the block, or a grid barrier, is in front of the contraction, whichever
  /// accumulators are handed over in registers.
  bool beginsAfterSomething() { return beginsAfterSomething(inOrder()) && beginsAfterSomething(inOrder(true)); }

  bool beginsAfterSomething(ArrayRef<std::pair<const OpPlan *, bool>> order) {
    bool isInLoop = walked() >= 0 && isInsideWalk(walked());
    SmallVector<const OpPlan *> together;
    for (auto [op, isWalked] : order)
      if (isWalked == isInLoop)
        together.push_back(op);
    auto isThis = [&](const OpPlan *op) { return op->id == root->expr; };
    int64_t count = together.size(), own = llvm::find_if(together, isThis) - together.begin();
    if (own == count || (own == 0 && !(isInLoop && count > 1)))
      return !isInLoop && standsBehindBarrier();
    GemmReader before(*this);
    return static_cast<bool>(before.read(*together[(own + count - 1) % count])) && before.hasOneLoop();
  }

  /// Returns true if the group is alone in a phase behind a grid barrier.
  bool standsBehindBarrier() const {
    unsigned own = &group - kernel.groups.data();
    Phases phases = phasesOf(plan, kernel);
    return group.steps == 0 && llvm::any_of(llvm::drop_begin(phases), [&](ArrayRef<unsigned> phase) {
             return phase.size() == 1 && phase.front() == own;
           });
  }

  /// Returns true if steps of an operand can be copied before the contraction begins: asynchronously, and from a tensor
  /// that the kernel does not write.
  bool canStart(const RootAccess &access, int64_t copy) const {
    Operation *made = access.tensor.getDefiningOp();
    bool isWritten = llvm::any_of(kernel.groups, [&](const GroupPlan &other) {
      return llvm::any_of(other.ops, [&](const OpPlan &op) { return graph.exprs()[op.id].op == made; });
    });
    return access.producer < 0 && !isWritten && copy >= kLeastAsyncBytes;
  }

  /// Calls `ask` with the access to an operand, and with what the width of its copies depends on, if threads copy the
  /// operand from global memory.
  template <typename Ask>
  void askCopies(const PlannedGemm &gemm, const GemmTiling &tiling, bool isLhs, Ask ask) const {
    const RootAccess &access = isLhs ? lhs() : rhs();
    if (access.producer >= 0 || (!isLhs && hasLayout()))
      return;
    SmallVector<int64_t> shape = shapeOf(access);
    bool isShifted = (isLhs ? gemm.tile.lhsShifted : gemm.tile.rhsShifted) && canShift(gemm.kernel);
    ask(OperandAccess{access.map, shape, bytesOf(access), sizes, extents, access.guard}, isLhs ? m : n, k,
        isLhs ? tiling.heldM : tiling.n, tiling.step, isShifted);
  }

  bool isInsideWalk(int64_t dim) {
    Walk walk = walkAlong(graph, choice, roots, dim);
    return walk.refused.empty() && walk.phases[root - roots.data()] == WalkPhase::inside;
  }

  const KernelPlan &kernel;
  const Target &target;
  int64_t k = -1;
};
} // namespace

/// Calls `visit` with each op of the plan that has a micro kernel and with its contraction, until it returns a reason.
template <typename AnyPlan, typename Visit>
static std::string forEachGemm(AnyPlan &plan, const TensorGraph &graph, const Target &target, Visit visit) {
  auto makeReader = [&](const KernelPlan &kernel, const GroupPlan &group) {
    return GemmReader(plan, graph, kernel, group, target);
  };
  return forEachContraction(plan, makeReader,
                            [&](auto &op, GemmReader &reader) { return visit(op, reader.read(op), reader); });
}

void tilewright::chooseGemms(Plan &plan, const TensorGraph &graph, const Target &target,
                             llvm::function_ref<const PlannedGroup &(unsigned op)> groupOf) {
  llvm::DenseSet<unsigned> given;
  forEachGemm(plan, graph, target, [&](OpPlan &op, OrDeclined<PlannedGemm> read, GemmReader &reader) -> std::string {
    if (op.gemm)
      given.insert(op.id);
    if (op.gemm || !read)
      return ""; // whyNotComputed says why it cannot be read
    PlannedGemm &gemm = *read;
    gemm.use.kSlices = groupOf ? groupOf(op.id).space.kSlices : 1;
    op.gemm = chooseGemm(gemm.tile, gemm.threads, gemm.kernel, target.costs.gpu, gemm.use).optional();
    if (!op.gemm)
      return "";
    GemmTiling tiling = *deriveGemmTiling(gemm.tile, gemm.threads, gemm.kernel, *op.gemm, target.costs.gpu);
    op.gemm->lhsCopy = tiling.lhsCopy = reader.widestCopy(gemm, tiling, /*isLhs=*/true);
    op.gemm->rhsCopy = tiling.rhsCopy = reader.widestCopy(gemm, tiling, /*isLhs=*/false);
    if (gemm.whyNotResident.empty() && tiling.whyNotResident(gemm.tile.k, target.costs.gpu).empty()) {
      op.gemm->lhs = tile::Residency::walk;
      tiling.keepLhsResident(gemm.tile.k);
    }
    op.gemm->prefetch = reader.prefetchable(tiling);
    return "";
  });
  auto isGiven = [&](unsigned op) { return given.contains(op); };
  settleSteps(plan, graph, target, isGiven);
  settlePrefetches(plan, graph, target, isGiven, groupOf);
}

/// Returns why a block cannot compute the contraction as the plan states, or an empty string.
static std::string whyNot(const OpPlan &op, const PlannedGemm &gemm, GemmReader &reader, const Target &target) {
  if (!op.gemm) // nothing could be chosen
    return chooseGemm(gemm.tile, gemm.threads, gemm.kernel, target.costs.gpu, gemm.use).why().reason;
  OrDeclined<GemmTiling> tiling = deriveGemmTiling(gemm.tile, gemm.threads, gemm.kernel, *op.gemm, target.costs.gpu);
  if (!tiling)
    return tiling.why().reason;
  if (tiling->sharedBytes() > target.blockBytes)
    return llvm::formatv("its operands take {0} bytes of shared memory; a block of target '{1}' has {2}",
                         tiling->sharedBytes(), target.name, target.blockBytes);
  for (bool isLhs : {true, false})
    if (std::string why = reader.whyNotCopied(gemm, *tiling, isLhs, isLhs ? tiling->lhsCopy : tiling->rhsCopy);
        !why.empty())
      return (isLhs ? "lhsCopy: " : "rhsCopy: ") + why;
  if (op.gemm->lhs == tile::Residency::walk && !gemm.whyNotResident.empty())
    return whyLhsNotResident(gemm.whyNotResident);
  auto asked = static_cast<unsigned>(op.gemm->prefetch), can = static_cast<unsigned>(reader.prefetchable(*tiling));
  if ((asked & ~can) == 0)
    return "";
  return whyNotCopiedAhead(tile::stringifyOperands(static_cast<tile::Operands>(asked & ~can)));
}

void tilewright::describeCopies(Plan &plan, const TensorGraph &graph, const Target &target) {
  forEachGemm(plan, graph, target, [&](OpPlan &op, OrDeclined<PlannedGemm> gemm, GemmReader &reader) -> std::string {
    if (!gemm || !op.gemm)
      return "";
    op.copies = reader.narrowCopies(*op.gemm);
    OrDeclined<GemmTiling> tiling =
        deriveGemmTiling(gemm->tile, gemm->threads, gemm->kernel, *op.gemm, target.costs.gpu);
    if (tiling && reader.hasLayout()) {
      std::string bulk = llvm::formatv("operand {0} copied {1} bytes at a time, from a swizzled layout",
                                       reader.rhsNumber(), tiling->rhsSlotBytes);
      op.copies = bulk + (op.copies.empty() ? "" : ", " + op.copies);
    }
    return "";
  });
}

std::vector<PlannedContraction> tilewright::plannedContractions(const Plan &plan, const TensorGraph &graph,
                                                                const KernelPlan &kernel, const GroupPlan &group,
                                                                const Target &target) {
  std::vector<PlannedContraction> contractions;
  GemmReader reader(plan, graph, kernel, group, target);
  for (auto [op, isWalked] : reader.inOrder()) {
    OrDeclined<PlannedGemm> gemm = reader.read(*op);
    if (!gemm || !op->gemm) // whyNotComputed says why
      continue;
    OrDeclined<GemmTiling> derived =
        deriveGemmTiling(gemm->tile, gemm->threads, gemm->kernel, *op->gemm, target.costs.gpu);
    if (!derived)
      continue;
    GemmTiling tiling = *derived;
    if (reader.staysInPlace(tiling, /*isLhs=*/true))
      tiling.readLhsInPlace();
    if (reader.staysInPlace(tiling, /*isLhs=*/false))
      tiling.rhsSlotBytes = 0;
    int64_t steps = llvm::divideCeil(gemm->tile.k, tiling.step);
    contractions.push_back({op->id, tiling, steps, isWalked});
  }
  return contractions;
}

std::string tilewright::whyNotComputed(const Plan &plan, const TensorGraph &graph, const Target &target) {
  return forEachGemm(plan, graph, target, [&](const OpPlan &op, OrDeclined<PlannedGemm> gemm, GemmReader &reader) {
    std::string why = gemm ? whyNot(op, *gemm, reader, target) : gemm.why().reason;
    return why.empty() ? "" : "gemm: " + why;
  });
}

std::optional<GemmTiling> tilewright::plannedTiling(const Plan &plan, const TensorGraph &graph,
                                                    const KernelPlan &kernel, const GroupPlan &group, const OpPlan &op,
                                                    const Target &target) {
  return GemmReader(plan, graph, kernel, group, target).tilingOf(op);
}

int64_t tilewright::countedRegisters(const Plan &plan, const TensorGraph &graph, const KernelPlan &kernel,
                                     const Target &target) {
  int64_t registers = kUnknownRegisters;
  for (const GroupPlan &group : kernel.groups) {
    GemmReader reader(plan, graph, kernel, group, target);
    for (const OpPlan &op : group.ops)
      if (std::optional<GemmTiling> tiling = reader.tilingOf(op))
        registers = std::max(registers, tiling->registers(target.costs.gpu));
  }
  return std::min(registers, target.gpu.registersPerThread);
}
