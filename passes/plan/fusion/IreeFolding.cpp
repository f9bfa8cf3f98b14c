// Predicts which ops IREE alone would not run as dispatches: those that it folds into contractions, and those that it
// computes at load.
#include "passes/graph/Eligibility.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Ops that IREE folds into its contractions
//===----------------------------------------------------------------------===//

// Measured with iree-compile 3.13.0, llvm-cpu, --compile-to=flow, on some fifty small graphs; data tiling made no
// difference. First IREE fuses elementwise ops with each other: an op joins the first reader of its result, which must
// not depend on it in another way as well. Then a matmul, batch matmul or convolution takes the one fused op that reads
// it, if nothing else does:
//   matmul -> relu                               one dispatch   (so for bias, GELU, SwiGLU, residuals, bias + residual)
//   matmul -> relu -> {return, exp}              one dispatch   (two results)
//   matmul -> relu -> {exp, tanh}                relu and exp in the matmul's dispatch, tanh alone
//   matmul -> {relu, exp}, {relu, sum}           matmul alone   (two readers)
//   matmul -> relu -> {sum, add of the sum}      relu in the matmul's dispatch
//   matmul -> sum                                matmul alone
//   matmul -> relu -> transpose                  one dispatch   (so for broadcasts and collapsing reshapes)
//   matmul -> slice -> relu                      matmul alone
//   matmul -> bias -> expand, expand -> relu     one dispatch   (the fused op is collapsed again)
//   matmul -> bias -> expand -> transpose        matmul alone   (the expansion moves up to the matmul's result, and
//   matmul -> expand -> add of [heads, 1]                        what follows does not collapse)
//   conv -> bias -> relu -> pad -> conv          pad in the first conv's dispatch
//   tanh -> add with matmul                      one dispatch   (a producer that only the fused op reads)
// On the operand side only movement folds: reshapes, broadcasts, and a transpose of the two innermost dims that the
// contraction reads directly (it becomes a matmul_transpose); other transposes, and relu -> matmul, are two dispatches.
namespace {
class ContractionFolder {
public:
  ContractionFolder(const TensorGraph &graph, const std::vector<bool> &isIrees)
      : graph(graph), isIrees(isIrees), folded(graph.exprs().size(), -1) {
    for (unsigned expr = 0; expr < graph.exprs().size(); ++expr)
      if (isContraction(expr))
        foldConsumers(expr);
    for (unsigned expr = graph.exprs().size(); expr-- > 0;)
      foldOperandMovement(expr);
  }
  const TensorGraph &graph;
  const std::vector<bool> &isIrees;
  std::vector<int64_t> folded;

private:
  using Cluster = SmallVector<unsigned>;

  bool isContraction(unsigned expr) const { return isIrees[expr]; }

  void foldConsumers(unsigned contraction) {
    Cluster cluster = {contraction};
    bool split = false;
    for (unsigned expr = contraction + 1; expr < graph.exprs().size(); ++expr) {
      if (folded[expr] >= 0)
        continue;
      size_t before = cluster.size();
      absorbProducers(expr, cluster);
      if (!joins(expr, cluster)) {
        cluster.truncate(before);
        continue;
      }
      split |= splitsDims(graph.exprs()[expr]);
      // The expansion would separate the contraction from the rest.
      if (split && !collapses(graph.exprs()[expr]))
        return;
      cluster.push_back(expr);
    }
    if (graph.escapes(contraction) || readersOutside(contraction, cluster))
      return;
    for (unsigned expr : ArrayRef(cluster).drop_front())
      folded[expr] = contraction;
    foldProducers(cluster);
  }

  bool readersOutside(unsigned expr, const Cluster &cluster) const {
    return llvm::any_of(graph.outEdges(expr),
                        [&](unsigned edge) { return !llvm::is_contained(cluster, graph.edges()[edge].consumer); });
  }

