// Finds chains of contractions in the tensor dependence graph (Chimera 4.1). The dims of the last contraction become
// loops. Its inputs are followed backwards, and the dims of each expression on the way are named by the loops that
// index its result. A dim that only a producer reduces is a loop of its own. A window (a convolution's h + r) becomes a
// sum of loops.
#include "passes/graph/OperatorChain.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

namespace {
constexpr int64_t kMostLoops = 6; ///< largest number of loops of which every order is tried

/// Returns `expr` as a sum of dims with positive strides, or nothing. Constants only shift a window and are dropped.
std::optional<ChainIndex> linearForm(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return ChainIndex{{dim.getPosition(), 1}};
  if (isa<AffineConstantExpr>(expr))
    return ChainIndex{};
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<ChainIndex> left = linearForm(binary.getLHS());
  if (!left)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Mul) {
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!factor || factor.getValue() <= 0)
      return std::nullopt;
    for (ChainTerm &term : *left)
      term.stride *= factor.getValue();
    return left;
  }
  if (expr.getKind() != AffineExprKind::Add)
    return std::nullopt;
  std::optional<ChainIndex> right = linearForm(binary.getRHS());
  if (!right)
    return std::nullopt;
  llvm::append_range(*left, *right);
  return left;
}

/// A dim that is split into blocks in a packed tensor has a block number and an offset in the block. Together they are
/// as long as the dim, so the block number becomes the dim and the offset zero.
AffineExpr withoutBlocks(AffineExpr index) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (binary && index.getKind() == AffineExprKind::FloorDiv)
    return binary.getLHS();
  return binary && index.getKind() == AffineExprKind::Mod ? getAffineConstantExpr(0, index.getContext()) : index;
}

class ChainBuilder {
public:
  ChainBuilder(const TensorGraph &graph, ArrayRef<unsigned> members) : graph(graph), members(members) {}

  /// Builds the chain of the members (in program order, ending with a contraction), or returns why there is none.
  std::optional<OperatorChain> build(std::string &reason) {
    for (unsigned id : llvm::reverse(members))
      if (!nameDims(id, reason))
        return std::nullopt;
    for (unsigned id : members)
      if (isContraction(id))
        addOp(id);
    renameLoops();
    auto isPermuted = [&](unsigned loop) { return !chain.isBatch(loop) && !chain.isWindow(loop); };
    if (auto permuted = llvm::count_if(llvm::seq<unsigned>(0, chain.loops.size()), isPermuted); permuted > kMostLoops) {
      reason = "its " + std::to_string(permuted) + " loops have too many orders";
      return std::nullopt;
    }
    return std::move(chain);
  }

private:
  bool isContraction(unsigned id) const { return graph.exprs()[id].kind == ExprKind::contraction; }
  std::string nameOf(unsigned id) const { return "op" + std::to_string(id); }

  ChainIndex newLoop(unsigned id, unsigned dim) {
    chain.loops.push_back(
        {std::to_string(id) + "." + std::to_string(dim), graph.exprs()[id].domain[dim], false, id, dim});
    origin.push_back(id);
    alias.push_back(alias.size());
    return {{static_cast<unsigned>(alias.back()), 1}};
  }

  /// Names the dims of an expression by the loops with which its readers in the chain index its result.
  bool nameDims(unsigned id, std::string &reason) {
    const TensorExpr &expr = graph.exprs()[id];
    std::vector<std::optional<ChainIndex>> dims(expr.domain.size());
    for (unsigned number : graph.outEdges(id)) {
      const TensorEdge &edge = graph.edges()[number];
      auto reader = forms.find(edge.consumer);
      if (reader == forms.end())
        continue;
      const TensorAccess &access = graph.exprs()[edge.consumer].inputs[edge.input];
      for (auto [index, own] : llvm::zip(access.map.getResults(), expr.results[edge.result].getResults())) {
        auto dim = dyn_cast<AffineDimExpr>(own);
        if (!dim || expr.domain[dim.getPosition()] == 1)
          continue;
        std::optional<ChainIndex> form = indexForm(index, reader->second);
        if (!form || form->empty() || !agree(dims[dim.getPosition()], *form)) {
          reason = nameOf(edge.consumer) + " reads it across the loops that they would share";
          return false;
        }
      }
    }
    std::vector<ChainIndex> &placed = forms[id];
    for (auto [dim, form] : llvm::enumerate(dims)) {
      bool isPoint = expr.domain[dim] == 1;
      placed.push_back(form ? *form : isPoint ? ChainIndex{} : newLoop(id, dim));
    }
    return true;
  }

  std::optional<ChainIndex> indexForm(AffineExpr index, ArrayRef<ChainIndex> dims) const {
    std::optional<ChainIndex> linear = linearForm(index);
    if (!linear)
      return std::nullopt;
    ChainIndex form;
    for (const ChainTerm &dim : *linear)
      for (const ChainTerm &term : dims[dim.loop])
        form.push_back({term.loop, term.stride * dim.stride});
    return form;
  }

