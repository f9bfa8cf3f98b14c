// Level 3 to target code on the CPU: each tile program becomes one function over memrefs. The grid's tiles are shared
// out in contiguous ranges; a barrier of the block is nothing here, because one thread runs a workgroup.
#include "passes/Passes.h"
#include "passes/codegen/cpu/ContractionEmitter.h"
#include "passes/target/Target.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace tilewright {
#define GEN_PASS_DEF_CONVERTTOVECTOR
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// IREE's local-sync driver gives workgroup memory that it has cleared, at every dispatch. What a stack has room for
/// is there for nothing.
constexpr int64_t kStackBytes = 64 * 1024;
constexpr int64_t kStackAlignment = 64;

class ProgramConverter {
public:
  ProgramConverter(ProgramOp program, VectorShape shape) : program(program), shape(shape) {}

  /// func.func @name(bindings..., workgroup memory, workgroup index). Failure: an error was emitted.
  LogicalResult convert(OpBuilder &builder) {
    Location loc = program.getLoc();
    Block &source = program.getBody().front();
    SmallVector<Type> types;
    for (Type type : source.getArgumentTypes())
      types.push_back(memrefOf(cast<SliceType>(type)));
    auto memoryType = MemRefType::get({std::max<int64_t>(program.getBlockBytes(), 1)}, builder.getI8Type());
    bool onStack = program.getBlockBytes() <= kStackBytes;
    types.push_back(memoryType);
    types.push_back(builder.getIndexType());
    auto function = func::FuncOp::create(builder, loc, program.getSymName(), builder.getFunctionType(types, {}));
    for (unsigned i = 0; i + 1 < types.size(); ++i)
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    function->setAttr(kWorkgroupsAttr, builder.getI64IntegerAttr(program.getWorkgroups()));
    function->setAttr(kOutputsAttr, builder.getI64IntegerAttr(program.getOutputs()));
    function->setAttr(kBlockBytesAttr, builder.getI64IntegerAttr(onStack ? 0 : program.getBlockBytes()));
    SmallVector<int64_t> bindingBytes;
    for (Type type : source.getArgumentTypes())
      bindingBytes.push_back(cast<SliceType>(type).getNumBytes());
    function->setAttr(kBindingBytesAttr, builder.getDenseI64ArrayAttr(bindingBytes));
    for (StringRef attr : {kTargetAttr, kVariantOfAttr})
      if (Attribute value = program->getAttr(attr))
        function->setAttr(attr, value);
    Block *entry = function.addEntryBlock();
    OpBuilder body = OpBuilder::atBlockEnd(entry);
    IRMapping values;
    for (auto [argument, memref] : llvm::zip(source.getArguments(), entry->getArguments()))
      values.map(argument, memref);
    memory = entry->getArgument(types.size() - 2);
    if (onStack && program.getBlockBytes() > 0)
      memory = memref::AllocaOp::create(body, loc, memoryType, builder.getI64IntegerAttr(kStackAlignment));
    Value workgroup = entry->getArgument(types.size() - 1);
    convertParts(body, SmallVector<ParallelOp>(source.getOps<ParallelOp>()), workgroup, values);
    if (program.walk([](StoreOp store) { return WalkResult(store.getStreamed() ? failure() : success()); })
            .wasInterrupted())
      orderStreamedStores(body, loc);
    func::ReturnOp::create(body, loc);
    return success(isConverted);
  }

private:
  /// Stores past the caches are seen by other threads in any order, also after what says that the kernel has ended.
  static void orderStreamedStores(OpBuilder &builder, Location loc) {
    LLVM::CallIntrinsicOp::create(builder, loc, builder.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  }

  /// Part after part, each on its own range of workgroups.
  void convertParts(OpBuilder &builder, ArrayRef<ParallelOp> parts, Value workgroup, IRMapping &values) {
    ParallelOp part = parts.front();
    Location loc = part.getLoc();
    if (parts.size() == 1)
      return convertPart(builder, part, workgroup, values);
    Value own = arith::ConstantIndexOp::create(builder, loc, part.getWorkgroups());
    Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, workgroup, own);
    auto branch = scf::IfOp::create(builder, loc, mine, /*withElseRegion=*/true);
    OpBuilder then = OpBuilder::atBlockTerminator(branch.thenBlock());
    convertPart(then, part, workgroup, values);
    OpBuilder otherwise = OpBuilder::atBlockTerminator(branch.elseBlock());
    Value rest = arith::SubIOp::create(otherwise, loc, workgroup, own);
    convertParts(otherwise, parts.drop_front(), rest, values);
  }

