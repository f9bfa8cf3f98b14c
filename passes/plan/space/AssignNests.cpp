#include "passes/plan/space/AssignNests.h"

#include "passes/graph/Form.h"
#include "passes/graph/OnlineSoftmax.h"

using namespace mlir;
using namespace tilewright;

namespace {
/// Assigns roots to loop nests. A root joins the first nest that runs late enough for its operands and has the same
/// dims and reductions, as lowering does (program/movement). Values pass between roots of one nest in registers.
class NestAssigner {
public:
  NestAssigner(const TensorGraph &graph, const GroupChoice &group, IterationSpace &space)
      : graph(graph), group(group), space(space) {}

  void assign() {
    for (GroupRoot &root : space.roots)
      place(root);
  }

private:
  struct Nest {
    SmallVector<int64_t> dims, reductions;
    bool contracts = false; ///< true for the nest of one contraction, whose loops are those of a register block
    int64_t running = -1;   ///< root whose running maximum others of the nest use while it is accumulated; -1: none
  };

  void place(GroupRoot &root) {
    bool contracts = graph.exprs()[root.expr].kind == ExprKind::contraction;
    SmallVector<int64_t> dims = placed(root), reductions;
    for (int64_t dim : graph.exprs()[root.expr].reductions)
      if (root.dims[dim] >= 0)
        reductions.push_back(root.dims[dim]);
    llvm::sort(reductions);
    unsigned first = 0;
    for (const RootAccess &access : root.accesses)
      if (access.producer >= 0) {
        const GroupRoot &producer = space.root(access.producer);
        bool shared = placed(producer) == dims &&
                      (readsSamePoint(root, access, producer) ? sharesReference(root, producer)
                                                              : takesReference(root, access, producer));
        first = std::max(first, producer.nest + (shared ? 0 : 1));
      }
    for (root.nest = first; root.nest < nests.size(); ++root.nest) {
      Nest &nest = nests[root.nest];
      if (contracts || nest.contracts || nest.dims != dims ||
          (!reductions.empty() && !nest.reductions.empty() && nest.reductions != reductions))
        continue;
      if (!reductions.empty())
        nest.reductions = reductions;
      if (root.reference >= 0 && space.root(root.reference).nest != root.nest)
        root.reference = -1; // the maximum is already complete
      if (root.reference >= 0)
        nest.running = root.reference;
      return;
    }
    root.reference = -1;
    nests.push_back({dims, reductions, contracts});
  }

  /// A value relative to a reference is passed on in a register, so its reader must use the same reference.
  bool sharesReference(GroupRoot &root, const GroupRoot &producer) {
    if (producer.reference < 0)
      return true;
    if (mayUseReference(root, producer.reference))
      root.reference = producer.reference;
    return root.reference == producer.reference;
  }

  /// Returns true if the root may read the producer's maximum while it is still being accumulated, and records it as
  /// the root's reference.
  bool takesReference(GroupRoot &root, const RootAccess &access, const GroupRoot &producer) {
    const TensorExpr &maximum = graph.exprs()[producer.expr];
    if (formOf(maximum) != tile::Form::onlineSoftmax || producer.dims[maximum.reductions.front()] != space.vector ||
        !readsOwnPlace(root, access, producer) || !mayUseReference(root, producer.expr))
      return false;
    if (int64_t running = nests[producer.nest].running; running >= 0 && running != producer.expr)
      return false;
    root.reference = producer.expr;
    return true;
  }

  /// A value stored relative to a reference is corrected by its readers, so it must not leave the group.
  bool mayUseReference(const GroupRoot &root, unsigned maximum) {
    auto [known, isNew] = relations.try_emplace(maximum);
    if (isNew)
      known->second = relateTo(graph.exprs(), maximum, [&](unsigned expr, unsigned input) -> int64_t {
        for (unsigned edge : graph.inEdges(expr))
          if (graph.edges()[edge].input == input && group.scopes.contains(edge))
            return graph.edges()[edge].producer;
        return -1;
      });
    Relation relation = known->second[root.expr];
    return relation == Relation::sum || (relation == Relation::proportional &&
                                         !leavesGroup(graph, group, graph.exprs()[root.expr].op->getResult(0)));
  }

  static SmallVector<int64_t> placed(const GroupRoot &root) {
    SmallVector<int64_t> dims = llvm::to_vector(llvm::make_filter_range(root.dims, [](int64_t at) { return at >= 0; }));
    llvm::sort(dims);
    return dims;
  }

  bool readsSamePoint(const GroupRoot &root, const RootAccess &access, const GroupRoot &producer) const {
    return graph.exprs()[producer.expr].oneReliesOnOne() && readsOwnPlace(root, access, producer);
  }

  /// Returns true if the root reads, at each point, what the producer computes at the same point of the space.
  bool readsOwnPlace(const GroupRoot &root, const RootAccess &access, const GroupRoot &producer) const {
    const TensorExpr &expr = graph.exprs()[producer.expr];
    if (access.guard != IntegerSet())
      return false;
    auto place = [](const GroupRoot &of, AffineExpr index) {
      int64_t dim = pureDim(index);
      return dim < 0 ? -1 : of.dims[dim];
    };
    return llvm::all_of(llvm::zip(access.map.getResults(), expr.results[access.result].getResults()), [&](auto pair) {
      auto [read, write] = pair;
      return place(root, read) == place(producer, write) && (pureDim(read) >= 0 || isa<AffineConstantExpr>(read));
    });
  }

  const TensorGraph &graph;
  const GroupChoice &group;
  IterationSpace &space;
  std::vector<Nest> nests;
  llvm::DenseMap<unsigned, SmallVector<Relation>> relations; ///< relation of every expression to a maximum
};
} // namespace

void tilewright::assignNests(const TensorGraph &graph, const GroupChoice &group, IterationSpace &space) {
  NestAssigner(graph, group, space).assign();
}
