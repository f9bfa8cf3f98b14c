#include "passes/plan/ir/Plan.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tilewright;

const OpPlan &GroupPlan::op(unsigned id) const {
  return *find_if(ops, [&](const OpPlan &op) { return op.id == id; });
}

int64_t GroupPlan::numTiles() const {
  int64_t count = 1;
  for (int64_t dim : grid)
    count *= divideCeil(extents[dim], tiles[dim]);
  return count;
}

bool GroupPlan::hasLayout() const {
  return any_of(tensors, [](const TensorPlan &tensor) { return !tensor.layout.empty(); });
}

int64_t KernelPlan::threads() const {
  int64_t most = 0;
  for (const GroupPlan &group : groups)
    most = std::max(most, group.threads);
  return most;
}

const EdgePlan *Plan::edge(unsigned consumer, unsigned input) const {
  std::pair key(consumer, input);
  auto keyOf = [](const EdgePlan &edge) { return std::pair(edge.consumer, edge.input); };
  auto at = llvm::partition_point(edges, [&](const EdgePlan &edge) { return keyOf(edge) < key; });
  return at != edges.end() && keyOf(*at) == key ? &*at : nullptr;
}

std::string Plan::verifyStreams() const {
  if (streams.empty())
    return "";
  if (streams.size() > 1)
    return std::to_string(streams.size()) + " streams: kernels are launched in one";
  std::vector<bool> seen(kernels.size());
  for (unsigned kernel : streams.front()) {
    if (kernel >= seen.size() || seen[kernel])
      return "streams: kernel " + std::to_string(kernel) +
             (kernel >= seen.size() ? " does not exist" : " is launched twice");
    seen[kernel] = true;
  }
  if (auto missing = llvm::find(seen, false); missing != seen.end())
    return "streams: kernel '" + kernels[missing - seen.begin()].name + "' is never launched";
  return llvm::is_sorted(streams.front()) ? "" : "streams: kernels are launched in the order of the list";
}

std::string tilewright::resultName(const TensorGraph &graph, mlir::OpResult result) {
  return "op" + std::to_string(graph.indexOf(result.getOwner())) + "." + std::to_string(result.getResultNumber());
}

static std::string list(const std::vector<int64_t> &values) {
  return "[" + join(map_range(values, [](int64_t value) { return std::to_string(value); }), ", ") + "]";
}

static void printGroup(const GroupPlan &part, raw_ostream &os) {
  os << "  part extents " << list(part.extents) << " tiles " << list(part.tiles) << " grid " << list(part.grid)
     << " vector " << part.vector << " workgroups " << part.workgroups;
  if (part.threads > 0)
    os << " threads " << part.threads << " group " << part.group;
  if (part.steps > 0)
    os << " share tiles of " << part.steps << " steps";
  if (part.cluster > 1)
    os << " cluster " << part.cluster;
  os << "\n";
  for (const OpPlan &op : part.ops) {
    os << "    op" << op.id << " " << op.op << " " << tile::stringifyForm(op.form);
    if (op.root)
      os << " root dims " << list(op.dims);
    if (!op.numerics.accumulation.empty())
      os << " accumulates in " << op.numerics.accumulation << (op.numerics.reassociates ? ", reassociated" : "");
    if (op.numerics.roundingsRemoved > 0)
      os << " without " << op.numerics.roundingsRemoved << " roundings";
    if (op.gemm)
      os << " gemm " << *op.gemm;
    if (op.blocking)
      os << " blocking " << *op.blocking;
    os << "\n";
  }
  for (const TensorPlan &tensor : part.tensors) {
    os << "    tensor " << tensor.tensor << " in " << tile::stringifySpace(tensor.space) << " for the "
       << tile::stringifyLifetime(tensor.lifetime);
    if (tensor.access != tile::Access::derived)
      os << ", access " << tile::stringifyAccess(tensor.access);
    for (const LayoutStep &step : tensor.layout)
      os << ", " << tile::stringifyLayoutKind(step.kind) << " " << list(step.arguments);
    os << "\n";
  }
  for (const LevelMovement &level : part.movement)
    os << "    moves " << format("%.6g", level.bytes) << "B past " << level.level << ", least "
       << format("%.6g", level.leastBytes) << "B\n";
}

void Plan::print(raw_ostream &os) const {
  os << "plan target " << target << " policy " << policy << " numerics " << stringify(numerics) << "\n";
  for (const KernelPlan &kernel : kernels) {
    os << "kernel " << kernel.name;
    for (const CostTerm &term : kernel.predicted)
      os << " " << term.name << "=" << format("%.6g", term.value)
         << (term.unit == tile::Unit::one ? "" : tile::stringifyUnit(term.unit));
    if (!kernel.bound.empty())
      os << " bound by " << kernel.bound;
    os << "\n";
    for (const GroupPlan &part : kernel.groups)
      printGroup(part, os);
    for (const ResidentTile &resident : kernel.residentTiles)
      os << "  blocks keep " << (resident.writerResult < 0 ? "input " : "result ")
         << (resident.writerResult < 0 ? resident.writerInput : resident.writerResult) << " of part " << resident.writer
         << ", " << resident.bytes << " bytes each, as input " << resident.readerInput << " of part " << resident.reader
         << "\n";
  }
  for (const EdgePlan &edge : edges) {
    os << "edge op" << edge.producer << "." << edge.result << " -> op" << edge.consumer << "." << edge.input << " "
       << tile::stringifyScope(edge.scope) << (edge.recompute ? " recompute" : "")
       << (edge.unrounded ? " unrounded" : "") << ": " << edge.reason;
    if (!edge.place.empty())
      os << "; lies in " << edge.place;
    if (!edge.wouldChange.empty())
      os << "; would change: " << edge.wouldChange;
    os << "\n";
  }
  for (const FormChoice &form : forms) {
    form.print(os);
    os << "\n";
  }
  for (const LoopPlan &loop : loops) {
    os << "loop " << loop.op << " of op" << loop.firstOp << " and the " << loop.ops - 1 << " after it";
    if (loop.steps >= 0)
      os << ", " << loop.steps << " steps";
    if (loop.oneKernel.value_or(false))
      os << ", in one kernel";
    else if (!loop.reason.empty())
      os << ", launched step by step: " << loop.reason;
    os << "\n";
  }
  for (const LeftOp &op : left)
    os << "left op" << op.id << " " << op.op << ": " << op.reason << "\n";
}