  /// Adds producers of `expr` to the cluster that read the cluster a second time and that only `expr` reads, such as
  /// x * 0.5 in the tanh form of gelu.
  void absorbProducers(unsigned expr, Cluster &cluster) const {
    for (unsigned edge : graph.inEdges(expr)) {
      unsigned producer = graph.edges()[edge].producer;
      if (llvm::is_contained(cluster, producer) || folded[producer] >= 0 || graph.escapes(producer) ||
          !graph.exprs()[producer].oneReliesOnOne())
        continue;
      bool onlyHere =
          llvm::all_of(graph.outEdges(producer), [&](unsigned out) { return graph.edges()[out].consumer == expr; });
      bool readsCluster = false, waits = false;
      for (unsigned in : graph.inEdges(producer)) {
        const TensorEdge &entry = graph.edges()[in];
        if (llvm::is_contained(cluster, entry.producer))
          readsCluster |= readsByPermutation(graph.exprs()[producer], entry.input);
        else
          waits |= llvm::any_of(cluster, [&](unsigned member) { return graph.dependsOn(entry.producer, member); });
      }
      if (onlyHere && readsCluster && !waits)
        cluster.push_back(producer);
    }
  }

  /// Returns true if IREE fuses the expression into the cluster.
  bool joins(unsigned expr, const Cluster &cluster) const {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    if (!tensorExpr.oneReliesOnOne() || (addsTensor(expr, cluster) && feedsReduction(expr)))
      return false;
    bool first = false;
    for (unsigned edge : graph.inEdges(expr)) {
      const TensorEdge &entry = graph.edges()[edge];
      if (llvm::is_contained(cluster, entry.producer)) {
        if (!isView(tensorExpr) && !isa<tensor::PadOp>(tensorExpr.op) && !readsByPermutation(tensorExpr, entry.input))
          return false;
        first |= firstReader(entry.producer) == expr;
      } else if (llvm::any_of(cluster, [&](unsigned member) { return graph.dependsOn(entry.producer, member); })) {
        return false;
      }
    }
    return first;
  }

  /// Returns true if the expression also reads a computed tensor of its own size outside the cluster, as a residual
  /// connection does. Measured with data tiling: to fold it, IREE first packs that tensor into the contraction's
  /// layout, in a separate dispatch. A norm that reads the sum can read both summands instead.
  bool addsTensor(unsigned expr, const Cluster &cluster) const {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    return llvm::any_of(tensorExpr.inputs, [&](const TensorAccess &access) {
      Operation *definition = access.tensor.getDefiningOp();
      int64_t producer = definition ? graph.indexOf(definition) : -1;
      bool inside = producer >= 0 && llvm::is_contained(cluster, static_cast<unsigned>(producer));
      bool constant = definition && definition->hasTrait<OpTrait::ConstantLike>();
      auto type = cast<RankedTensorType>(access.tensor.getType());
      return !inside && !constant && type.getNumElements() > 1 && type.getNumElements() == tensorExpr.domainSize();
    });
  }

  bool feedsReduction(unsigned expr) const {
    return llvm::any_of(graph.outEdges(expr), [&](unsigned edge) {
      unsigned consumer = graph.edges()[edge].consumer;
      const TensorExpr &reader = graph.exprs()[consumer];
      return reader.kind == ExprKind::reduction || (isView(reader) && feedsReduction(consumer));
    });
  }

  bool readsByPermutation(const TensorExpr &expr, unsigned input) const {
    const TensorAccess &access = expr.inputs[input];
    return access.guard == IntegerSet() && access.map.isProjectedPermutation(/*allowZeroInResults=*/true);
  }

  unsigned firstReader(unsigned expr) const {
    unsigned first = graph.exprs().size();
    for (unsigned edge : graph.outEdges(expr))
      first = std::min(first, graph.edges()[edge].consumer);
    return first;
  }

  /// Returns true for an expanding reshape that splits a dim into several dims of more than one point.
  static bool splitsDims(const TensorExpr &expr) {
    auto expand = dyn_cast<tensor::ExpandShapeOp>(expr.op);
    if (!expand)
      return false;
    return llvm::any_of(expand.getReassociationIndices(), [&](const ReassociationIndices &dims) {
      return llvm::count_if(dims, [&](int64_t dim) { return expand.getResultType().getDimSize(dim) > 1; }) > 1;
    });
  }

  /// Returns true if the op computes the same on flattened tensors.
  static bool collapses(const TensorExpr &expr) {
    if (isView(expr))
      return true;
    return llvm::all_of(expr.results, [](AffineMap map) { return map.isIdentity(); }) &&
           llvm::all_of(expr.inputs, [](const TensorAccess &access) {
             return access.guard == IntegerSet() && (access.map.isIdentity() || access.map.getNumResults() == 0);
           });
  }

