// Finds the roots of a fusion group and the tensors that each of them reads. It follows thread edges up to the next
// root or input and composes maps and guards along the way.
#include "passes/plan/space/IterationSpace.h"

#include "mlir/IR/Matchers.h"
#include "passes/support/AffineAlgebra.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

AffineMap tilewright::overSpace(AffineMap map, ArrayRef<int64_t> places, unsigned spaceDims) {
  MLIRContext *context = map.getContext();
  SmallVector<AffineExpr> dims;
  for (int64_t place : places)
    dims.push_back(place < 0 ? getAffineConstantExpr(0, context) : getAffineDimExpr(place, context));
  return map.replaceDimsAndSymbols(dims, {}, spaceDims, 0);
}

int64_t tilewright::tensorBytes(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return type.getNumElements() * tile::elementBytes(type.getElementType());
}

/// Returns true for a constant whose elements are all equal, which raising turns into a scalar.
static bool isSplatConstant(Value tensor) { return constantElement(tensor) && matchPattern(tensor, m_Constant()); }

std::vector<Value> tilewright::groupInputs(const TensorGraph &graph, const GroupChoice &group) {
  llvm::SetVector<Value, std::vector<Value>> inputs;
  for (unsigned expr : group.exprs)
    for (const TensorAccess &access : graph.exprs()[expr].inputs) {
      Operation *definition = access.tensor.getDefiningOp();
      int64_t producer = definition ? graph.indexOf(definition) : -1;
      bool inside = producer >= 0 && group.contains(producer);
      if (!inside && !(isSplatConstant(access.tensor) && access.guard == IntegerSet() && !access.gathered))
        inputs.insert(access.tensor);
    }
  return inputs.takeVector();
}

std::vector<Value> tilewright::groupOutputs(const TensorGraph &graph, const GroupChoice &group) {
  std::vector<Value> outputs;
  for (unsigned expr : group.exprs)
    for (Value result : graph.exprs()[expr].op->getResults())
      if (leavesGroup(graph, group, result) || (result.use_empty() && !graph.exprs()[expr].oneReliesOnOne()))
        outputs.push_back(result);
  return outputs;
}

bool tilewright::hasPlace(const TensorExpr &expr, unsigned dim) {
  if (expr.domain[dim] > 1)
    return true;
  return !expr.reductions.empty() && expr.reductions.front() == static_cast<int64_t>(dim) &&
         llvm::all_of(expr.reductions, [&](int64_t reduced) { return expr.domain[reduced] == 1; });
}

bool tilewright::isRoot(const TensorGraph &graph, const GroupChoice &group, unsigned expr) {
  const TensorExpr &tensorExpr = graph.exprs()[expr];
  if (!tensorExpr.oneReliesOnOne())
    return true;
  if (llvm::any_of(graph.outEdges(expr), [&](unsigned edge) {
        auto scope = group.scopes.find(edge);
        return scope != group.scopes.end() && scope->second != tile::Scope::thread;
      }))
    return true;
  return llvm::any_of(tensorExpr.op->getResults(), [&](Value value) { return leavesGroup(graph, group, value); });
}

//===----------------------------------------------------------------------===//
// Accesses of roots
//===----------------------------------------------------------------------===//

namespace {
/// Follows thread edges up from one root. It visits each distinct combination of expression, index and guard once.
class Collector {
public:
  Collector(const TensorGraph &graph, const GroupChoice &group, unsigned root)
      : graph(graph), group(group), domain(graph.exprs()[root].domain) {
    result.expr = root;
    MLIRContext *context = graph.exprs()[root].op->getContext();
    visit(root, AffineMap::getMultiDimIdentityMap(domain.size(), context), IntegerSet());
  }
  GroupRoot result;

private:
  struct Visit {
    unsigned expr;
    AffineMap index;
    IntegerSet guard;
    bool operator==(const Visit &other) const {
      return expr == other.expr && index == other.index && guard == other.guard;
    }
  };

  void visit(unsigned expr, AffineMap index, IntegerSet guard) {
    Visit current{expr, index, guard};
    if (llvm::is_contained(visited, current))
      return;
    visited.push_back(current);
    result.evaluated.push_back({expr, index});
    for (auto [input, access] : llvm::enumerate(graph.exprs()[expr].inputs))
      follow(expr, input, access, index, guard);
  }

  void follow(unsigned expr, unsigned input, const TensorAccess &access, AffineMap index, IntegerSet outer) {
    IntegerSet guard = conjoin(outer, composeInDomain(access.guard, index, domain), domain);
    if (guard && guard.isEmptyIntegerSet())
      return;
    // Splat constants become scalars of the body.
    if (access.guard == IntegerSet() && isSplatConstant(access.tensor) && !access.gathered)
      return;
    AffineMap map = composeInDomain(access.map, index, guardedRanges(guard, domain));
    for (unsigned edge : graph.inEdges(expr)) {
      const TensorEdge &entry = graph.edges()[edge];
      auto scope = group.scopes.find(edge);
      if (entry.input != input || scope == group.scopes.end())
        continue;
      if (scope->second == tile::Scope::thread)
        return visit(entry.producer, producerIndex(entry, map), guard);
      return addLeaf({access.tensor, map, guard, entry.producer, entry.result});
    }
    addLeaf({access.tensor, map, guard, -1, 0, access.gathered});
  }

  /// Returns the producer's index as a function of the root's domain. Dims that the producer's result does not use have
  /// one point.
  AffineMap producerIndex(const TensorEdge &edge, AffineMap access) {
    const TensorExpr &producer = graph.exprs()[edge.producer];
    SmallVector<AffineExpr> indices(producer.domain.size(), getAffineConstantExpr(0, access.getContext()));
    for (auto [position, expr] : llvm::enumerate(producer.results[edge.result].getResults()))
      if (int64_t dim = pureDim(expr); dim >= 0)
        indices[dim] = access.getResult(position);
    return AffineMap::get(domain.size(), 0, indices, access.getContext());
  }

  void addLeaf(const RootAccess &leaf) {
    if (llvm::none_of(result.accesses, [&](const RootAccess &known) {
          return known.tensor == leaf.tensor && known.map == leaf.map && known.guard == leaf.guard &&
                 known.gathered == leaf.gathered;
        }))
      result.accesses.push_back(leaf);
  }

  const TensorGraph &graph;
  const GroupChoice &group;
  ArrayRef<int64_t> domain;
  SmallVector<Visit> visited;
};
} // namespace

std::vector<GroupRoot> tilewright::collectRoots(const TensorGraph &graph, const GroupChoice &group) {
  std::vector<GroupRoot> roots;
  for (unsigned expr : group.exprs)
    if (isRoot(graph, group, expr))
      roots.push_back(Collector(graph, group, expr).result);
  return roots;
}

std::optional<ContractionRoles> tilewright::rolesOf(const TensorGraph &graph, const GroupRoot &root) {
  if (root.accesses.size() != 2 || root.accesses[0].gathered || root.accesses[1].gathered)
    return std::nullopt;
  return contractionRoles(graph.exprs()[root.expr], root.accesses[0].map, root.accesses[1].map);
}
