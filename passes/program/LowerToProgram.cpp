// Lowers planned subprograms (level 2) to tile programs (level 3): each subprogram becomes a tile program with explicit
// movement. Movement decides on loop nests and staging; PartBuilder carries the decision out for one subprogram.
// Adjacent subprograms with the same name become parts of one program.
#include "dialects/tile/Phases.h"
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/LoopBodies.h"
#include "passes/program/PartBuilder.h"
#include "passes/target/TargetOrError.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringSet.h"

namespace tilewright {
#define GEN_PASS_DEF_LOWERTOPROGRAM
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct LowerToProgram : tilewright::impl::LowerToProgramBase<LowerToProgram> {
  using LowerToProgramBase::LowerToProgramBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LowerToProgramBase::getDependentDialects(registry);
    registry.insert<scf::SCFDialect>();
  }

  /// Collects the subprograms of each kernel: neighbours with the same name.
  static SmallVector<SmallVector<SubprogramOp>> collectKernels(ModuleOp module) {
    SmallVector<SmallVector<SubprogramOp>> kernels;
    module.walk([&](SubprogramOp op) {
      auto previous = dyn_cast_or_null<SubprogramOp>(op->getPrevNode());
      if (previous && previous.getSymName() == op.getSymName())
        kernels.back().push_back(op);
      else
        kernels.push_back({op});
    });
    return kernels;
  }

  static ModuleOp kernelModule(ModuleOp module) {
    for (auto nested : module.getOps<ModuleOp>())
      if (nested.getSymName() == kKernelModule)
        return nested;
    OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
    return ModuleOp::create(builder, module.getLoc(), kKernelModule);
  }

  /// Deletes `program` if an equal one exists, because repeated layers give equal programs. Returns the name to launch.
  StringRef shareEqual(ProgramOp program) {
    std::string name = program.getSymName().str(), text;
    program.setSymName("");
    llvm::raw_string_ostream stream(text);
    program->print(stream, OpPrintingFlags().useLocalScope());
    program.setSymName(name);
    auto [known, isNew] = programsByText.try_emplace(text, program.getSymNameAttr());
    if (!isNew)
      program.erase();
    else
      ++programs;
    return known->second.getValue();
  }

  static bool isMadeBy(ArrayRef<SubprogramOp> parts, Value value) {
    return llvm::is_contained(parts, value.getDefiningOp<SubprogramOp>());
  }

  /// Translates the inputs that a part keeps resident from the part's numbering to the program's bindings.
  Attribute keepsOf(ArrayRef<int64_t> keeps, ArrayRef<Value> bindings) {
    SmallVector<int64_t> pairs(keeps);
    for (size_t i = 1; i < pairs.size(); i += 2)
      pairs[i] = cast<BlockArgument>(bindings[pairs[i]]).getArgNumber();
    return DenseI64ArrayAttr::get(&getContext(), pairs);
  }

  /// Translates how a part accesses its inputs and results to the program's bindings.
  ArrayAttr accessesOf(ArrayAttr accesses, ArrayRef<Value> own, unsigned bindings) {
    SmallVector<Attribute> all(bindings, AccessAttr::get(&getContext(), Access::derived));
    for (auto [binding, access] : llvm::zip(own, accesses))
      all[cast<BlockArgument>(binding).getArgNumber()] = access;
    return ArrayAttr::get(&getContext(), all);
  }

