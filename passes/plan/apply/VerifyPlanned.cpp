// Verifies the planned graph at the end of planning. All assumptions of lowering are checked here on the IR alone, so
// that a hand-written planned graph fails with an error at the op instead of giving a wrong kernel.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/plan/space/WalkedDim.h"

#include "dialects/tile/TileDialect.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_VERIFYPLANNED
#include "passes/Passes.h.inc"

namespace {
class SubprogramVerifier {
public:
  explicit SubprogramVerifier(tile::SubprogramOp subprogram)
      : subprogram(subprogram), body(subprogram.getBody().front()) {}

  LogicalResult run() {
    for (auto connect : body.getOps<tile::ConnectOp>())
      if (failed(verifyConnect(connect)))
        return failure();
    for (auto expr : body.getOps<tile::ExprOp>())
      if (failed(verifyExpr(expr)))
        return failure();
    return verifyWalk();
  }

private:
  LogicalResult verifyWalk() {
    int64_t dim = walkedDim(subprogram.getExtents(), subprogram.getTiles(), subprogram.getGrid());
    bool composed = llvm::all_of(body.getOps<tile::ExprOp>(), [&](tile::ExprOp expr) { return isRoot(expr); });
    auto counted = subprogram->getAttrOfType<AffineMapAttr>(kCountedAttr);
    if (!composed || (dim < 0 && !counted))
      return success();
    Walk walk = dim < 0 ? Walk() : walkAlong(subprogram, dim);
    if (!walk.refused.empty())
      return subprogram.emitOpError("G6: dim ") << dim << " cannot be walked in blocks: " << walk.refused;
    if (counted && (!walk.mayEnd || !isEndOf(counted.getValue(), dim)))
      return subprogram.emitOpError("G7: blocks of a dim can be left out only where tiles walk it, nothing but "
                                    "exponentials relative to its maximum follows from them, and the other dims say "
                                    "where it ends");
    return success();
  }

  bool isEndOf(AffineMap end, int64_t dim) {
    return end.getNumDims() == subprogram.getExtents().size() && end.getNumSymbols() == 0 && end.getNumResults() == 1 &&
           !end.isFunctionOfDim(dim);
  }

  LogicalResult verifyConnect(tile::ConnectOp connect) {
    auto producer = connect.getValue().getDefiningOp<tile::ExprOp>();
    tile::Scope scope = connect.getScope();
    if (!producer)
      return connect.emitOpError("G1: an edge comes from a tile.expr of the subprogram");
    if (scope != tile::Scope::thread && scope != tile::Scope::block)
      return connect.emitOpError("G2: scope ")
             << tile::stringifyScope(scope) << " cannot be carried out yet; use thread or block";
    if (scope == tile::Scope::thread && producer.isReduction())
      return connect.emitOpError("G2: a reduction cannot be handed over at scope thread");
    return success();
  }

  LogicalResult verifyExpr(tile::ExprOp expr) {
    for (Value input : expr.getInputs())
      if (input.getDefiningOp<tile::ExprOp>())
        return expr.emitOpError("G1: an edge between two expressions needs a tile.connect");
    if (!isRoot(expr))
      return success();
    if (!expr.getDims())
      return expr.emitOpError("G3: a root needs dims: it is reduced, yielded, or read at scope block");
    return failed(verifyGrid(expr)) ? failure() : verifyLocal(expr, expr, {});
  }

  bool isRoot(tile::ExprOp expr) {
    return expr.isReduction() || llvm::any_of(expr->getUsers(), [](Operation *user) {
             auto connect = dyn_cast<tile::ConnectOp>(user);
             return isa<tile::YieldOp>(user) || (connect && connect.getScope() != tile::Scope::thread);
           });
  }

  /// Returns true for a root that reduces nothing and that only expressions of the subprogram read. Tiles along grid
  /// dims that it lacks keep its values or recompute them; a yielded value would be written by all of them.
  static bool mayLackGridDims(tile::ExprOp root) {
    return !root.isReduction() && llvm::none_of(root->getUsers(), llvm::IsaPred<tile::YieldOp>);
  }

