// Rewrites the domain, all maps and guards, and the ops of the body that depend on the point of the domain.
#include "passes/plan/apply/UnitDims.h"

#include "passes/plan/space/IterationSpace.h"
#include "passes/support/AffineAlgebra.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tilewright;

void tilewright::dropUnitDims(tile::ExprOp op, const TensorExpr &expr) {
  Builder builder(op.getContext());
  SmallVector<AffineExpr> renamed;
  SmallVector<int64_t> domain, reductions;
  for (auto [dim, extent] : llvm::enumerate(expr.domain)) {
    bool kept = hasPlace(expr, dim);
    renamed.push_back(kept ? builder.getAffineDimExpr(domain.size()) : builder.getAffineConstantExpr(0));
    if (kept && llvm::is_contained(expr.reductions, static_cast<int64_t>(dim)))
      reductions.push_back(domain.size());
    if (kept)
      domain.push_back(extent);
  }
  if (domain.size() == expr.domain.size())
    return;
  auto rename = [&](AffineMap map) {
    return simplifyInDomain(map.replaceDimsAndSymbols(renamed, {}, domain.size(), 0), domain);
  };
  auto renameSet = [&](IntegerSet set) {
    return conjoin(set.replaceDimsAndSymbols(renamed, {}, domain.size(), 0), IntegerSet(), domain);
  };
  SmallVector<AffineMap> maps, resultMaps;
  SmallVector<Attribute> guards;
  for (unsigned i = 0; i < op.getInputs().size(); ++i) {
    maps.push_back(rename(op.getInputMap(i)));
    IntegerSet guard = op.getGuard(i);
    if (guard)
      guard = renameSet(guard);
    guards.push_back(guard ? Attribute(IntegerSetAttr::get(guard)) : builder.getUnitAttr());
  }
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    resultMaps.push_back(rename(op.getResultMap(i)));
  op.setDomain(domain);
  op.setReductions(reductions);
  op.setMapsAttr(builder.getAffineMapArrayAttr(maps));
  op.setGuardsAttr(builder.getArrayAttr(guards));
  op.setResultMapsAttr(builder.getAffineMapArrayAttr(resultMaps));
  for (Operation &inner : llvm::make_early_inc_range(op.getBodyBlock())) {
    if (auto index = dyn_cast<tile::IndexOp>(inner))
      index.setMap(rename(index.getMap()));
    auto within = dyn_cast<tile::WithinOp>(inner);
    if (!within)
      continue;
    if (IntegerSet set = renameSet(within.getSet())) {
      within.setSet(set);
      continue;
    }
    OpBuilder at(within);
    within.replaceAllUsesWith(arith::ConstantOp::create(at, within.getLoc(), at.getBoolAttr(true)).getResult());
    within.erase();
  }
}
