#include "passes/codegen/gpu/GridBarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace tilewright;

static constexpr llvm::StringLiteral kCounterSuffix = "_grid_counter";

/// One thread of each block arrives and waits for the others. The last to arrive finds the counter full, which then
/// starts at zero again by itself, and goes on to the next generation; so the zeros that the module is loaded with are
/// all that is ever initialised. LLVM drops the ordering of atomicrmw for PTX, so fences stand beside it; those and the
/// barriers of the block carry what each side wrote. If a block never comes, because something else runs on the device,
/// the kernel traps after some seconds and does not hang.
static constexpr llvm::StringLiteral kModule = R"mlir(
llvm.func internal @tile_grid_barrier(%counter: !llvm.ptr<1>, %blocks: i32) attributes {convergent} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %patience = llvm.mlir.constant(16777216 : i32) : i32
  nvvm.barrier0
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %leads = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %leads, ^arrive, ^done
^arrive:
  %address = llvm.getelementptr %counter[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %generation = llvm.load %address atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %full = llvm.sub %blocks, %one : i32
  llvm.fence syncscope("device") acq_rel
  %before = llvm.atomicrmw uinc_wrap %counter, %full syncscope("device") monotonic : !llvm.ptr<1>, i32
  %last = llvm.icmp "eq" %before, %full : i32
  llvm.cond_br %last, ^release, ^wait(%zero : i32)
^release:
  llvm.fence syncscope("device") acq_rel
  %next = llvm.add %generation, %one : i32
  llvm.store %next, %address atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
  llvm.br ^done
^wait(%turns: i32):
  %current = llvm.load %address atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %waits = llvm.icmp "eq" %current, %generation : i32
  llvm.cond_br %waits, ^again, ^done
^again:
  %more = llvm.add %turns, %one : i32
  %hopeless = llvm.icmp "eq" %more, %patience : i32
  llvm.cond_br %hopeless, ^stuck, ^wait(%more : i32)
^stuck:
  "llvm.intr.trap"() : () -> ()
  llvm.unreachable
^done:
  nvvm.barrier0
  llvm.return
}
)mlir";

/// Each kernel has its own: where two run at once against the contract, one may wait in vain, but none opens early.
static LLVM::GlobalOp counterOf(ModuleOp module, StringRef kernel, Location loc) {
  std::string name = (kernel + kCounterSuffix).str();
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto zeros = DenseElementsAttr::get(RankedTensorType::get({2}, builder.getI32Type()), int32_t(0));
  return LLVM::GlobalOp::create(builder, loc, LLVM::LLVMArrayType::get(builder.getI32Type(), 2), /*isConstant=*/false,
                                LLVM::Linkage::Internal, name, zeros, /*alignment=*/8, /*addrSpace=*/1);
}

void tilewright::callGridBarrier(OpBuilder &builder, Location loc, ModuleOp module, StringRef kernel, int64_t blocks) {
  if (!module.lookupSymbol(kGridBarrier)) {
    OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(kModule, module.getContext());
    assert(source && "the barrier is well-formed");
    for (Operation &op : llvm::make_early_inc_range(*source->getBody()))
      op.moveBefore(module.getBody(), module.getBody()->end());
  }
  Value counter = LLVM::AddressOfOp::create(builder, loc, counterOf(module, kernel, loc));
  Value count = arith::ConstantIntOp::create(builder, loc, blocks, 32);
  LLVM::CallOp::create(builder, loc, TypeRange(), kGridBarrier, ValueRange{counter, count});
}
