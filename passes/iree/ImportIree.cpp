// Maps IREE's util.func and util.return, which MLIR 22 does not know, to func.func and back. As unregistered ops they
// are not isolated, and a greedy rewrite would hoist constants out of them into the module. Two attributes keep their
// original properties and attributes, so that the export is exact.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"
#include "passes/Passes.h"
#include "passes/iree/ForeignOp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tilewright {
#define GEN_PASS_DEF_IMPORTIREE
#define GEN_PASS_DEF_EXPORTIREE
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {
/// Replaces the terminators `from` directly in the region's blocks by unregistered or registered ops named `to`.
void renameReturns(Region &region, StringRef from, StringRef to) {
  for (Block &block : region) {
    if (block.empty() || !isNamed(&block.back(), from))
      continue;
    Operation &old = block.back();
    OpBuilder builder(&old);
    OperationState state(old.getLoc(), to);
    state.addOperands(old.getOperands());
    state.addAttributes(old.getDiscardableAttrDictionary().getValue());
    builder.create(state);
    old.erase();
  }
}

/// The module of kernels that `tile-lower-to-program` makes: it holds tile programs and nothing else.
bool isKernels(Operation &op) {
  auto module = cast<ModuleOp>(op);
  return module.getSymName() == kKernelModule && llvm::all_of(module.getOps(), llvm::IsaPred<tile::ProgramOp>);
}

struct ImportIree : tilewright::impl::ImportIreeBase<ImportIree> {
  static void importFunction(Operation *op, DictionaryAttr properties) {
    OpBuilder builder(op);
    auto name = properties.getAs<StringAttr>("sym_name");
    auto type = properties.getAs<TypeAttr>("function_type");
    auto function = func::FuncOp::create(builder, op->getLoc(), name, cast<FunctionType>(type.getValue()));
    function->setAttr(kUtilPropertiesAttr, properties);
    function->setAttr(kUtilAttributesAttr, op->getDiscardableAttrDictionary());
    function.getBody().takeBody(op->getRegion(0));
    renameReturns(function.getBody(), "util.return", func::ReturnOp::getOperationName());
    op->erase();
  }

  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody()->getOperations())) {
      if (isa<ModuleOp>(op) && !isKernels(op)) { // later passes take modules in the module for kernels
        op.emitError("a module in a module is not supported; move its functions into the outer one");
        return signalPassFailure();
      }
      if (!isNamed(&op, "util.func") || op.getNumRegions() != 1 || op.getRegion(0).empty())
        continue;
      auto properties = dyn_cast_or_null<DictionaryAttr>(op.getPropertiesAsAttribute());
      auto type = properties ? properties.getAs<TypeAttr>("function_type") : TypeAttr();
      if (!type || !isa<FunctionType>(type.getValue()) || !properties.getAs<StringAttr>("sym_name")) {
        op.emitError("expected sym_name and a function type; is this the generic form of IREE's preprocessing phase?");
        return signalPassFailure();
      }
      importFunction(&op, properties);
    }
  }
};

struct ExportIree : tilewright::impl::ExportIreeBase<ExportIree> {
  void runOnOperation() override {
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      auto properties = function->getAttrOfType<DictionaryAttr>(kUtilPropertiesAttr);
      if (!properties)
        continue;
      OpBuilder builder(function);
      OperationState state(function.getLoc(), "util.func");
      state.propertiesAttr = properties;
      state.addAttributes(function->getAttrOfType<DictionaryAttr>(kUtilAttributesAttr).getValue());
      Region *region = state.addRegion();
      region->takeBody(function.getBody());
      renameReturns(*region, func::ReturnOp::getOperationName(), "util.return");
      builder.create(state);
      function.erase();
    }
  }
};
} // namespace
