// Types as Python values. Names and constructors are those of upstream's `mlir.ir`.
#include "python/bindings/Ir.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
struct IntegerType : Type {};
struct IndexType : Type {};
struct FloatType : Type {};
struct FunctionType : Type {};
struct ShapedType : Type {};
struct RankedTensorType : ShapedType {};
struct VectorType : ShapedType {};
struct MemRefType : ShapedType {};
struct TileType : Type {};

using MaybeContext = std::optional<std::shared_ptr<Session>>;

template <typename T> T make(const Context &context, MlirType value) {
  T result;
  result.context = context;
  result.value = value;
  return result;
}

std::string textOf(MlirType type) {
  return printed([&](auto callback, void *to) { mlirTypePrint(type, callback, to); });
}

/// Extents with -1 for a dynamic one, which MLIR writes as `?`.
std::vector<int64_t> shapeOf(MlirType type) {
  if (!mlirShapedTypeHasRank(type))
    raiseError("type " + textOf(type) + " has no rank");
  std::vector<int64_t> shape;
  for (intptr_t i = 0, n = mlirShapedTypeGetRank(type); i < n; ++i)
    shape.push_back(mlirShapedTypeIsDynamicDim(type, i) ? -1 : mlirShapedTypeGetDimSize(type, i));
  return shape;
}

template <typename T, typename F> T checkedShaped(const Type &element, std::vector<int64_t> shape, F &&build) {
  CollectedDiagnostics diagnostics(element.context->get());
  for (int64_t &extent : shape)
    if (extent == -1)
      extent = mlirShapedTypeGetDynamicSize();
  MlirType type = build(mlirLocationUnknownGet(element.context->get()), shape);
  if (mlirTypeIsNull(type))
    raiseError(diagnostics.take(), "the shape or element type is not allowed");
  return make<T>(element.context, type);
}

std::vector<MlirType> raw(const Context &context, const std::vector<Type> &types) {
  std::vector<MlirType> result;
  for (const Type &type : types) {
    requireSame(context, type.context);
    result.push_back(type.value);
  }
  return result;
}

void bindShaped(nb::module_ &m) {
  nb::class_<ShapedType, Type>(m, "ShapedType")
      .def_prop_ro(
          "shape", [](const ShapedType &self) { return shapeOf(self.value); }, "Extents; -1 for a dynamic one.")
      .def_prop_ro(
          "element_type",
          [](const ShapedType &self) { return wrap(self.context, mlirShapedTypeGetElementType(self.value)); },
          nb::sig("def element_type(self) -> Type"));
  nb::class_<RankedTensorType, ShapedType>(m, "RankedTensorType")
      .def_static(
          "get",
          [](std::vector<int64_t> shape, const Type &element) {
            return checkedShaped<RankedTensorType>(element, shape, [&](MlirLocation loc, auto &extents) {
              return mlirRankedTensorTypeGetChecked(loc, extents.size(), extents.data(), element.value,
                                                    mlirAttributeGetNull());
            });
          },
          "shape"_a, "element_type"_a);
  nb::class_<VectorType, ShapedType>(m, "VectorType")
      .def_static(
          "get",
          [](std::vector<int64_t> shape, const Type &element) {
            return checkedShaped<VectorType>(element, shape, [&](MlirLocation loc, auto &extents) {
              return mlirVectorTypeGetChecked(loc, extents.size(), extents.data(), element.value);
            });
          },
          "shape"_a, "element_type"_a);
  nb::class_<MemRefType, ShapedType>(m, "MemRefType");
}
} // namespace

nb::object python::wrap(const Context &context, MlirType type) {
  if (mlirTypeIsAInteger(type))
    return nb::cast(make<IntegerType>(context, type));
  if (mlirTypeIsAIndex(type))
    return nb::cast(make<IndexType>(context, type));
  if (mlirTypeIsAFloat(type))
    return nb::cast(make<FloatType>(context, type));
  if (mlirTypeIsARankedTensor(type))
    return nb::cast(make<RankedTensorType>(context, type));
  if (mlirTypeIsAVector(type))
    return nb::cast(make<VectorType>(context, type));
  if (mlirTypeIsAMemRef(type))
    return nb::cast(make<MemRefType>(context, type));
  if (mlirTypeIsAShaped(type))
    return nb::cast(make<ShapedType>(context, type));
  if (mlirTypeIsAFunction(type))
    return nb::cast(make<FunctionType>(context, type));
  if (tileFields(type))
    return nb::cast(make<TileType>(context, type));
  return nb::cast(make<Type>(context, type));
}

