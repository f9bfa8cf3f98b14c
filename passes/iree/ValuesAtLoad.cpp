#include "passes/iree/ValuesAtLoad.h"

#include "passes/graph/Eligibility.h"
#include "passes/iree/ForeignOp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tilewright;

/// Returns true for a constant, a tensor without values, or a load of an immutable global. Null stands for an argument.
static bool isSource(Operation *op) {
  if (!op)
    return false;
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<tensor::EmptyOp>(op))
    return true;
  Operation *global = isNamed(op, "util.global.load") ? globalOf(op) : nullptr;
  return global && !isMutableGlobal(global);
}

/// Returns true for an op of which IREE can run a copy in an initializer.
static bool isMovable(Operation *op) {
  return isMemoryEffectFree(op) &&
         isa_and_nonnull<linalg::LinalgDialect, tensor::TensorDialect, arith::ArithDialect, math::MathDialect,
                         complex::ComplexDialect>(op->getDialect());
}

bool ValuesAtLoad::isKnown(Operation *op) {
  if (auto found = known.find(op); found != known.end())
    return found->second;
  auto reads = [&] {
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    return llvm::all_of(read, [&](Value value) { return isKnown(value); });
  };
  bool result = isSource(op) || (isMovable(op) && reads());
  known[op] = result;
  return result;
}

bool ValuesAtLoad::isKnown(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isKnown(op);
}

bool ValuesAtLoad::isComputed(Value value) { return isKnown(value) && !isSource(value.getDefiningOp()); }

std::optional<ParameterRecipe> tilewright::arrangementOf(Value value, function_ref<std::string(Value)> nameOf) {
  auto recipe = recipeOf(value, [&](Value source) -> std::optional<ParameterRecipe> {
    bool isArranged = source != value;
    if (!isArranged || !isSource(source.getDefiningOp()) || isa<tensor::EmptyOp>(source.getDefiningOp()))
      return std::nullopt;
    ParameterRecipe parameter;
    parameter.kind = ParameterRecipe::Kind::parameter;
    parameter.shape = cast<RankedTensorType>(source.getType()).getShape().vec();
    parameter.name = nameOf(source);
    return parameter;
  });
  return recipe && recipe->verify().empty() ? std::move(recipe) : std::nullopt;
}

FunctionOfValues tilewright::functionOfValues(ModuleOp module) {
  FunctionOfValues function;
  for (Operation &op : module.getOps()) {
    auto name = isNamed(&op, "util.func") ? dyn_cast_or_null<StringAttr>(propertyOf(&op, "sym_name")) : StringAttr();
    if (!name || !name.getValue().ends_with(kAtLoadSuffix))
      continue;
    function.name = name.getValue();
    op.walk([&](Operation *load) {
      if (!isNamed(load, "util.global.load"))
        return;
      StringRef global = cast<FlatSymbolRefAttr>(propertyOf(load, "global")).getValue();
      function.results[global] = static_cast<int64_t>(function.types.size());
      function.types.push_back(cast<RankedTensorType>(load->getResult(0).getType()));
    });
  }
  return function;
}
