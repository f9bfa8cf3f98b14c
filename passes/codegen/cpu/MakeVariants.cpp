// Makes one variant of each program per instruction set. The entry point chooses among the variants when it runs
// (WrapCpuAbi.cpp). Variants share the plan, the workgroups and the offsets of buffers, so a dispatch does not depend
// on the variant. They differ in the width of their vectors and in their instructions, which later passes choose.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/target/ProcessorData.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

namespace tilewright {
#define GEN_PASS_DEF_MAKEVARIANTS
#include "passes/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
struct Variant {
  std::string target; ///< name or file that the user gave
  std::string name;
  uint64_t bits;
};

struct MakeVariants : tilewright::impl::MakeVariantsBase<MakeVariants> {
  using MakeVariantsBase::MakeVariantsBase;

  FailureOr<SmallVector<Variant>> lookup() {
    SmallVector<Variant> variants;
    llvm::StringSet<> names;
    for (const std::string &target : targets) {
      llvm::Expected<Target> known = lookupTarget(target);
      if (!known)
        return getOperation().emitError(llvm::toString(known.takeError()));
      llvm::Expected<uint64_t> bits = processorBits(*known);
      if (!bits)
        return getOperation().emitError(llvm::toString(bits.takeError()));
      if (!names.insert(known->name).second)
        return getOperation().emitError("target '") << known->name << "' is given twice";
      variants.push_back({target, known->name, *bits});
    }
    return variants;
  }

  /// Emits an error if a variant would never be chosen: every processor that can run it can run an earlier one as well.
  LogicalResult checkOrder(ArrayRef<Variant> variants) {
    for (auto [i, later] : llvm::enumerate(variants))
      for (const Variant &earlier : variants.take_front(i))
        if ((earlier.bits & ~later.bits) == 0)
          return getOperation().emitError("variant '")
                 << later.name << "' would never be chosen, because '" << earlier.name
                 << "' comes before it and needs no more; put the widest first";
    return success();
  }

  static void mark(ProgramOp program, const Variant &variant, StringRef of) {
    Builder builder(program.getContext());
    program->setAttr(kTargetAttr, builder.getStringAttr(variant.target));
    program->setAttr(kVariantOfAttr, builder.getStringAttr(of));
  }

  void runOnOperation() override {
    if (targets.size() < 2)
      return markAllAnalysesPreserved(); // without a choice, the runtime need not report the features of the target
    FailureOr<SmallVector<Variant>> variants = lookup();
    if (failed(variants) || failed(checkOrder(*variants)))
      return signalPassFailure();
    for (ProgramOp program : llvm::to_vector(getOperation().getOps<ProgramOp>())) {
      std::string name = program.getSymName().str();
      OpBuilder builder(program);
      builder.setInsertionPointAfter(program);
      mark(program, variants->front(), name); // it keeps its name, to which launches refer
      for (const Variant &variant : ArrayRef(*variants).drop_front()) {
        auto copy = cast<ProgramOp>(builder.clone(*program));
        copy.setSymName(name + "." + variant.name);
        copy->walk([](ComputeOp compute) { compute->removeAttr(kBlockingAttr); }); // it is for the first target
        mark(copy, variant, name);
        ++copies;
      }
    }
  }
};
} // namespace