  /// Returns true if blocks of a GPU can exchange their parts of a reduction: each has one tile, and only expressions
  /// of the subprogram read the result.
  bool mayShareRows(tile::ExprOp root) {
    if (llvm::any_of(root->getUsers(), llvm::IsaPred<tile::YieldOp>))
      return false;
    int64_t tiles = 1;
    for (int64_t dim : subprogram.getGrid())
      tiles *= llvm::divideCeil(subprogram.getExtents()[dim], subprogram.getTiles()[dim]);
    return subprogram->hasAttr(kThreadsAttr) && tiles == static_cast<int64_t>(subprogram.getWorkgroups());
  }

  LogicalResult verifyGrid(tile::ExprOp root) {
    ArrayRef<int64_t> dims = *root.getDims();
    for (int64_t place : subprogram.getGrid()) {
      auto own = llvm::find(dims, place);
      if (own == dims.end() && !mayLackGridDims(root))
        return root.emitOpError("G4: lacks grid dim ") << place;
      if (own != dims.end() && llvm::is_contained(root.getReductions(), own - dims.begin()) && !mayShareRows(root))
        return root.emitOpError("G4: reduces grid dim ") << place;
    }
    return success();
  }

  /// Follows thread edges from a root to block edges. `index` maps the root's domain to that of `expr`; it is null for
  /// the root itself.
  LogicalResult verifyLocal(tile::ExprOp root, tile::ExprOp expr, AffineMap index) {
    for (auto [i, input] : llvm::enumerate(expr.getInputs())) {
      auto connect = input.getDefiningOp<tile::ConnectOp>();
      if (!connect)
        continue;
      auto producer = connect.getValue().getDefiningOp<tile::ExprOp>();
      AffineMap written = producer.getResultMap(cast<OpResult>(connect.getValue()).getResultNumber());
      AffineMap read = index ? expr.getInputMap(i).compose(index) : expr.getInputMap(i);
      if (connect.getScope() == tile::Scope::thread) {
        if (failed(verifyLocal(root, producer, producerIndex(producer, written, read))))
          return failure();
      } else if (failed(verifyTile(root, producer, written, read))) {
        return failure();
      }
    }
    return success();
  }

  static AffineMap producerIndex(tile::ExprOp producer, AffineMap written, AffineMap read) {
    SmallVector<AffineExpr> indices(producer.getDomain().size(), getAffineConstantExpr(0, producer.getContext()));
    for (auto [write, expr] : llvm::zip(written.getResults(), read.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(write))
        indices[dim.getPosition()] = expr;
    return AffineMap::get(read.getNumDims(), 0, indices, producer.getContext());
  }

  LogicalResult verifyTile(tile::ExprOp root, tile::ExprOp producer, AffineMap written, AffineMap read) {
    if (!producer.getDims())
      return producer.emitOpError("G3: a root needs dims: it is reduced, yielded, or read at scope block");
    for (auto [write, expr] : llvm::zip(written.getResults(), read.getResults())) {
      auto writtenDim = dyn_cast<AffineDimExpr>(write), readDim = dyn_cast<AffineDimExpr>(expr);
      int64_t place = writtenDim ? (*producer.getDims())[writtenDim.getPosition()] : -1;
      bool inGrid = place >= 0 && llvm::is_contained(subprogram.getGrid(), place);
      if (inGrid && (!readDim || (*root.getDims())[readDim.getPosition()] != place))
        return root.emitOpError("G5: reads another root across tiles of grid dim ") << place;
    }
    return success();
  }

  tile::SubprogramOp subprogram;
  Block &body;
};

struct VerifyPlanned : impl::VerifyPlannedBase<VerifyPlanned> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult result = getOperation().walk([](tile::SubprogramOp subprogram) {
      return failed(SubprogramVerifier(subprogram).run()) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace tilewright