void python::bindTypes(nb::module_ &m) {
  nb::class_<Type>(m, "Type", "The type of a value. Equal types are one object.")
      .def_static(
          "parse",
          [](std::string_view text, MaybeContext context) {
            Context owner = contextOr(context);
            CollectedDiagnostics diagnostics(owner->get());
            MlirType parsed = mlirTypeParseGet(owner->get(), toRef(text));
            if (mlirTypeIsNull(parsed))
              raiseError(diagnostics.take(), "'" + std::string(text) + "' is not a type");
            return wrap(owner, parsed);
          },
          "text"_a, "context"_a = nb::none(), nb::sig("def parse(text: str, context: Context | None = None) -> Type"))
      .def("__str__", [](const Type &self) { return textOf(self.value); })
      .def("__repr__", [](const Type &self) { return "<type " + textOf(self.value) + ">"; })
      .def(
          "__eq__", [](const Type &a, const Type &b) { return mlirTypeEqual(a.value, b.value); }, nb::is_operator(),
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Type &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
  nb::class_<IntegerType, Type>(m, "IntegerType")
      .def_static(
          "get_signless",
          [](unsigned width, MaybeContext context) {
            Context owner = contextOr(context);
            if (width >= 1u << 24)
              raiseError("an integer type has at most " + std::to_string((1u << 24) - 1) + " bits");
            return make<IntegerType>(owner, mlirIntegerTypeGet(owner->get(), width));
          },
          "width"_a, "context"_a = nb::none())
      .def_prop_ro("width", [](const IntegerType &self) { return mlirIntegerTypeGetWidth(self.value); })
      .def_prop_ro("is_signless", [](const IntegerType &self) { return mlirIntegerTypeIsSignless(self.value); })
      .def_prop_ro("is_unsigned", [](const IntegerType &self) { return mlirIntegerTypeIsUnsigned(self.value); });
  nb::class_<IndexType, Type>(m, "IndexType")
      .def_static(
          "get",
          [](MaybeContext context) {
            Context owner = contextOr(context);
            return make<IndexType>(owner, mlirIndexTypeGet(owner->get()));
          },
          "context"_a = nb::none());
  nb::class_<FloatType, Type>(m, "FloatType", "A float type; `Type.parse(\"f32\")` gets one.")
      .def_prop_ro("width", [](const FloatType &self) { return mlirFloatTypeGetWidth(self.value); });
  nb::class_<FunctionType, Type>(m, "FunctionType")
      .def_static(
          "get",
          [](const std::vector<Type> &inputs, const std::vector<Type> &results, MaybeContext context) {
            Context owner = contextOr(context);
            std::vector<MlirType> from = raw(owner, inputs), to = raw(owner, results);
            return make<FunctionType>(
                owner, mlirFunctionTypeGet(owner->get(), from.size(), from.data(), to.size(), to.data()));
          },
          "inputs"_a, "results"_a, "context"_a = nb::none())
      .def_prop_ro(
          "inputs",
          [](const FunctionType &self) {
            nb::list types;
            for (intptr_t i = 0, n = mlirFunctionTypeGetNumInputs(self.value); i < n; ++i)
              types.append(wrap(self.context, mlirFunctionTypeGetInput(self.value, i)));
            return types;
          },
          nb::sig("def inputs(self) -> list[Type]"))
      .def_prop_ro(
          "results",
          [](const FunctionType &self) {
            nb::list types;
            for (intptr_t i = 0, n = mlirFunctionTypeGetNumResults(self.value); i < n; ++i)
              types.append(wrap(self.context, mlirFunctionTypeGetResult(self.value, i)));
            return types;
          },
          nb::sig("def results(self) -> list[Type]"));
  bindShaped(m);
  nb::class_<TileType, Type>(m, "TileType", "A type of the `tile` dialect.")
      .def_prop_ro(
          "value", [](const TileType &self) { return tileValue(self.context, *tileFields(self.value)); },
          nb::sig("def value(self) -> object"), "The type as a value of `tilewright.dialects.tile`.");
}
