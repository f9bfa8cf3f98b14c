// The kernel's blocks become the body of a loop over the steps. A block waits for all others before the next step,
// because that step reads what they have written in this one; a kernel of one block waits for its own threads.
#include "passes/codegen/gpu/RepeatKernel.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/codegen/gpu/nest/FirstStep.h"
#include "passes/codegen/gpu/nest/GridBarrier.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
class Repetition {
public:
  Repetition(LLVM::LLVMFuncOp repeated, LLVM::LLVMFuncOp kernel, int64_t steps)
      : repeated(repeated), kernel(kernel), builder(repeated.getContext()), loc(kernel.getLoc()), steps(steps) {}

  void build(ArrayRef<StepAddress> addresses) {
    Block *entry = repeated.addEntryBlock(builder), *step = addBlock();
    step->addArgument(builder.getI64Type(), loc);
    builder.setInsertionPointToEnd(entry);
    LLVM::BrOp::create(builder, loc, ValueRange{constant(0)}, step);
    builder.setInsertionPointToEnd(step);
    Value number = step->getArgument(0);
    SmallVector<Value> own;
    for (const StepAddress &address : addresses)
      own.push_back(addressIn(number, address));
    Value isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, number, constant(0));
    Block *body = cloneBody(own);
    answerFirstStep(repeated, isFirst);
    builder.setInsertionPointToEnd(step);
    LLVM::BrOp::create(builder, loc, ValueRange(), body);
    endStep(step, number);
    moveAllocations(entry);
  }

private:
  Block *addBlock() { return builder.createBlock(&repeated.getBody(), repeated.getBody().end()); }

  Value constant(int64_t value) { return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), value); }

  Value behind(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(builder, loc, pointer.getType(), builder.getI8Type(), pointer, LLVM::GEPArg(bytes));
  }

  Value addressIn(Value step, const StepAddress &address) {
    Block &entry = repeated.getBody().front();
    Value first = entry.getArgument(address.first);
    if (!address.moves())
      return address.firstOffset == 0 ? first : behind(first, constant(address.firstOffset));
    Value isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, step, constant(0));
    Value later = entry.getArgument(address.even);
    if (address.even != address.odd) {
      Value parity = LLVM::AndOp::create(builder, loc, step, constant(1));
      Value isEven = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, parity, constant(0));
      later = LLVM::SelectOp::create(builder, loc, isEven, later, entry.getArgument(address.odd));
    }
    Value base = address.first == address.even && address.even == address.odd
                     ? first
                     : LLVM::SelectOp::create(builder, loc, isFirst, first, later).getResult();
    Value moved = step;
    if (address.from > 0)
      moved = LLVM::SMaxOp::create(builder, loc, moved, constant(address.from));
    if (address.to < std::numeric_limits<int64_t>::max())
      moved = LLVM::SMinOp::create(builder, loc, moved, constant(address.to));
    Value bytes = LLVM::MulOp::create(builder, loc, moved, constant(address.stride));
    bytes = LLVM::AddOp::create(builder, loc, bytes, constant(address.offset));
    bytes = LLVM::SelectOp::create(builder, loc, isFirst, constant(address.firstOffset), bytes);
    return behind(base, bytes);
  }

  /// Clones the kernel's blocks behind those that are there, and returns the first one.
  Block *cloneBody(ArrayRef<Value> arguments) {
    IRMapping mapping;
    Block &first = kernel.getBody().front();
    for (auto [argument, own] : llvm::zip_equal(first.getArguments(), arguments))
      mapping.map(argument, own);
    kernel.getBody().cloneInto(&repeated.getBody(), mapping);
    return mapping.lookup(&first);
  }

  /// Has every end of the body go on with the next step, or return after the last one.
  void endStep(Block *step, Value number) {
    SmallVector<LLVM::ReturnOp> ends(repeated.getOps<LLVM::ReturnOp>());
    Block *latch = addBlock(), *again = addBlock(), *end = addBlock();
    for (LLVM::ReturnOp op : ends) {
      builder.setInsertionPoint(op);
      LLVM::BrOp::create(builder, loc, ValueRange(), latch);
      op.erase();
    }
    builder.setInsertionPointToEnd(latch);
    Value next = LLVM::AddOp::create(builder, loc, number, constant(1));
    Value goesOn = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, next, constant(steps));
    LLVM::CondBrOp::create(builder, loc, goesOn, again, end);
    builder.setInsertionPointToEnd(again);
    wait();
    LLVM::BrOp::create(builder, loc, ValueRange{next}, step);
    builder.setInsertionPointToEnd(end);
    LLVM::ReturnOp::create(builder, loc, ValueRange());
  }

  void wait() {
    int64_t blocks = kernel->getAttrOfType<IntegerAttr>(kWorkgroupsAttr).getInt();
    if (blocks == 1)
      NVVM::Barrier0Op::create(builder, loc);
    else
      callGridBarrier(builder, loc, repeated->getParentOp(), repeated.getName(), blocks);
  }

  /// Allocates on the stack once, and not in every step.
  void moveAllocations(Block *entry) {
    SmallVector<LLVM::AllocaOp> allocations;
    repeated.walk([&](LLVM::AllocaOp op) { allocations.push_back(op); });
    for (LLVM::AllocaOp op : llvm::reverse(allocations)) {
      op->moveBefore(entry, entry->begin());
      if (Operation *size = op.getArraySize().getDefiningOp())
        size->moveBefore(op);
    }
  }

  LLVM::LLVMFuncOp repeated, kernel;
  OpBuilder builder;
  Location loc;
  int64_t steps;
};
} // namespace

LLVM::LLVMFuncOp tilewright::repeatKernel(LLVM::LLVMFuncOp kernel, StringRef name, ArrayRef<int64_t> bindingBytes,
                                          unsigned outputs, ArrayRef<StepAddress> addresses, int64_t steps) {
  unsigned bindings = bindingBytes.size();
  OpBuilder builder(kernel);
  Type pointer = kernel.getArgumentTypes().front();
  auto type = LLVM::LLVMFunctionType::get(kernel.getFunctionType().getReturnType(),
                                          SmallVector<Type>(bindings, pointer));
  auto repeated = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, type, kernel.getLinkage());
  repeated->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  repeated->setAttr(kOutputsAttr, builder.getI64IntegerAttr(outputs));
  repeated->setAttr(kBindingBytesAttr, builder.getDenseI64ArrayAttr(bindingBytes));
  // A step reads what an earlier one has written, so no binding is free of aliases or only read.
  auto alignment = kernel.getArgAttr(0, LLVM::LLVMDialect::getAlignAttrName());
  for (unsigned i = 0; i < bindings && alignment; ++i)
    repeated.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), alignment);
  Repetition(repeated, kernel, steps).build(addresses);
  return repeated;
}