  void convertPart(OpBuilder &builder, ParallelOp part, Value workgroup, IRMapping values) {
    Location loc = part.getLoc();
    for (Operation &op : part.getBody().front())
      convertOp(builder, op, values);
    int64_t tiles = part.getNumTiles(), workgroups = part.getWorkgroups();
    auto constant = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(builder, loc, value); };
    auto share = [&](Value index) -> Value {
      Value scaled = arith::MulIOp::create(builder, loc, index, constant(tiles));
      return arith::DivUIOp::create(builder, loc, scaled, constant(workgroups));
    };
    Value low = constant(0), high = constant(tiles);
    if (workgroups > 1) {
      low = share(workgroup);
      high = share(arith::AddIOp::create(builder, loc, workgroup, constant(1)));
    }
    OpBuilder body = builder;
    Value tile = low;
    if (tiles > 1) {
      auto loop = scf::ForOp::create(builder, loc, low, high, constant(1));
      body = OpBuilder::atBlockTerminator(loop.getBody());
      tile = loop.getInductionVar();
    }
    mapOffsets(body, part, tile, values);
    for (Operation &op : part.getWalk().getBody().front())
      convertOp(body, op, values);
  }

  /// The first index of tile number `tile` along each grid dim; the last dim runs fastest.
  static void mapOffsets(OpBuilder &builder, ParallelOp part, Value tile, IRMapping &values) {
    Location loc = part.getLoc();
    for (int64_t dim = part.getExtents().size() - 1; dim >= 0; --dim) {
      int64_t size = part.getTiles()[dim], count = llvm::divideCeil(part.getExtents()[dim], size);
      Value position = tile;
      if (count == 1) {
        position = arith::ConstantIndexOp::create(builder, loc, 0);
      } else if (dim > 0) {
        Value radix = arith::ConstantIndexOp::create(builder, loc, count);
        position = arith::RemUIOp::create(builder, loc, tile, radix);
        tile = arith::DivUIOp::create(builder, loc, tile, radix);
      }
      Value scale = arith::ConstantIndexOp::create(builder, loc, size);
      values.map(part.getWalk().getBody().getArgument(dim),
                 size == 1 ? position : arith::MulIOp::create(builder, loc, position, scale).getResult());
    }
  }

  void convertOp(OpBuilder &builder, Operation &op, IRMapping &values) {
    Location loc = op.getLoc();
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      Value offset = arith::ConstantIndexOp::create(builder, loc, alloc.getOffset().value_or(0));
      values.map(alloc.getSlice(),
                 memref::ViewOp::create(builder, loc, memrefOf(alloc.getType()), memory, offset, ValueRange()));
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto copy = scf::ForOp::create(builder, loc, values.lookup(loop.getLowerBound()),
                                     values.lookup(loop.getUpperBound()), values.lookup(loop.getStep()));
      values.map(loop.getInductionVar(), copy.getInductionVar());
      OpBuilder body = OpBuilder::atBlockTerminator(copy.getBody());
      for (Operation &inner : loop.getBody()->without_terminator())
        convertOp(body, inner, values);
    } else if (op.hasTrait<OpTrait::ConstantLike>()) {
      builder.clone(op, values);
    } else if (auto compute = dyn_cast<ComputeOp>(op)) {
      if (compute.getMicroKernel() && emitContraction(builder, compute, values, shape))
        return;
      if (llvm::any_of(compute.getInits(), llvm::IsaPred<UnitAttr>)) {
        compute.emitError("sums that go on from what is in the slice, but not as a micro kernel reads and writes them");
        isConverted = false;
      } else {
        emitNest(builder, compute, values, shape);
      }
    } else if (auto move = dyn_cast<MoveOp>(op)) {
      ComputeOp copy = copyNest(move);
      emitNest(builder, copy, values, shape);
      copy.erase();
    }
  }

  /// A move as a loop nest: there is one way to copy.
  static ComputeOp copyNest(MoveOp move) {
    OpBuilder builder(move);
    SliceType type = move.getSource().getType();
    int64_t rank = type.getRank();
    auto *body = new Block();
    OpBuilder inside(move.getContext());
    inside.setInsertionPointToEnd(body);
    SmallVector<AffineExpr> dims;
    for (int64_t dim = 0; dim < rank; ++dim)
      dims.push_back(builder.getAffineDimExpr(dim));
    auto map = AffineMap::get(rank, rank, dims, builder.getContext());
    Value value = LoadOp::create(inside, move.getLoc(), type.getElementType(), move.getSource(), map, IntegerSetAttr());
    StoreOp::create(inside, move.getLoc(), value, move.getTarget(), map);
    YieldOp::create(inside, move.getLoc(), ValueRange());
    auto compute =
        ComputeOp::create(builder, move.getLoc(), ValueRange(), ValueRange(), type.getShape(), type.getShape(),
                          ArrayRef<int64_t>(), ArrayRef<int64_t>(), rank - 1, builder.getAffineMapArrayAttr({}),
                          builder.getArrayAttr({}), builder.getStrArrayAttr({}), StringAttr());
    compute.getBody().push_back(body);
    return compute;
  }

  ProgramOp program;
  VectorShape shape;
  Value memory; ///< block-space memory of the workgroup
  bool isConverted = true;
};

struct ConvertToVector : tilewright::impl::ConvertToVectorBase<ConvertToVector> {
  using ConvertToVectorBase::ConvertToVectorBase;

  static VectorShape shapeFor(const Target &target) {
    VectorShape shape{target.vectorBytes, target.vectorRegisters};
    for (const MemoryLevel &level : llvm::reverse(target.levels))
      if (level.space == Space::block)
        shape.cacheBytes = level.capacityBytes;
    return shape;
  }

  void runOnOperation() override {
    // A wrong option is an error even where every program has a target of its own, or there is none.
    if (llvm::Expected<Target> known = lookupTarget(target); !known) {
      getOperation().emitError(llvm::toString(known.takeError()));
      return signalPassFailure();
    }
    SmallVector<ProgramOp> programs;
    getOperation().walk([&](ProgramOp program) { programs.push_back(program); });
    for (ProgramOp program : programs) {
      llvm::Expected<Target> known = lookupTarget(targetOf(program, target));
      if (!known) {
        program.emitError(llvm::toString(known.takeError()));
        return signalPassFailure();
      }
      OpBuilder builder(program);
      if (failed(ProgramConverter(program, shapeFor(*known)).convert(builder)))
        return signalPassFailure();
      program.erase();
    }
  }
};
} // namespace