  ChainIndex resolved(ChainIndex form) const {
    for (ChainTerm &term : form)
      while (alias[term.loop] != term.loop)
        term.loop = alias[term.loop];
    return form;
  }

  /// Returns true if two readers index it alike. The loop of a reduction between contractions is merged with the loop
  /// it reduces.
  bool agree(std::optional<ChainIndex> &known, const ChainIndex &form) {
    if (!known) {
      known = form;
      return true;
    }
    ChainIndex a = resolved(*known), b = resolved(form);
    if (a == b)
      return true;
    if (a.size() != 1 || b.size() != 1 || a[0].stride != b[0].stride ||
        chain.loops[a[0].loop].extent != chain.loops[b[0].loop].extent)
      return false;
    auto between = [&](unsigned loop) { return !isContraction(origin[loop]); };
    unsigned own = a[0].loop, other = b[0].loop;
    if (!between(own) && !between(other))
      return false;
    unsigned dropped = between(other) ? other : own, kept = between(other) ? own : other;
    alias[dropped] = kept;
    chain.loops[kept].whole = true;
    known = resolved(*known);
    return true;
  }

  void addOp(unsigned id) {
    const TensorExpr &expr = graph.exprs()[id];
    ChainOp op{nameOf(id), {}, {}, id};
    llvm::SetVector<unsigned> loops;
    for (const ChainIndex &form : forms[id])
      for (const ChainTerm &term : resolved(form))
        loops.insert(term.loop);
    op.loops.assign(loops.begin(), loops.end());
    for (const TensorAccess &access : expr.inputs)
      op.tensors.push_back(tensorOf(access.tensor, access.map, id));
    // Expressions between two contractions read their other operands together with the later one.
    for (unsigned other : pendingBefore(id))
      for (const TensorAccess &access : graph.exprs()[other].inputs)
        if (int64_t producer = producerOf(access.tensor); producer < 0)
          op.tensors.push_back(tensorOf(access.tensor, access.map, other));
    op.tensors.push_back(resultOf(id));
    chain.ops.push_back(std::move(op));
  }

  SmallVector<unsigned> pendingBefore(unsigned id) {
    SmallVector<unsigned> between;
    for (unsigned other : members)
      if (other < id && !isContraction(other) && taken.insert(other).second)
        between.push_back(other);
    return between;
  }

  int64_t producerOf(Value tensor) const {
    Operation *op = tensor.getDefiningOp();
    int64_t id = op ? graph.indexOf(op) : -1;
    return id >= 0 && llvm::is_contained(members, static_cast<unsigned>(id)) ? id : -1;
  }

  /// Follows a tensor of the chain back to the contraction whose result reaches it.
  unsigned sourceOf(unsigned id) const {
    while (!isContraction(id))
      for (const TensorAccess &access : graph.exprs()[id].inputs)
        if (int64_t producer = producerOf(access.tensor); producer >= 0) {
          id = producer;
          break;
        }
    return id;
  }

  unsigned tensorOf(Value value, AffineMap map, unsigned reader) {
    if (int64_t producer = producerOf(value); producer >= 0)
      return resultOf(sourceOf(producer));
    std::vector<ChainIndex> dims;
    for (AffineExpr index : map.getResults())
      if (std::optional<ChainIndex> form = indexForm(withoutBlocks(index), forms[reader]); form && !form->empty())
        dims.push_back(resolved(*form));
    return addTensor("in" + std::to_string(chain.tensors.size()), std::move(dims), value);
  }

  unsigned resultOf(unsigned id) {
    auto [known, isNew] = results.try_emplace(id, chain.tensors.size());
    if (!isNew)
      return known->second;
    const TensorExpr &expr = graph.exprs()[id];
    std::vector<ChainIndex> dims;
    for (AffineExpr index : expr.results[0].getResults())
      if (std::optional<ChainIndex> form = indexForm(index, forms[id]); form && !form->empty())
        dims.push_back(resolved(*form));
    unsigned tensor = addTensor("of_" + nameOf(id), std::move(dims), expr.op->getResult(0));
    chain.tensors[tensor].isIO = id == members.back();
    chain.tensors[tensor].crossings = 2;
    return tensor;
  }

  unsigned addTensor(std::string name, std::vector<ChainIndex> dims, Value value) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    chain.tensors.push_back({std::move(name), std::move(dims), tile::elementBytes(element), true, 1});
    return chain.tensors.size() - 1;
  }

  /// Removes the loops that were merged with others.
  void renameLoops() {
    std::vector<unsigned> newIndex(chain.loops.size());
    std::vector<ChainLoop> kept;
    for (unsigned loop = 0; loop < chain.loops.size(); ++loop)
      if (alias[loop] == loop) {
        newIndex[loop] = kept.size();
        kept.push_back(chain.loops[loop]);
      }
    chain.loops = std::move(kept);
    for (ChainTensor &tensor : chain.tensors)
      for (ChainIndex &index : tensor.dims)
        for (ChainTerm &term : index)
          term.loop = newIndex[term.loop];
    for (ChainOp &op : chain.ops)
      for (unsigned &loop : op.loops)
        loop = newIndex[loop];
  }

  const TensorGraph &graph;
  ArrayRef<unsigned> members;
  OperatorChain chain;
  llvm::DenseMap<unsigned, std::vector<ChainIndex>> forms; ///< dims of the expressions placed so far
  /// By loop: the expression that introduced it, and the loop it is merged with.
  std::vector<unsigned> origin, alias;
  llvm::MapVector<unsigned, unsigned> results;
  llvm::DenseSet<unsigned> taken;
};

