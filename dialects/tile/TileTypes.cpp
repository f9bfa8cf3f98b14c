// Syntax, verifier and geometry of slices.
#include "dialects/tile/TileDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::tile;

#define GET_TYPEDEF_CLASSES
#include "dialects/tile/TileTypes.cpp.inc"

void TileDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/tile/TileTypes.cpp.inc"
      >();
}

int64_t tilewright::tile::elementBytes(Type type) {
  if (isa<IndexType>(type))
    return 8;
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

int64_t SliceType::getNumElements() const { return ShapedType::getNumElements(getShape()); }
int64_t SliceType::getElementBytes() const { return elementBytes(getElementType()); }

int64_t SliceType::getWidth() const {
  if (getStrides().empty())
    return getNumElements();
  int64_t width = 1;
  for (int64_t dim = getRank() - 1; dim >= 0 && getStrides()[dim] == width; --dim)
    width *= getShape()[dim];
  return width;
}

int64_t SliceType::getNum() const {
  int64_t width = getWidth();
  return width ? getNumElements() / width : 0;
}

int64_t SliceType::getStride() const {
  int64_t width = 1;
  for (int64_t dim = getRank() - 1; dim >= 0; --dim) {
    if (!getStrides().empty() && getStrides()[dim] != width)
      return getStrides()[dim];
    width *= getShape()[dim];
  }
  return width;
}

// slice<6144x512xf32, global> or slice<4x16xf32, global, strides [512, 1]>.
Type SliceType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape, strides;
  Type elementType;
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(elementType) ||
      parser.parseComma() || parser.parseKeyword(&keyword))
    return {};
  std::optional<Space> space = symbolizeSpace(keyword);
  if (!space)
    return parser.emitError(loc, "unknown memory space '") << keyword << "'", Type();
  if (succeeded(parser.parseOptionalComma())) {
    auto parseStride = [&] { return parser.parseInteger(strides.emplace_back()); };
    if (parser.parseKeyword("strides") || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseStride))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SliceType>(loc, parser.getContext(), shape, elementType, *space, ArrayRef<int64_t>(strides));
}

void SliceType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape())
    printer << size << 'x';
  printer << getElementType() << ", " << stringifySpace(getSpace());
  if (!getStrides().empty()) {
    printer << ", strides [";
    llvm::interleaveComma(getStrides(), printer);
    printer << ']';
  }
  printer << '>';
}

LogicalResult SliceType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                Type elementType, Space space, ArrayRef<int64_t> strides) {
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; }))
    return emitError() << "T1: the shape of a slice must be static";
  if (!elementType.isIntOrIndexOrFloat())
    return emitError() << "T1: a slice holds integers or floats, not " << elementType;
  if (!strides.empty() && strides.size() != shape.size())
    return emitError() << "T2: expected " << shape.size() << " strides, got " << strides.size();
  return success();
}
