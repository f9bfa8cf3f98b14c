#include "passes/plan/space/GroupSignature.h"

#include "passes/graph/Bindings.h"
#include "passes/target/MicroKernelChoices.h"

#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

/// Marks that separate the parts of a key. Addresses and counts are never negative.
enum Mark : int64_t { kExpression = -1, kRegion = -2, kCaptured = -3, kTarget = -4, kGathers = -5 };

template <typename T> static int64_t addressOf(T unique) {
  return unique ? reinterpret_cast<int64_t>(unique.getAsOpaquePointer()) : 0;
}

namespace {
/// Appends ops to a key, with their regions. Values are numbered in the order in which they appear.
class OpReader {
public:
  explicit OpReader(MemoKey &key) : key(key) {}

  void appendHead(Operation *op) {
    key.push_back(reinterpret_cast<int64_t>(op->getName().getAsOpaquePointer()));
    key.push_back(addressOf(op->getAttrDictionary()));
    if (!op->isRegistered())
      key.push_back(addressOf(op->getPropertiesAsAttribute()));
    key.push_back(op->getNumResults());
    for (Value result : op->getResults()) {
      key.push_back(addressOf(result.getType()));
      numbers.try_emplace(result, numbers.size());
    }
  }

  void appendRegions(Operation *op) {
    for (Region &region : op->getRegions()) {
      key.push_back(kRegion);
      for (Block &block : region) {
        key.push_back(block.getNumArguments());
        for (Value argument : block.getArguments()) {
          key.push_back(addressOf(argument.getType()));
          numbers.try_emplace(argument, numbers.size());
        }
        for (Operation &inner : block)
          append(&inner);
      }
    }
  }

private:
  void append(Operation *op) {
    appendHead(op);
    key.push_back(op->getNumOperands());
    for (Value operand : op->getOperands())
      appendUse(operand);
    appendRegions(op);
  }

  /// Appends a value that an op uses. Of a scalar from outside, such as a constant, all that computes it is appended.
  void appendUse(Value value) {
    auto [known, isNew] = numbers.try_emplace(value, numbers.size());
    key.push_back(known->second);
    if (!isNew)
      return;
    key.push_back(kCaptured);
    key.push_back(addressOf(value.getType()));
    if (Operation *definition = value.getDefiningOp(); definition && !isa<ShapedType>(value.getType()))
      append(definition);
  }

  MemoKey &key;
  llvm::DenseMap<Value, int64_t> numbers;
};
} // namespace

static void append(MemoKey &key, ArrayRef<int64_t> values) {
  key.push_back(values.size());
  key.append(values.begin(), values.end());
}

