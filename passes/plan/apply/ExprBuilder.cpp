// Builds tile.expr ops, with one body argument per distinct access.
#include "passes/plan/apply/ExprBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tilewright {

Value ExprInputs::add(const TensorAccess &access, Location loc) {
  for (auto [i, known] : llvm::enumerate(accesses))
    if (known.tensor == access.tensor && known.map == access.map && known.guard == access.guard &&
        known.gathered == access.gathered)
      return body.getArgument(i);
  accesses.push_back(access);
  Type type = access.gathered ? access.tensor.getType() : getElementTypeOrSelf(access.tensor.getType());
  // Arguments of inputs precede those of accumulators.
  return body.insertArgument(accesses.size() - 1, type, loc);
}

void ExprInputs::eraseUnused() {
  for (unsigned i = accesses.size(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      accesses.erase(accesses.begin() + i);
    }
}

SmallVector<Value> ExprInputs::tensors() const {
  return llvm::map_to_vector(accesses, [](const TensorAccess &access) { return access.tensor; });
}

ArrayAttr ExprInputs::maps(Builder &builder) const {
  return builder.getAffineMapArrayAttr(
      llvm::map_to_vector(accesses, [](const TensorAccess &access) { return access.map; }));
}

ArrayAttr ExprInputs::guards(Builder &builder) const {
  return builder.getArrayAttr(llvm::map_to_vector(accesses, [&](TensorAccess access) -> Attribute {
    return access.guard ? Attribute(IntegerSetAttr::get(access.guard)) : Attribute(builder.getUnitAttr());
  }));
}

Value zeroOf(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

Value within(OpBuilder &builder, Location loc, IntegerSet set) {
  return tile::WithinOp::create(builder, loc, builder.getI1Type(), IntegerSetAttr::get(set));
}

Value index(OpBuilder &builder, Location loc, AffineMap map) {
  return tile::IndexOp::create(builder, loc, builder.getIndexType(), AffineMapAttr::get(map));
}

tile::ExprOp buildExpr(OpBuilder &builder, Location loc, TypeRange results, const ExprInputs &inputs,
                       ArrayRef<int64_t> domain, ArrayRef<int64_t> reductions, ArrayAttr resultMaps, ArrayAttr inits,
                       std::unique_ptr<Block> body) {
  auto op = tile::ExprOp::create(builder, loc, results, inputs.tensors(), builder.getDenseI64ArrayAttr(domain),
                                 builder.getDenseI64ArrayAttr(reductions), inputs.maps(builder), inputs.guards(builder),
                                 resultMaps, inits, UnitAttr(), DenseI64ArrayAttr(), ArrayAttr(), StringAttr(),
                                 tile::GemmAttr());
  op.getBody().push_back(body.release());
  return op;
}

} // namespace tilewright
