// Verifies the discardable attributes that passes put on ops (TileAttributeNames.h): a table states the type of each
// and the ops on which it may stand. Other attributes that begin with "tile." are errors, so a misspelt name is not
// ignored.
#include "dialects/tile/TileAttributeNames.h"
#include "dialects/tile/TileDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A discardable attribute: its name, the test of its type and value, their description, and the ops that may have it.
struct Declaration {
  llvm::StringLiteral name;
  bool (*holds)(Attribute value);
  llvm::StringLiteral expected;
  bool (*mayHave)(Operation *op);
  llvm::StringLiteral ops;
};
} // namespace

//===----------------------------------------------------------------------===//
// Types and values
//===----------------------------------------------------------------------===//

template <typename Type> static bool isOf(Attribute value) { return isa<Type>(value); }

template <int64_t least> static bool isAtLeast(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

static bool isFormName(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && symbolizeForm(name);
}

static bool isForms(Attribute value) {
  auto forms = dyn_cast<ArrayAttr>(value);
  if (!forms || !llvm::all_of(forms, llvm::IsaPred<FormAttr>))
    return false;
  llvm::DenseSet<std::pair<StringRef, unsigned>> seen;
  return llvm::all_of(forms.getAsRange<FormAttr>(),
                      [&](FormAttr form) { return seen.insert({form.getForm(), form.getNumber()}).second; });
}

static bool isTriangles(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && list.size() == 3 && isa<IntegerAttr>(list[0]) && isa<FloatAttr>(list[1]) && isa<FloatAttr>(list[2]);
}

static bool isPairs(Attribute value) {
  auto list = dyn_cast<DenseI64ArrayAttr>(value);
  return list && list.size() % 2 == 0;
}

static bool isSwizzledShape(Attribute value) {
  auto shape = dyn_cast<DenseI64ArrayAttr>(value);
  return shape && shape.size() == 2 && shape[0] > 0 && shape[1] > 0;
}

static bool isMatrix(Attribute value) {
  auto elements = dyn_cast<DenseElementsAttr>(value);
  return elements && elements.getElementType().isF32() && elements.getType().getRank() == 2;
}

static bool isAccesses(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, llvm::IsaPred<AccessAttr>);
}

static bool isStaged(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, [](Attribute entry) {
           auto lifetime = dyn_cast<LifetimeAttr>(entry);
           return lifetime && lifetime.getValue() != Lifetime::stream;
         });
}

