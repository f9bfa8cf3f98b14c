// The barrier is a function in MLIR text that is parsed into the module when it is first called. Each kernel has a
// counter in global memory.
#include "passes/codegen/gpu/nest/GridBarrier.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace tilewright;

static constexpr llvm::StringLiteral kCounterSuffix = "_grid_counter";

/// One thread per block arrives and waits for the others. The amounts that all blocks add up to the counter's highest
/// bit. The last arrival flips that bit, whatever its value was, and the others poll the counter for it; it therefore
/// needs no initialisation beyond the zero with which the module is loaded. LLVM drops the ordering of atomicrmw for
/// PTX, so an explicit fence precedes it; the fence and the block barriers order the writes of each side. If a block
/// never arrives, because something else occupies the device, the kernel traps after some seconds instead of hanging.
static constexpr llvm::StringLiteral kModule = R"mlir(
llvm.func internal @tile_grid_barrier(%counter: !llvm.ptr<1>, %blocks: i32) attributes {convergent} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %flip = llvm.mlir.constant(-2147483648 : i32) : i32
  %patience = llvm.mlir.constant(16777216 : i32) : i32
  nvvm.barrier0
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %leads = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %leads, ^arrive, ^done
^arrive:
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %first = llvm.icmp "eq" %block, %zero : i32
  %others = llvm.sub %blocks, %one : i32
  %rest = llvm.sub %flip, %others : i32
  %share = llvm.select %first, %rest, %one : i1, i32
  llvm.fence syncscope("device") acq_rel
  %before = llvm.atomicrmw add %counter, %share syncscope("device") monotonic : !llvm.ptr<1>, i32
  llvm.br ^wait(%zero : i32)
^wait(%turns: i32):
  %current = llvm.load %counter atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %changed = llvm.xor %before, %current : i32
  %waits = llvm.icmp "sge" %changed, %zero : i32
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

/// Returns the counter of a kernel. Each kernel has its own: if two run at once, against the contract, one may wait in
/// vain but no barrier opens early.
static LLVM::GlobalOp counterOf(Operation *module, StringRef kernel, Location loc) {
  std::string name = (kernel + kCounterSuffix).str();
  if (Operation *known = SymbolTable::lookupSymbolIn(module, name))
    return cast<LLVM::GlobalOp>(known);
  OpBuilder builder = OpBuilder::atBlockEnd(&module->getRegion(0).front());
  return LLVM::GlobalOp::create(builder, loc, builder.getI32Type(), /*isConstant=*/false, LLVM::Linkage::Internal, name,
                                builder.getI32IntegerAttr(0), /*alignment=*/4, /*addrSpace=*/1);
}

void tilewright::callGridBarrier(OpBuilder &builder, Location loc, Operation *module, StringRef kernel,
                                 int64_t blocks) {
  if (!SymbolTable::lookupSymbolIn(module, kGridBarrier)) {
    OwningOpRef<ModuleOp> source = parseSourceString<ModuleOp>(kModule, builder.getContext());
    assert(source && "the barrier is well-formed");
    for (Operation &op : llvm::make_early_inc_range(*source->getBody()))
      op.moveBefore(&module->getRegion(0).front(), module->getRegion(0).front().end());
  }
  Value counter = LLVM::AddressOfOp::create(builder, loc, counterOf(module, kernel, loc));
  Value count = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), blocks);
  LLVM::CallOp::create(builder, loc, TypeRange(), kGridBarrier, ValueRange{counter, count});
}