  /// Folds elementwise producers that only folded ops read.
  void foldProducers(const Cluster &cluster) {
    for (unsigned expr = cluster.back(); expr-- > 0;) {
      const TensorExpr &tensorExpr = graph.exprs()[expr];
      if (folded[expr] >= 0 || !tensorExpr.oneReliesOnOne() || graph.escapes(expr) || graph.outEdges(expr).empty())
        continue;
      bool onlyHere = llvm::all_of(graph.outEdges(expr), [&](unsigned edge) {
        return folded[graph.edges()[edge].consumer] == static_cast<int64_t>(cluster.front());
      });
      if (onlyHere)
        folded[expr] = cluster.front();
    }
  }

  /// Returns true if the op reads its input's dims in order and repeats elements along other dims.
  static bool isBroadcast(const TensorExpr &expr) {
    AffineMap map = expr.inputs[0].map;
    if (expr.inputs[0].guard != IntegerSet() || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return false;
    int64_t last = -1;
    for (AffineExpr result : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(result)) {
        if (static_cast<int64_t>(dim.getPosition()) < last)
          return false;
        last = dim.getPosition();
      }
    return llvm::all_of(expr.results, [](AffineMap result) { return result.isIdentity(); });
  }

  static bool isInnermostTranspose(const TensorExpr &expr) {
    unsigned rank = expr.domain.size();
    if (rank < 2 || expr.inputs[0].guard != IntegerSet() || !expr.results[0].isIdentity())
      return false;
    SmallVector<unsigned> swapped = llvm::to_vector(llvm::seq(0u, rank));
    std::swap(swapped[rank - 2], swapped[rank - 1]);
    return expr.inputs[0].map == AffineMap::getPermutationMap(swapped, expr.op->getContext());
  }

  /// Folds movement that only contractions read into their accesses.
  void foldOperandMovement(unsigned expr) {
    const TensorExpr &tensorExpr = graph.exprs()[expr];
    if (folded[expr] >= 0 || tensorExpr.kind != ExprKind::movement || tensorExpr.inputs.size() != 1 ||
        graph.escapes(expr) || graph.outEdges(expr).empty())
      return;
    bool transposes = isInnermostTranspose(tensorExpr);
    if (!isView(tensorExpr) && !isBroadcast(tensorExpr) && !transposes)
      return;
    int64_t into = -1;
    for (unsigned edge : graph.outEdges(expr)) {
      unsigned consumer = graph.edges()[edge].consumer;
      if (!isContraction(consumer) && (transposes || !operandMovement.contains(consumer)))
        return;
      into = isContraction(consumer) ? consumer : folded[consumer];
    }
    operandMovement.insert(expr);
    folded[expr] = into;
  }

  llvm::DenseSet<unsigned> operandMovement;
};
} // namespace

std::vector<int64_t> tilewright::foldsIntoContraction(const TensorGraph &graph, const std::vector<bool> &isIrees) {
  return ContractionFolder(graph, isIrees).folded;
}

//===----------------------------------------------------------------------===//
// Ops that IREE computes at load
//===----------------------------------------------------------------------===//

/// Returns an attribute, which unregistered ops may have among their properties.
static Attribute attributeOf(Operation *op, StringAttr name) {
  if (op->isRegistered())
    return op->getAttr(name);
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  Attribute found = properties ? properties.get(name) : Attribute();
  return found ? found : op->getDiscardableAttr(name);
}

static Attribute attributeOf(Operation *op, StringRef name) {
  return attributeOf(op, StringAttr::get(op->getContext(), name));
}

Operation *tilewright::globalOf(Operation *load) {
  auto name = dyn_cast_or_null<FlatSymbolRefAttr>(attributeOf(load, "global"));
  auto module = load->getParentOfType<ModuleOp>();
  if (!name || !module)
    return nullptr;
  // A module has a global for each weight, so the name of the attribute is looked up once.
  auto symbol = StringAttr::get(load->getContext(), "sym_name");
  auto found = llvm::find_if(module.getOps(),
                             [&](Operation &global) { return attributeOf(&global, symbol) == name.getAttr(); });
  return found == module.getOps().end() ? nullptr : &*found;
}

bool tilewright::isMutableGlobal(Operation *global) { return static_cast<bool>(attributeOf(global, "is_mutable")); }

/// Returns true for a constant, or a load of an immutable global.
static bool isLoadTimeValue(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op))
    return true;
  Operation *global = op->getName().getStringRef() == "util.global.load" ? globalOf(op) : nullptr;
  return global && !isMutableGlobal(global);
}