/// Returns everything about an expression except which tensors it reads.
static MemoKey keyOf(const TensorExpr &expr) {
  MemoKey key = {kExpression, static_cast<int64_t>(expr.kind)};
  append(key, expr.domain);
  append(key, expr.reductions);
  key.push_back(expr.inputs.size());
  for (const TensorAccess &access : expr.inputs)
    key.append({static_cast<int64_t>(access.operand), addressOf(access.map),
                reinterpret_cast<int64_t>(access.guard.getAsOpaquePointer())});
  for (AffineMap map : expr.results)
    key.push_back(addressOf(map));
  for (OpOperand &operand : expr.op->getOpOperands()) {
    auto isRead = [&](const TensorAccess &access) { return access.operand == operand.getOperandNumber(); };
    if (llvm::none_of(expr.inputs, isRead))
      key.append({addressOf(operand.get().getType()), addressOf(Attribute(constantElement(operand.get())))});
  }
  OpReader reader(key);
  reader.appendHead(expr.op);
  reader.appendRegions(expr.op);
  return key;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

GroupSignatures::GroupSignatures(const TensorGraph &graph, const Target &target, NumericsMode numerics,
                                 GroupMemo &memo)
    : graph(graph), memo(memo), target(target), numbers(graph.exprs().size(), -1) {
  // A micro kernel that is registered later may be chosen from then on.
  MemoKey key = {kTarget, static_cast<int64_t>(numMicroKernelRegistrations()), static_cast<int64_t>(numerics)};
  for (char letter : llvm::formatv("{0}", toJson(target)).str())
    key.push_back(letter);
  machine = memo.numberOf(key);
}

int64_t GroupSignatures::numberOf(unsigned expr) {
  if (numbers[expr] < 0)
    numbers[expr] = memo.numberOf(keyOf(graph.exprs()[expr]));
  return numbers[expr];
}

/// Appends what planning reads of a tensor from outside the group. Many groups have the same tensor, so it is kept.
void GroupSignatures::appendInput(MemoKey &key, Value tensor) {
  auto [known, isNew] = inputs.try_emplace(tensor);
  if (isNew) {
    std::optional<WeightGroup> weights = target.traits.sharesBindings ? weightGroupOf(tensor, target) : std::nullopt;
    known->second = {addressOf(tensor.getType()), addressOf(Attribute(constantElement(tensor))),
                     matchPattern(tensor, m_Constant()), weights ? 1 + weights->isConstant : 0};
  }
  key.append(known->second.begin(), known->second.end());
}

/// Appends how the results of an expression are used outside the group.
void GroupSignatures::appendUses(MemoKey &key, unsigned expr, ArrayRef<unsigned> exprs) const {
  GroupChoice group;
  group.exprs.assign(exprs.begin(), exprs.end());
  bool isRead = llvm::any_of(graph.outEdges(expr),
                             [&](unsigned edge) { return !group.contains(graph.edges()[edge].consumer); });
  key.push_back(2 * graph.escapes(expr) + isRead);
  for (Value result : graph.exprs()[expr].op->getResults())
    key.push_back(2 * leavesGroup(graph, group, result) + result.use_empty());
}

/// Appends which expressions depend on which contractions, possibly through ops outside the group.
void GroupSignatures::appendDependences(MemoKey &key, ArrayRef<unsigned> exprs) const {
  for (auto [number, expr] : llvm::enumerate(exprs))
    if (graph.exprs()[expr].kind == ExprKind::contraction)
      for (unsigned later : exprs.drop_front(number))
        key.push_back(graph.dependsOn(later, expr));
}

MemoKey GroupSignatures::of(ArrayRef<unsigned> exprs, GroupFrame &frame) {
  frame.exprs.assign(exprs.begin(), exprs.end());
  MemoKey key = {machine, static_cast<int64_t>(exprs.size())};
  llvm::SmallDenseMap<unsigned, int64_t, 16> position;
  for (auto [number, expr] : llvm::enumerate(exprs))
    position[expr] = number;
  for (unsigned expr : exprs) {
    key.push_back(numberOf(expr));
    ArrayRef<unsigned> edges = graph.inEdges(expr);
    for (auto [input, access] : llvm::enumerate(graph.exprs()[expr].inputs)) {
      auto isInput = [&, input = input](unsigned edge) { return graph.edges()[edge].input == input; };
      auto edge = llvm::find_if(edges, isInput);
      auto producer = edge == edges.end() ? position.end() : position.find(graph.edges()[*edge].producer);
      if (producer != position.end()) {
        frame.edges.push_back(*edge);
        key.append({producer->second, static_cast<int64_t>(graph.edges()[*edge].result)});
        continue;
      }
      if (graph.gathersFrom(expr, [&](unsigned other) { return position.contains(other); }) >= 0)
        key.push_back(kGathers);
      size_t number = llvm::find(frame.tensors, access.tensor) - frame.tensors.begin();
      key.append({-1, static_cast<int64_t>(number)});
      if (number < frame.tensors.size())
        continue;
      frame.tensors.push_back(access.tensor);
      appendInput(key, access.tensor);
    }
    appendUses(key, expr, exprs);
  }
  for (unsigned expr : exprs)
    for (Value result : graph.exprs()[expr].op->getResults())
      frame.tensors.push_back(result);
  appendDependences(key, exprs);
  return key;
}

//===----------------------------------------------------------------------===//
// Planned groups
//===----------------------------------------------------------------------===//

void tilewright::appendChoices(MemoKey &key, const GroupFrame &frame, const PlannedGroup &group) {
  auto bits = [](double value) { return llvm::bit_cast<int64_t>(value); };
  for (unsigned edge : frame.edges)
    key.push_back(static_cast<int64_t>(group.choice.scopes.find(edge)->second));
  const IterationSpace &space = group.space;
  append(key, space.tiles);
  append(key, space.grid);
  key.append({space.vector, space.lanes, space.rowsInLanes, space.workgroups, space.steps, space.threads, space.group,
              space.kSlices, static_cast<int64_t>(space.numerics), bits(space.latencySeconds), space.block.rows,
              space.block.vectors,
              bits(space.speed), reinterpret_cast<int64_t>(space.counted.getAsOpaquePointer()), bits(space.leastRows),
              space.rowsToCopy, space.cacheBytes, space.footprintBytes});
  const BlockWork &work = space.blockWork;
  key.append({work.blocks, work.threads, work.sharedBytes, work.registers, work.warpPrivate, bits(work.bytes),
              bits(work.movedBytes), work.accessBytes, work.mostResident, static_cast<int64_t>(work.nests.size())});
  for (const NestWork &nest : work.nests)
    key.append({bits(nest.turns), bits(nest.globalLoads), bits(nest.sharedLoads), bits(nest.globalPasses),
                bits(nest.sharedPasses), bits(nest.instructions), bits(nest.special), nest.combinedLanes,
                nest.combinedWarps, nest.accumulators});
}

namespace {
/// Exchanges the expressions, edges and tensors of one frame with those of another.
class Rebase {
public:
  Rebase(const GroupFrame &from, const GroupFrame &to) : from(from), to(to) {}

  template <typename Index> void expr(Index &index) const {
    if (index >= 0)
      index = to.exprs[llvm::find(from.exprs, static_cast<unsigned>(index)) - from.exprs.begin()];
  }
  unsigned edge(unsigned index) const { return to.edges[llvm::find(from.edges, index) - from.edges.begin()]; }
  /// Tensors of the frame `from` may be gone; only their addresses are compared.
  void tensor(Value &value) const { value = to.tensors[llvm::find(from.tensors, value) - from.tensors.begin()]; }
  void tensors(std::vector<Value> &values) const {
    for (Value &value : values)
      tensor(value);
  }

  void root(GroupRoot &root) const {
    expr(root.expr);
    expr(root.reference);
    for (RootAccess &access : root.accesses) {
      tensor(access.tensor);
      expr(access.producer);
    }
    for (Evaluation &evaluation : root.evaluated)
      expr(evaluation.expr);
  }

private:
  const GroupFrame &from, &to;
};
} // namespace

PlannedGroup tilewright::rebase(const PlannedGroup &group, const GroupFrame &from, const GroupFrame &to) {
  PlannedGroup moved = group;
  if (from.exprs == to.exprs && from.edges == to.edges && from.tensors == to.tensors)
    return moved;
  Rebase rebase(from, to);
  moved.choice.exprs = to.exprs;
  moved.choice.scopes.clear();
  for (auto [edge, scope] : group.choice.scopes)
    moved.choice.scopes[rebase.edge(edge)] = scope;
  moved.edges.clear();
  for (const auto &[edge, choice] : group.edges)
    moved.edges[rebase.edge(edge)] = choice;
  for (GroupRoot &root : moved.space.roots)
    rebase.root(root);
  for (std::vector<Value> *tensors : {&moved.space.inputs, &moved.space.outputs, &moved.space.tileStaged,
                                      &moved.space.workgroupStaged, &moved.space.streamed})
    rebase.tensors(*tensors);
  return moved;
}
