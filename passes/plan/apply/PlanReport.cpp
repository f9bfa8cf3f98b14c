// Writes the JSON report of a plan, with the coverage of the graph.
#include "passes/plan/apply/PlanReport.h"

#include "dialects/tile/TileAttributeNames.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/graph/Eligibility.h"
#include "passes/graph/Rounding.h"
#include "passes/plan/apply/LoopForm.h"
#include "passes/plan/grid/KernelPhases.h"
#include "passes/plan/space/IterationSpace.h"
#include "passes/plan/space/PlanNumerics.h"
#include "passes/plan/space/SharedRows.h"
#include "passes/support/SpellType.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tilewright;
namespace json = llvm::json;

std::string tilewright::locationOf(Operation *op, AsmState &state) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->getLoc()->print(os, state);
  return StringRef(text).starts_with("loc(") ? text.substr(4, text.size() - 5) : text;
}

namespace {
class Reporter {
public:
  /// `plan` is that of the block.
  Reporter(const BlockGraph &block, const Plan &plan)
      : graph(block.graph), plan(plan), firstOp(block.firstOp), atLoad(computedAtLoad(graph)),
        kernelOf(graph.exprs().size(), -1) {
    for (auto [k, kernel] : llvm::enumerate(plan.kernels))
      for (const GroupPlan &part : kernel.groups)
        for (const OpPlan &op : part.ops)
          kernelOf[op.id] = k;
    std::vector<bool> irees;
    for (auto [id, expr] : llvm::enumerate(graph.exprs()))
      irees.push_back(expr.kind == ExprKind::contraction && kernelOf[id] < 0 && !atLoad[id]);
    folded = foldsIntoContraction(graph, irees);
  }

  json::Object report() const {
    json::Array kernels, launches, left;
    for (size_t k = 0; k < plan.kernels.size(); ++k)
      kernels.push_back(kernel(k));
    for (const EdgePlan &edge : plan.edges)
      if (edge.scope >= tile::Scope::launch)
        launches.push_back(json::Object{{"from", firstOp + edge.producer},
                                        {"to", firstOp + edge.consumer},
                                        {"from_op", opName(edge.producer)},
                                        {"to_op", opName(edge.consumer)},
                                        {"from_loc", location(edge.producer)},
                                        {"to_loc", location(edge.consumer)},
                                        {"bytes", edge.bytes},
                                        {"reason", edge.reason},
                                        {"would_change", edge.wouldChange}});
    for (const LeftOp &op : plan.left)
      left.push_back(json::Object{{"id", firstOp + op.id},
                                  {"op", op.op},
                                  {"loc", location(op.id)},
                                  {"reason", op.reason},
                                  {"bytes", bytesOf(op.id)},
                                  {"operations", graph.exprs()[op.id].arithmetic()},
                                  {"dispatch", isDispatch(op.id)}});
    for (const OpaqueOp &opaque : graph.opaque())
      left.push_back(json::Object{{"op", opaque.op->getName().getStringRef()},
                                  {"loc", location(opaque.op)},
                                  {"reason", opaque.reason},
                                  {"bytes", bytesOf(opaque.op)},
                                  {"operations", 0}, // not known
                                  {"dispatch", !isa_and_nonnull<tensor::TensorDialect>(opaque.op->getDialect())}});
    json::Array forms;
    for (const FormChoice &form : plan.forms)
      forms.push_back(json::Object{{"choice", toJson(form)}, {"locations", json::Array(form.locations)}});
    return json::Object{{"target", plan.target},
                        {"policy", plan.policy},
                        {"numerics", stringify(plan.numerics)},
                        {"kernels", std::move(kernels)},
                        {"edges_at_launch", std::move(launches)},
                        {"left_to_iree", std::move(left)},
                        {"forms", std::move(forms)},
                        {"coverage", coverage()}};
  }

private:
  std::string opName(unsigned id) const { return graph.exprs()[id].op->getName().getStringRef().str(); }

  std::string location(Operation *op) const {
    if (!names)
      names.emplace(op->getContext());
    return locationOf(op, *names);
  }
  std::string location(unsigned id) const { return location(graph.exprs()[id].op); }

  /// Returns the bytes that an op moves by itself, with each input and result counted once.
  int64_t bytesOf(unsigned id) const {
    const TensorExpr &expr = graph.exprs()[id];
    llvm::DenseSet<Value> tensors;
    for (const TensorAccess &access : expr.inputs)
      tensors.insert(access.tensor);
    for (Value result : expr.op->getResults())
      if (!result.use_empty())
        tensors.insert(result);
    int64_t bytes = 0;
    for (Value tensor : tensors)
      bytes += tensorBytes(tensor);
    return bytes;
  }