static bool isArrays(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  return list && llvm::all_of(list, llvm::IsaPred<DenseI64ArrayAttr>);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static bool isAny(Operation *) { return true; }
template <typename... Ops> static bool isOneOf(Operation *op) { return isa<Ops...>(op); }

static constexpr llvm::StringLiteral kText = "a string", kUnit = "a unit", kCount = "an i64 of at least 1",
                                     kNumber = "an i64 of at least 0", kMap = "an affine map",
                                     kFormList = "an array of #tile.form, each with another form or number",
                                     kAnyOp = "any op", kFunctions = "functions",
                                     kParts = "tile.subprogram, tile.parallel and functions";

static const Declaration kDeclarations[] = {
    {kFormAttr, isFormName, "the name of a form", isAny, kAnyOp},
    {kFormsAttr, isForms, kFormList, isOneOf<FunctionOpInterface>, kFunctions},
    {kRequestedFormsAttr, isForms, kFormList, isOneOf<FunctionOpInterface>, kFunctions},
    {kCountedAttr, isOf<AffineMapAttr>, kMap, isAny, kAnyOp},
    {kForBf16Attr, isOf<UnitAttr>, kUnit, isAny, kAnyOp},
    {kSmallArgumentAttr, isOf<UnitAttr>, kUnit, isAny, kAnyOp},
    {kTrianglesAttr, isTriangles, "an array of an integer and two floats", isAny, kAnyOp},
    {kPackedWeightAttr, isOf<UnitAttr>, kUnit, isAny, kAnyOp},
    {kSwizzleAttr, isAtLeast<1>, kCount, isAny, kAnyOp},
    {kSwizzledAttr, isSwizzledShape, "an array of two positive i64", isAny, kAnyOp},
    {kFactorsAttr, isMatrix, "a dense tensor of f32 with two dims", isAny, kAnyOp},
    {kTileLinesAttr, isAtLeast<1>, kCount, isAny, kAnyOp},
    {kBlockingAttr, isOf<BlockingAttr>, "a #tile.blocking", isOneOf<ExprOp, ComputeOp>, "tile.expr and tile.compute"},
    {kThreadsAttr, isAtLeast<1>, kCount, isOneOf<SubprogramOp, ParallelOp, FunctionOpInterface>, kParts},
    {kGroupAttr, isAtLeast<0>, kNumber, isOneOf<SubprogramOp, ParallelOp, FunctionOpInterface>, kParts},
    {kOneKernelAttr, isOf<UnitAttr>, kUnit, isAny, kAnyOp},
    {kGivenAttr, isOf<UnitAttr>, kUnit, isAny, kAnyOp},
    {kRepeatedAttr, isOf<DenseI64ArrayAttr>, "an i64 array", isOneOf<ProgramOp>, "tile.program"},
    {kStepsAttr, isAtLeast<1>, kCount, isOneOf<SubprogramOp>, "tile.subprogram"},
    {kResidentAttr, isPairs, "an i64 array of pairs", isOneOf<SubprogramOp, ParallelOp>,
     "tile.subprogram and tile.parallel"},
    {kAccessesAttr, isAccesses, "an array of #tile.access", isOneOf<SubprogramOp, ParallelOp>,
     "tile.subprogram and tile.parallel"},
    {kStagedAttr, isStaged, "an array of #tile.lifetime, none of which is streamed", isOneOf<SubprogramOp>,
     "tile.subprogram"},
    {kClusterAttr, isAtLeast<1>, kCount, isOneOf<SubprogramOp, ParallelOp, ComputeOp, FunctionOpInterface>,
     "tile.subprogram, tile.parallel, tile.compute and functions"},
    {kAlignedAsAttr, isOf<AffineMapAttr>, kMap, isOneOf<AllocOp>, "tile.alloc"},
    {kResidentTileAttr, isAtLeast<0>, kNumber, isOneOf<AllocOp>, "tile.alloc"},
    {kUtilPropertiesAttr, isOf<DictionaryAttr>, "a dictionary", isOneOf<FunctionOpInterface>, kFunctions},
    {kUtilAttributesAttr, isOf<DictionaryAttr>, "a dictionary", isOneOf<FunctionOpInterface>, kFunctions},
    {kTargetAttr, isOf<StringAttr>, kText, isOneOf<ProgramOp, FunctionOpInterface>, "tile.program and functions"},
    {kVariantOfAttr, isOf<StringAttr>, kText, isOneOf<ProgramOp, FunctionOpInterface>, "tile.program and functions"},
    {kWorkgroupsAttr, isAtLeast<1>, kCount, isOneOf<FunctionOpInterface>, kFunctions},
    {kOutputsAttr, isAtLeast<0>, kNumber, isOneOf<FunctionOpInterface>, kFunctions},
    {kBlockBytesAttr, isAtLeast<0>, kNumber, isOneOf<FunctionOpInterface>, kFunctions},
    {kBindingBytesAttr, isOf<DenseI64ArrayAttr>, "an i64 array", isOneOf<FunctionOpInterface>, kFunctions},
    {kInPlaceAttr, isArrays, "an array of i64 arrays", isOneOf<FunctionOpInterface>, kFunctions},
    {kResidentBlocksAttr, isAtLeast<1>, kCount, isOneOf<SubprogramOp, ProgramOp, FunctionOpInterface>,
     "tile.subprogram, tile.program and functions"},
    {kResidentWeightAttr, isOf<UnitAttr>, kUnit, isOneOf<ComputeOp>, "tile.compute"},
    {kGridSyncAttr, isOf<UnitAttr>, kUnit, isOneOf<FunctionOpInterface>, kFunctions},
    {kUsesTilesAttr, isOf<UnitAttr>, kUnit, isOneOf<FunctionOpInterface>, kFunctions},
    {kMicroKernelAttr, isOf<StringAttr>, kText, isAny, kAnyOp},
};

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  const Declaration *known = llvm::find_if(kDeclarations, [&](const Declaration &own) { return own.name == name; });
  if (known == std::end(kDeclarations))
    return op->emitError() << "the tile dialect has no attribute '" << name << "'";
  if (!known->mayHave(op))
    return op->emitError() << "'" << name << "' is an attribute of " << known->ops;
  if (!known->holds(attribute.getValue()))
    return op->emitError() << "'" << name << "' must be " << known->expected;
  return success();
}
