#include "passes/program/gpu/AddOutput.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

SmallVector<LaunchOp> tilewright::launchesOf(ProgramOp program, ModuleOp module) {
  SmallVector<LaunchOp> launches;
  module.walk([&](LaunchOp launch) {
    if (launch.getProgram().getLeafReference() == program.getSymNameAttr())
      launches.push_back(launch);
  });
  return launches;
}

Value tilewright::addOutput(ProgramOp program, SliceType type, ArrayRef<LaunchOp> launches) {
  program.setOutputs(program.getOutputs() + 1);
  auto tensor = RankedTensorType::get(type.getShape(), type.getElementType());
  for (LaunchOp launch : launches) {
    OpBuilder builder(launch);
    SmallVector<Type> types(launch.getResultTypes());
    types.push_back(tensor);
    DenseI64ArrayAttr tied;
    if (launch.getTied()) {
      SmallVector<int64_t> inputs(*launch.getTied());
      inputs.push_back(-1);
      tied = builder.getDenseI64ArrayAttr(inputs);
    }
    auto with = LaunchOp::create(builder, launch.getLoc(), types, launch.getProgram(), launch.getInputs(), tied);
    with->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
    launch.replaceAllUsesWith(with.getResults().drop_back());
    launch.erase();
  }
  return program.getBody().addArgument(type, program.getLoc());
}