  /// Lowers the subprograms of one kernel. A part that reads the results of earlier parts waits for them at a grid
  /// barrier.
  void lower(ArrayRef<SubprogramOp> parts, ModuleOp kernels, StringRef name) {
    OpBuilder builder = OpBuilder::atBlockEnd(kernels.getBody());
    SubprogramOp first = parts.front(), last = parts.back();
    Location loc = first.getLoc();
    llvm::SetVector<Value> inputs; // an input of several parts is bound once
    SmallVector<Type> results, bindings;
    for (SubprogramOp part : parts) {
      inputs.insert_range(llvm::make_filter_range(part.getInputs(), [&](Value in) { return !isMadeBy(parts, in); }));
      llvm::append_range(results, part.getResultTypes());
    }
    SmallVector<Type> operands(TypeRange(ValueRange(inputs.getArrayRef())));
    for (Type type : llvm::concat<Type>(operands, results)) {
      auto tensor = cast<RankedTensorType>(type);
      bindings.push_back(SliceType::get(&getContext(), tensor.getShape(), tensor.getElementType(), Space::global));
    }
    auto program =
        ProgramOp::create(builder, loc, name, results.size(), first.getTargetAttr(), /*in_place=*/ArrayAttr());
    for (StringRef stated : {kResidentBlocksAttr, kGivenAttr})
      if (Attribute value = first->getAttr(stated))
        program->setAttr(stated, value);
    if (auto loop = dyn_cast<LoopLikeOpInterface>(first->getParentOp()); loop && loop->hasAttr(kOneKernelAttr)) {
      SmallVector<int64_t> invariants;
      for (auto [number, input] : llvm::enumerate(inputs))
        if (loop.isDefinedOutsideOfLoop(input))
          invariants.push_back(number);
      program->setAttr(kRepeatedAttr, builder.getDenseI64ArrayAttr(invariants));
    }
    Block &body = program.getBody().emplaceBlock();
    for (Type type : bindings)
      body.addArgument(type, loc);
    OpBuilder bodyBuilder = OpBuilder::atBlockEnd(&body);
    unsigned nextResult = inputs.size(), phase = 0;
    DenseMap<Value, Value> bound;
    for (auto [input, binding] : llvm::zip_first(inputs, body.getArguments()))
      bound[input] = binding;
    for (unsigned i = 0; i < parts.size(); ++i) {
      SubprogramOp part = parts[i];
      auto waitsFor = [&](Value input) { return isMadeBy(parts.slice(phase, i - phase), input); };
      if (llvm::any_of(part.getInputs(), waitsFor)) {
        SyncOp::create(bodyBuilder, part.getLoc(), Scope::grid);
        phase = i;
      }
      SmallVector<Value> own;
      for (Value input : part.getInputs())
        own.push_back(bound.lookup(input));
      for (Value result : part.getResults())
        own.push_back(bound[result] = body.getArgument(nextResult++));
      PartBuilder(part, own, *machine).build(bodyBuilder);
      if (auto keeps = part->getAttrOfType<DenseI64ArrayAttr>(kResidentAttr))
        body.back().setAttr(kResidentAttr, keepsOf(keeps.asArrayRef(), own));
      if (auto accesses = part->getAttrOfType<ArrayAttr>(kAccessesAttr))
        body.back().setAttr(kAccessesAttr, accessesOf(accesses, own, body.getNumArguments()));
    }
    name = shareEqual(program);
    builder.setInsertionPointAfter(last);
    auto symbol = SymbolRefAttr::get(&getContext(), kKernelModule, {FlatSymbolRefAttr::get(&getContext(), name)});
    auto launch = LaunchOp::create(builder, loc, results, symbol, inputs.getArrayRef(), /*tied=*/DenseI64ArrayAttr());
    unsigned next = 0;
    for (SubprogramOp part : parts)
      for (Value result : part.getResults())
        result.replaceAllUsesWith(launch.getResult(next++));
    for (SubprogramOp part : llvm::reverse(parts))
      part.erase();
  }

  llvm::StringMap<StringAttr> programsByText;
  const Target *machine = nullptr;

  /// Checks that composing has left only roots, which are placed in the iteration space.
  LogicalResult checkComposed(ArrayRef<SubprogramOp> parts) {
    for (SubprogramOp part : parts)
      for (auto expr : part.getBody().getOps<ExprOp>())
        if (!expr.getDims())
          return expr.emitOpError("has no dims: run tile-compose before tile-lower-to-program");
    return success();
  }

  void runOnOperation() override {
    programsByText.clear();
    FailureOr<Target> known = targetOrError(getOperation(), target);
    if (failed(known))
      return signalPassFailure();
    machine = &*known;
    SmallVector<SmallVector<SubprogramOp>> kernels = collectKernels(getOperation());
    if (kernels.empty())
      return;
    for (ArrayRef<SubprogramOp> parts : kernels)
      if (failed(checkComposed(parts)))
        return signalPassFailure();
    ModuleOp module = kernelModule(getOperation());
    llvm::StringSet<> names;
    for (SmallVector<SubprogramOp> &parts : kernels) {
      std::string name = parts.front().getSymName().str();
      for (unsigned suffix = 0; !names.insert(name).second; ++suffix)
        name = (parts.front().getSymName() + "_" + Twine(suffix)).str();
      lower(parts, module, name);
    }
  }
};
} // namespace