/// Returns why members are no chain: the results of all but the last may be read by `readers` only.
std::string whyLeaves(const TensorGraph &graph, ArrayRef<unsigned> members, ArrayRef<unsigned> readers) {
  for (unsigned id : members) {
    if (id == members.back())
      continue;
    bool inside = llvm::all_of(
        graph.outEdges(id), [&](unsigned edge) { return llvm::is_contained(readers, graph.edges()[edge].consumer); });
    if (!inside || graph.escapes(id))
      return "the result of op" + std::to_string(id) + " is also read elsewhere";
  }
  return "";
}

class ChainFinder {
public:
  explicit ChainFinder(const TensorGraph &graph) : graph(graph), used(graph.exprs().size()) {}

  std::vector<FoundChain> find() {
    for (unsigned id = graph.exprs().size(); id-- > 0;)
      if (graph.exprs()[id].kind == ExprKind::contraction && !used[id])
        grow(id);
    std::reverse(found.begin(), found.end());
    return std::move(found);
  }

private:
  /// Adds the contractions that feed the chain, step by step, as long as all of them form one chain.
  void grow(unsigned last) {
    SmallVector<unsigned> members{last};
    FoundChain result{last, {}, ""};
    for (;;) {
      SmallVector<unsigned> larger = withProducers(members);
      if (larger.size() == members.size())
        break;
      std::string reason = whyLeaves(graph, larger, larger);
      std::optional<OperatorChain> chain;
      if (reason.empty())
        chain = ChainBuilder(graph, larger).build(reason);
      if (!chain) {
        if (result.chain.ops.empty())
          result.declined = reason;
        break;
      }
      result.chain = std::move(*chain);
      members = std::move(larger);
    }
    for (unsigned member : members)
      used[member] = true;
    if (!result.chain.ops.empty() || !result.declined.empty())
      found.push_back(std::move(result));
  }

  /// Returns the members, the nearest contractions before them, and the expressions in between.
  SmallVector<unsigned> withProducers(ArrayRef<unsigned> members) const {
    llvm::SetVector<unsigned> reached; // backwards from the members, up to contractions
    SmallVector<unsigned> open(members);
    while (!open.empty()) {
      unsigned id = open.pop_back_val();
      for (unsigned edge : graph.inEdges(id)) {
        unsigned producer = graph.edges()[edge].producer;
        if (llvm::is_contained(members, producer) || used[producer] || !reached.insert(producer))
          continue;
        if (graph.exprs()[producer].kind != ExprKind::contraction)
          open.push_back(producer);
      }
    }
    SmallVector<unsigned> result(members);
    auto isNewContraction = [&](unsigned id) { return graph.exprs()[id].kind == ExprKind::contraction; };
    for (unsigned id : reached)
      if (isNewContraction(id) || llvm::any_of(reached, [&](unsigned source) {
            return isNewContraction(source) && graph.dependsOn(id, source);
          }))
        result.push_back(id);
    llvm::sort(result);
    return result;
  }

  const TensorGraph &graph;
  std::vector<bool> used;
  std::vector<FoundChain> found;
};
} // namespace

std::vector<FoundChain> tilewright::findChains(const TensorGraph &graph) { return ChainFinder(graph).find(); }

std::optional<OperatorChain> tilewright::chainAmong(const TensorGraph &graph, ArrayRef<unsigned> exprs,
                                                    std::string &reason) {
  auto contracts = [&](unsigned id) { return graph.exprs()[id].kind == ExprKind::contraction; };
  auto last = llvm::find_if(llvm::reverse(exprs), contracts);
  if (last == llvm::reverse(exprs).end()) {
    reason = "it has no contraction";
    return std::nullopt;
  }
  auto follows = [&](unsigned id) {
    return llvm::any_of(
        exprs, [&](unsigned source) { return source < id && contracts(source) && graph.dependsOn(id, source); });
  };
  SmallVector<unsigned> members;
  for (unsigned id : exprs)
    if (contracts(id) || (id < *last && graph.dependsOn(*last, id) && follows(id)))
      members.push_back(id);
  // Expressions after the last member may read the ones in between, as a division by the sums of a softmax does.
  reason = whyLeaves(graph, members, exprs);
  return reason.empty() ? ChainBuilder(graph, members).build(reason) : std::nullopt;
}
