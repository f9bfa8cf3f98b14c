#include "passes/normalize/layers/LayersAtOnce.h"

#include "passes/normalize/layers/DecideWavefront.h"
#include "passes/normalize/layers/StackLayers.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace tilewright;

namespace {
class Stacker {
public:
  Stacker(func::FuncOp function, const Target &target, NumericsMode numerics)
      : function(function), target(target), numerics(numerics) {}

  /// Settles stacks until one is taken, and replaces its loops. Returns false if no stack is left to settle.
  FailureOr<bool> stackOne() {
    for (LayerStack &stack : findLayerStacks(function)) {
      Operation *first = stack.layers.front().loop;
      if (apart.contains(first))
        continue;
      std::optional<JointProduct> joint = findJointProduct(stack, target, numerics);
      FailureOr<FormChoice> choice = settle(stack, joint);
      if (failed(choice))
        return failure();
      if (choice->taken) {
        stackLayers(stack, hasJointProduct(*choice) ? joint : std::nullopt, target, numerics);
        return true;
      }
      apart.insert(first);
    }
    return false;
  }

private:
  FailureOr<FormChoice> settle(LayerStack &stack, const std::optional<JointProduct> &joint) {
    SmallVector<Operation *> loops =
        llvm::map_to_vector(stack.layers, [](RecurrentLayer &layer) -> Operation * { return layer.loop; });
    FailureOr<FormChoice> choice =
        settleForm(function, decideWavefront(stack, joint, target, numerics), loops,
                   [&](FormChoice &wanted) { return whyNotWavefront(joint, wanted); });
    if (failed(choice))
      return choice;
    std::string text = "tile: ";
    llvm::raw_string_ostream os(text);
    choice->print(os);
    auto options = remark::RemarkOpts::name("form").category("tile-form-subprograms");
    if (choice->taken)
      remark::passed(loops.front()->getLoc(), options) << text;
    else
      remark::missed(loops.front()->getLoc(), options) << text;
    return choice;
  }

  func::FuncOp function;
  const Target &target;
  NumericsMode numerics;
  llvm::SmallPtrSet<Operation *, 4> apart; ///< first loops of stacks that stay
};
} // namespace

LogicalResult tilewright::runLayersAtOnce(func::FuncOp function, const Target &target, NumericsMode numerics) {
  Stacker stacker(function, target, numerics);
  FailureOr<bool> hasStacked = true;
  while (succeeded(hasStacked) && *hasStacked)
    hasStacked = stacker.stackOne(); // stacks are found again, because the function has changed
  return hasStacked;
}