/// Returns true if an op outside the loop of a graph depends on constants and weights alone.
static bool isComputedAtLoad(Operation *op) {
  if (isLoadTimeValue(op))
    return true;
  return isMemoryEffectFree(op) && op->getNumOperands() > 0 &&
         isa_and_nonnull<linalg::LinalgDialect, tensor::TensorDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), [](Value operand) {
           return operand.getDefiningOp() && isComputedAtLoad(operand.getDefiningOp());
         });
}

bool tilewright::isKnownAtLoad(const TensorGraph &graph, const std::vector<bool> &atLoad, Value tensor) {
  Operation *definition = tensor.getDefiningOp();
  if (!definition)
    return false;
  int64_t producer = graph.indexOf(definition);
  if (producer >= 0)
    return atLoad[producer] || graph.exprs()[producer].inputs.empty();
  bool isOutside = !graph.exprs().empty() && definition->getBlock() != graph.exprs().front().op->getBlock();
  return isOutside ? isComputedAtLoad(definition) : isLoadTimeValue(definition);
}

/// Returns true if only ops that are computed at load read the expression.
static bool isReadAtLoad(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned expr) {
  ArrayRef<unsigned> readers = graph.outEdges(expr);
  return !readers.empty() && !graph.escapes(expr) &&
         llvm::all_of(readers, [&](unsigned edge) { return atLoad[graph.edges()[edge].consumer]; });
}

/// Returns true if a contraction reads a broadcast that repeats its source along batch dims alone, as weights of all
/// images of a batch: the contraction then reads the source in place.
static bool repeatsAlongBatch(const TensorExpr &broadcast, const TensorExpr &contraction, unsigned input) {
  AffineMap source = broadcast.inputs[0].map, read = contraction.inputs[input].map;
  if (!source.isProjectedPermutation() || !broadcast.results[0].isIdentity())
    return false;
  return llvm::all_of(llvm::enumerate(read.getResults()), [&](auto indexed) {
    auto [position, index] = indexed;
    auto dim = dyn_cast<AffineDimExpr>(index);
    bool isRepeated = !source.isFunctionOfDim(position);
    return !isRepeated || broadcast.domain[position] == 1 ||
           (dim && !llvm::is_contained(contraction.reductions, dim.getPosition()) &&
            llvm::any_of(contraction.inputs, [&](const TensorAccess &other) {
              return &other != &contraction.inputs[input] && other.map.isFunctionOfDim(dim.getPosition());
            }));
  });
}

/// Returns true for a broadcast whose readers, none of which is computed at load, read its source as easily.
static bool isReadAsBroadcast(const TensorGraph &graph, const std::vector<bool> &atLoad, unsigned index,
                              bool repeatsWeights) {
  const TensorExpr &expr = graph.exprs()[index];
  if (expr.kind != ExprKind::movement || expr.inputs.size() != 1 || expr.inputs[0].guard != IntegerSet() ||
      graph.escapes(index) || graph.outEdges(index).empty() ||
      expr.domainSize() <= cast<RankedTensorType>(expr.inputs[0].tensor.getType()).getNumElements())
    return false;
  return llvm::none_of(graph.outEdges(index), [&](unsigned edge) {
    const TensorEdge &read = graph.edges()[edge];
    const TensorExpr &reader = graph.exprs()[read.consumer];
    return atLoad[read.consumer] ||
           (reader.kind == ExprKind::contraction && (repeatsWeights || !repeatsAlongBatch(expr, reader, read.input)));
  });
}

std::vector<bool> tilewright::computedAtLoad(const TensorGraph &graph, bool repeatsWeights) {
  std::vector<bool> atLoad(graph.exprs().size());
  for (auto [index, expr] : llvm::enumerate(graph.exprs()))
    atLoad[index] = !expr.inputs.empty() && llvm::all_of(expr.inputs, [&](const TensorAccess &access) {
      return isKnownAtLoad(graph, atLoad, access.tensor);
    });
  // Tensors that are computed without inputs are cheaper to recompute where they are read.
  for (auto [index, expr] : llvm::enumerate(graph.exprs()))
    if (expr.inputs.empty())
      atLoad[index] = isReadAtLoad(graph, atLoad, index);
    else if (atLoad[index] && isReadAsBroadcast(graph, atLoad, index, repeatsWeights))
      atLoad[index] = false;
  return atLoad;
}