  /// Returns the bytes of the operands and results of any op, as far as their types have a static size.
  static int64_t bytesOf(Operation *op) {
    uint64_t bytes = 0;
    auto add = [&](Type value) {
      auto type = dyn_cast<RankedTensorType>(value);
      if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
        return;
      uint64_t size = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      for (int64_t dim : type.getShape())
        size = llvm::SaturatingMultiply<uint64_t>(size, dim);
      bytes = llvm::SaturatingAdd(bytes, size);
    };
    auto structured = dyn_cast<DestinationStyleOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands())
      if (!structured || !structured.isDpsInit(&operand))
        add(operand.get().getType());
    llvm::for_each(op->getResultTypes(), add);
    return std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max());
  }

  /// Reports the numerics of an op in the words of the plan. `stored` is the type that results are rounded to.
  json::Value numerics(const OpPlan &op) const {
    const TensorExpr &expr = graph.exprs()[op.id];
    std::string stored = llvm::join(
        llvm::map_range(expr.op->getResultTypes(), [](Type type) { return spell(getElementTypeOrSelf(type)); }), ", ");
    return json::Object{{"form", tile::stringifyForm(op.form)},
                        {"stored", stored},
                        {"sums", !expr.oneReliesOnOne() && llvm::any_of(combiningKinds(expr), isSumOrProduct)},
                        {"accumulation", op.numerics.accumulation},
                        {"reassociates", op.numerics.reassociates},
                        {"fused_multiply_add", StringRef(op.microKernel).starts_with("fma")},
                        {"operands", StringRef(op.microKernel).rsplit('-').first.ends_with("_tf32") ? "tf32" : ""},
                        {"roundings_removed", op.numerics.roundingsRemoved},
                        {"reciprocals", mayUseReciprocals(expr, plan.numerics)}};
  }

  /// Returns the micro kernel's name for the reader, with the slices of K: "fma-8x8k4".
  static std::string microKernelOf(const OpPlan &op) {
    bool isSliced = op.gemm && op.gemm->kSlices > 1;
    return op.microKernel + (isSliced ? "k" + std::to_string(op.gemm->kSlices) : "");
  }

  /// Returns the group's dims in loop order, with grid dims first.
  static json::Array orderOf(const GroupPlan &part) {
    json::Array order(part.grid);
    for (int64_t place = 0; place < static_cast<int64_t>(part.extents.size()); ++place)
      if (!llvm::is_contained(part.grid, place))
        order.push_back(place);
    return order;
  }

  static json::Array movementOf(const GroupPlan &part) {
    json::Array levels;
    for (const LevelMovement &level : part.movement)
      levels.push_back(json::Object{{"level", level.level}, {"bytes", level.bytes}, {"least_bytes", level.leastBytes}});
    return levels;
  }

  json::Value kernel(unsigned k) const {
    const KernelPlan &entry = plan.kernels[k];
    json::Array ops, parts, edges, predicted;
    Phases phases = phasesOf(plan, entry);
    for (auto [p, part] : llvm::enumerate(entry.groups)) {
      int64_t resident = 0;
      for (const ResidentTile &tile : entry.residentTiles)
        resident += tile.reader == p ? tile.bytes : 0;
      auto holds = [p = p](ArrayRef<unsigned> phase) { return llvm::is_contained(phase, p); };
      json::Array ids;
      for (const OpPlan &op : part.ops) {
        ids.push_back(firstOp + op.id);
        ops.push_back(json::Object{{"id", firstOp + op.id},
                                   {"op", op.op},
                                   {"loc", location(op.id)},
                                   {"bytes", bytesOf(op.id)},
                                   {"root", op.root},
                                   {"micro_kernel", microKernelOf(op)},
                                   {"copies", op.copies},
                                   {"numerics", numerics(op)}});
      }
      parts.push_back(json::Object{{"ops", std::move(ids)},
                                   {"dims", json::Array(part.extents)},
                                   {"tiles", json::Array(part.tiles)},
                                   {"grid", json::Array(part.grid)},
                                   {"vector", part.vector},
                                   {"workgroups", part.workgroups},
                                   {"threads", part.threads},
                                   {"group", part.group},
                                   {"steps", part.steps},
                                   {"phase", llvm::find_if(phases, holds) - phases.begin()},
                                   {"resident_bytes", resident},
                                   {"row_blocks", blocksPerRow(graph, part)},
                                   {"order", orderOf(part)},
                                   {"movement", movementOf(part)}});
    }
    for (const EdgePlan &edge : plan.edges)
      if (edge.scope < tile::Scope::launch && kernelOf[edge.consumer] == static_cast<int64_t>(k))
        edges.push_back(json::Object{{"from", firstOp + edge.producer},
                                     {"to", firstOp + edge.consumer},
                                     {"scope", tile::stringifyScope(edge.scope)},
                                     {"recompute", edge.recompute},
                                     {"unrounded", edge.unrounded},
                                     {"reason", edge.reason},
                                     {"place", edge.place}});
    for (const CostTerm &term : entry.predicted)
      predicted.push_back(
          json::Object{{"name", term.name}, {"unit", tile::stringifyUnit(term.unit)}, {"value", term.value}});
    const GroupPlan &first = entry.groups.front();
    return json::Object{{"name", entry.name},
                        {"ops", std::move(ops)},
                        {"edges", std::move(edges)},
                        {"groups", std::move(parts)},
                        {"dims", json::Array(first.extents)},
                        {"tiles", json::Array(first.tiles)},
                        {"grid", json::Array(first.grid)},
                        {"vector", first.vector},
                        {"workgroups", workgroupsOf(plan, entry)},
                        {"predicted", std::move(predicted)},
                        {"bound", entry.bound}};
  }

  /// Returns true if a kernel must run the op: it computes or moves at run time, and IREE cannot fold it into a
  /// contraction. Ops that Tilewright does not support yet count as well, so that coverage does not flatter.
  bool counts(unsigned id) const {
    const TensorExpr &expr = graph.exprs()[id];
    return expr.kind != ExprKind::contraction && !isView(expr) && folded[id] < 0 && !atLoad[id] &&
           llvm::any_of(expr.op->getResults(), [](Value result) { return !result.use_empty(); });
  }

  /// Returns true if IREE launches a dispatch for an op that it keeps: a contraction, or an op that it cannot fold into
  /// one.
  bool isDispatch(unsigned id) const { return graph.exprs()[id].kind == ExprKind::contraction || counts(id); }

  json::Object coverage() const {
    int64_t opsTaken = 0, opsEligible = 0, bytesTaken = 0, bytesEligible = 0, bytesFolded = 0;
    for (unsigned id = 0; id < graph.exprs().size(); ++id) {
      const TensorExpr &expr = graph.exprs()[id];
      int64_t bytes = bytesOf(id);
      if (expr.kind != ExprKind::contraction && !isView(expr) && folded[id] >= 0 && kernelOf[id] < 0)
        bytesFolded += bytes;
      bool taken = kernelOf[id] >= 0 && !isView(expr);
      if (!counts(id) && !taken)
        continue;
      ++opsEligible;
      bytesEligible += bytes;
      opsTaken += taken;
      bytesTaken += taken ? bytes : 0;
    }
    for (const OpaqueOp &opaque : graph.opaque())
      if (isa<linalg::LinalgOp>(opaque.op)) {
        ++opsEligible;
        bytesEligible += bytesOf(opaque.op);
      }
    return json::Object{{"ops_taken", opsTaken},
                        {"ops_eligible", opsEligible},
                        {"bytes_taken", bytesTaken},
                        {"bytes_eligible", bytesEligible},
                        {"bytes_folded_by_iree", bytesFolded}};
  }

  const TensorGraph &graph;
  const Plan &plan;
  unsigned firstOp; ///< number of the block's first op in the plan of the function
  std::vector<int64_t> folded;
  std::vector<bool> atLoad;
  std::vector<int64_t> kernelOf;
  mutable std::optional<AsmState> names; ///< prints locations; one for each would take longer than all else
};
} // namespace

/// Adds the report on a further block: lists grow, and numbers are added.
static void add(json::Object &report, json::Object block) {
  for (StringRef list : {"kernels", "edges_at_launch", "left_to_iree"})
    for (json::Value &entry : *block.getArray(list))
      report.getArray(list)->push_back(std::move(entry));
  json::Object &coverage = *report.getObject("coverage");
  for (auto &[name, value] : *block.getObject("coverage"))
    coverage[name] = *coverage.getInteger(name) + *value.getAsInteger();
}

static json::Array loopsOf(ArrayRef<BlockGraph> blocks, const Plan &plan) {
  json::Array loops;
  for (const BlockGraph &block : blocks)
    if (const LoopPlan *loop = block.loop ? loopAt(plan, block.firstOp) : nullptr) {
      std::string where;
      llvm::raw_string_ostream(where) << block.loop->getLoc();
      json::Array kernels;
      for (const KernelPlan &kernel : planOfBlock(plan, loop->firstOp, loop->ops).kernels)
        kernels.push_back(kernel.name);
      json::Value own = loop->oneKernel.value_or(false) ? kernels.front() : json::Value("");
      loops.push_back(json::Object{{"op", loop->op},
                                   {"loc", where},
                                   {"first_op", loop->firstOp},
                                   {"ops", loop->ops},
                                   {"steps", loop->steps},
                                   {"kernel", std::move(own)},
                                   {"reason", loop->reason},
                                   {"kernels", std::move(kernels)}});
    }
  return loops;
}

json::Object tilewright::reportPlan(ArrayRef<BlockGraph> blocks, const Plan &plan) {
  json::Object report;
  for (const BlockGraph &block : blocks) {
    Plan own = planOfBlock(plan, block.firstOp, block.graph.exprs().size());
    json::Object reported = Reporter(block, own).report();
    if (&block == blocks.begin())
      report = std::move(reported);
    else
      add(report, std::move(reported));
  }
  report["loops"] = loopsOf(blocks, plan);
  return report;
}
