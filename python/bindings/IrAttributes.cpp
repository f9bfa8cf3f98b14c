// Attributes as Python values. Names and constructors are those of upstream's `mlir.ir`.
#include "python/bindings/Ir.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
struct IntegerAttr : Attribute {};
struct BoolAttr : Attribute {};
struct FloatAttr : Attribute {};
struct StringAttr : Attribute {};
struct UnitAttr : Attribute {};
struct TypeAttr : Attribute {};
struct ArrayAttr : Attribute {};
struct DictAttr : Attribute {};
struct DenseI64ArrayAttr : Attribute {};
struct DenseI32ArrayAttr : Attribute {};
struct AffineMapAttr : Attribute {};
struct IntegerSetAttr : Attribute {};
struct SymbolRefAttr : Attribute {};
struct FlatSymbolRefAttr : SymbolRefAttr {};
struct DenseElementsAttr : Attribute {};
struct TileAttr : Attribute {};

using MaybeContext = std::optional<std::shared_ptr<Session>>;

template <typename T> T make(const Context &context, MlirAttribute value) {
  T result;
  result.context = context;
  result.value = value;
  return result;
}

/// Reads the numbers of dense elements.
nb::object denseValue(const Attribute &self, intptr_t i) {
  MlirAttribute value = self.value;
  MlirType element = mlirShapedTypeGetElementType(mlirAttributeGetType(value));
  if (mlirTypeIsAF32(element))
    return nb::cast(mlirDenseElementsAttrGetFloatValue(value, i));
  if (mlirTypeIsAF64(element))
    return nb::cast(mlirDenseElementsAttrGetDoubleValue(value, i));
  if (mlirTypeIsAIndex(element))
    return nb::cast(mlirDenseElementsAttrGetIndexValue(value, i));
  if (mlirTypeIsAInteger(element)) {
    bool isUnsigned = mlirIntegerTypeIsUnsigned(element);
    switch (mlirIntegerTypeGetWidth(element)) {
    case 1:
      return nb::cast(mlirDenseElementsAttrGetBoolValue(value, i));
    case 8:
      return isUnsigned ? nb::cast(mlirDenseElementsAttrGetUInt8Value(value, i))
                        : nb::cast(mlirDenseElementsAttrGetInt8Value(value, i));
    case 16:
      return isUnsigned ? nb::cast(mlirDenseElementsAttrGetUInt16Value(value, i))
                        : nb::cast(mlirDenseElementsAttrGetInt16Value(value, i));
    case 32:
      return isUnsigned ? nb::cast(mlirDenseElementsAttrGetUInt32Value(value, i))
                        : nb::cast(mlirDenseElementsAttrGetInt32Value(value, i));
    case 64:
      return isUnsigned ? nb::cast(mlirDenseElementsAttrGetUInt64Value(value, i))
                        : nb::cast(mlirDenseElementsAttrGetInt64Value(value, i));
    }
  }
  std::string type = printed([&](auto callback, void *to) { mlirTypePrint(element, callback, to); });
  raiseError("elements of type " + type + " are not read as Python numbers; str() prints them");
}

void bindScalars(nb::module_ &m) {
  nb::class_<IntegerAttr, Attribute>(m, "IntegerAttr")
      .def_static(
          "get",
          [](const Type &type, int64_t value) {
            if (!mlirTypeIsAInteger(type.value) && !mlirTypeIsAIndex(type.value))
              raiseError("the type of an integer attribute is an integer or index type");
            unsigned width = mlirTypeIsAIndex(type.value) ? 64 : mlirIntegerTypeGetWidth(type.value);
            if (width < 64 && (width == 0 ? value != 0 : value < -(1ll << (width - 1)) || value >= 1ll << width))
              raiseError(std::to_string(value) + " does not fit into " + std::to_string(width) + " bits");
            return make<IntegerAttr>(type.context, mlirIntegerAttrGet(type.value, value));
          },
          "type"_a, "value"_a)
      .def_prop_ro("value", [](const IntegerAttr &self) -> int64_t {
        MlirType type = mlirAttributeGetType(self.value);
        if (mlirTypeIsAInteger(type) && mlirIntegerTypeGetWidth(type) > 64)
          raiseError("an integer of more than 64 bits is not read as a Python number; str() prints it");
        if (mlirTypeIsAIndex(type) || mlirIntegerTypeIsSignless(type))
          return mlirIntegerAttrGetValueInt(self.value);
        return mlirIntegerTypeIsSigned(type) ? mlirIntegerAttrGetValueSInt(self.value)
                                             : static_cast<int64_t>(mlirIntegerAttrGetValueUInt(self.value));
      });
  nb::class_<BoolAttr, Attribute>(m, "BoolAttr")
      .def_static(
          "get",
          [](bool value, MaybeContext context) {
            Context owner = contextOr(context);
            return make<BoolAttr>(owner, mlirBoolAttrGet(owner->get(), value));
          },
          "value"_a, "context"_a = nb::none())
      .def_prop_ro("value", [](const BoolAttr &self) { return mlirBoolAttrGetValue(self.value); });
  nb::class_<FloatAttr, Attribute>(m, "FloatAttr")
      .def_static(
          "get",
          [](const Type &type, double value) {
            if (!mlirTypeIsAFloat(type.value))
              raiseError("the type of a float attribute is a float type");
            return make<FloatAttr>(type.context, mlirFloatAttrDoubleGet(type.context->get(), type.value, value));
          },
          "type"_a, "value"_a)
      .def_prop_ro("value", [](const FloatAttr &self) { return mlirFloatAttrGetValueDouble(self.value); });
  nb::class_<StringAttr, Attribute>(m, "StringAttr")
      .def_static(
          "get",
          [](std::string_view value, MaybeContext context) {
            Context owner = contextOr(context);
            return make<StringAttr>(owner, mlirStringAttrGet(owner->get(), toRef(value)));
          },
          "value"_a, "context"_a = nb::none())
      .def_prop_ro("value", [](const StringAttr &self) { return str(mlirStringAttrGetValue(self.value)); });
  nb::class_<UnitAttr, Attribute>(m, "UnitAttr")
      .def_static(
          "get",
          [](MaybeContext context) {
            Context owner = contextOr(context);
            return make<UnitAttr>(owner, mlirUnitAttrGet(owner->get()));
          },
          "context"_a = nb::none())
      .def_prop_ro("value", [](const UnitAttr &) { return true; });
  nb::class_<TypeAttr, Attribute>(m, "TypeAttr")
      .def_static(
          "get", [](const Type &type) { return make<TypeAttr>(type.context, mlirTypeAttrGet(type.value)); }, "type"_a)
      .def_prop_ro(
          "value", [](const TypeAttr &self) { return wrap(self.context, mlirTypeAttrGetValue(self.value)); },
          nb::sig("def value(self) -> Type"));
  nb::class_<SymbolRefAttr, Attribute>(m, "SymbolRefAttr");
  nb::class_<FlatSymbolRefAttr, SymbolRefAttr>(m, "FlatSymbolRefAttr")
      .def_static(
          "get",
          [](std::string_view symbol, MaybeContext context) {
            Context owner = contextOr(context);
            return make<FlatSymbolRefAttr>(owner, mlirFlatSymbolRefAttrGet(owner->get(), toRef(symbol)));
          },
          "symbol"_a, "context"_a = nb::none())
      .def_prop_ro("value",
                   [](const FlatSymbolRefAttr &self) { return str(mlirFlatSymbolRefAttrGetValue(self.value)); });
}

/// Binds a dense array of integers.
template <typename T, typename Number>
void bindDenseArray(nb::module_ &m, const char *name, MlirAttribute (*build)(MlirContext, intptr_t, Number const *),
                    intptr_t (*size)(MlirAttribute), Number (*element)(MlirAttribute, intptr_t)) {
  nb::class_<T, Attribute>(m, name)
      .def_static(
          "get",
          [build](const std::vector<Number> &values, MaybeContext context) {
            Context owner = contextOr(context);
            return make<T>(owner, build(owner->get(), values.size(), values.data()));
          },
          "values"_a, "context"_a = nb::none())
      .def("__len__", [size](const T &self) { return size(self.value); })
      .def("__getitem__",
           [size, element](const T &self, intptr_t i) {
             if (i < 0)
               i += size(self.value);
             if (i < 0 || i >= size(self.value))
               throw nb::index_error();
             return element(self.value, i);
           })
      .def_prop_ro("value", [size, element](const T &self) {
        std::vector<Number> values;
        for (intptr_t i = 0, n = size(self.value); i < n; ++i)
          values.push_back(element(self.value, i));
        return values;
      });
}

void bindContainers(nb::module_ &m) {
  nb::class_<ArrayAttr, Attribute>(m, "ArrayAttr")
      .def_static(
          "get",
          [](const std::vector<Attribute> &values, MaybeContext context) {
            Context owner = contextOr(context);
            std::vector<MlirAttribute> elements;
            for (const Attribute &value : values) {
              requireSame(owner, value.context);
              elements.push_back(value.value);
            }
            return make<ArrayAttr>(owner, mlirArrayAttrGet(owner->get(), elements.size(), elements.data()));
          },
          "values"_a, "context"_a = nb::none())
      .def("__len__", [](const ArrayAttr &self) { return mlirArrayAttrGetNumElements(self.value); })
      .def(
          "__getitem__",
          [](const ArrayAttr &self, intptr_t i) {
            intptr_t n = mlirArrayAttrGetNumElements(self.value);
            if (i < 0)
              i += n;
            if (i < 0 || i >= n)
              throw nb::index_error();
            return wrap(self.context, mlirArrayAttrGetElement(self.value, i));
          },
          nb::sig("def __getitem__(self, arg: int, /) -> Attribute"));
  nb::class_<DictAttr, Attribute>(m, "DictAttr")
      .def_static(
          "get",
          [](const nb::dict &values, MaybeContext context) {
            Context owner = contextOr(context);
            std::vector<MlirNamedAttribute> elements;
            for (auto [name, value] : values) {
              const auto &attribute = nb::cast<Attribute &>(value);
              requireSame(owner, attribute.context);
              elements.push_back(mlirNamedAttributeGet(
                  mlirIdentifierGet(owner->get(), toRef(nb::cast<std::string>(name))), attribute.value));
            }
            return make<DictAttr>(owner, mlirDictionaryAttrGet(owner->get(), elements.size(), elements.data()));
          },
          "values"_a, "context"_a = nb::none(),
          nb::sig("def get(values: dict[str, Attribute], context: Context | None = None) -> DictAttr"))
      .def_prop_ro(
          "value",
          [](const DictAttr &self) {
            nb::dict result;
            for (intptr_t i = 0, n = mlirDictionaryAttrGetNumElements(self.value); i < n; ++i) {
              MlirNamedAttribute each = mlirDictionaryAttrGetElement(self.value, i);
              result[str(mlirIdentifierStr(each.name)).c_str()] = wrap(self.context, each.attribute);
            }
            return result;
          },
          nb::sig("def value(self) -> dict[str, Attribute]"));
  bindDenseArray<DenseI64ArrayAttr, int64_t>(m, "DenseI64ArrayAttr", mlirDenseI64ArrayGet, mlirDenseArrayGetNumElements,
                                             mlirDenseI64ArrayGetElement);
  bindDenseArray<DenseI32ArrayAttr, int32_t>(m, "DenseI32ArrayAttr", mlirDenseI32ArrayGet, mlirDenseArrayGetNumElements,
                                             mlirDenseI32ArrayGetElement);
  nb::class_<DenseElementsAttr, Attribute>(m, "DenseElementsAttr", "A constant tensor.")
      .def_prop_ro("is_splat", [](const DenseElementsAttr &self) { return mlirDenseElementsAttrIsSplat(self.value); })
      .def("__len__", [](const DenseElementsAttr &self) { return mlirElementsAttrGetNumElements(self.value); })
      .def(
          "__getitem__",
          [](const DenseElementsAttr &self, intptr_t i) {
            if (i < 0 || i >= mlirElementsAttrGetNumElements(self.value))
              throw nb::index_error();
            return denseValue(self, i);
          },
          nb::sig("def __getitem__(self, arg: int, /) -> int | float | bool"));
}
} // namespace

nb::object python::tileValue(const Context &context, const std::pair<std::string, TileFields> &described) {
  nb::dict fields;
  for (const auto &[name, field] : described.second)
    fields[name.c_str()] = std::visit(
        [&](const auto &value) -> nb::object {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, MlirAttribute> || std::is_same_v<T, MlirType>)
            return wrap(context, value);
          else
            return nb::cast(value);
        },
        field);
  return nb::module_::import_("tilewright.dialects.tile").attr("value_of")(described.first, fields);
}

nb::object python::wrap(const Context &context, MlirAttribute attribute) {
  if (mlirAttributeIsNull(attribute))
    return nb::none();
  if (mlirAttributeIsABool(attribute)) // before integers, of which it is one
    return nb::cast(make<BoolAttr>(context, attribute));
  if (mlirAttributeIsAInteger(attribute))
    return nb::cast(make<IntegerAttr>(context, attribute));
  if (mlirAttributeIsAFloat(attribute))
    return nb::cast(make<FloatAttr>(context, attribute));
  if (mlirAttributeIsAString(attribute))
    return nb::cast(make<StringAttr>(context, attribute));
  if (mlirAttributeIsAUnit(attribute))
    return nb::cast(make<UnitAttr>(context, attribute));
  if (mlirAttributeIsAType(attribute))
    return nb::cast(make<TypeAttr>(context, attribute));
  if (mlirAttributeIsAArray(attribute))
    return nb::cast(make<ArrayAttr>(context, attribute));
  if (mlirAttributeIsADictionary(attribute))
    return nb::cast(make<DictAttr>(context, attribute));
  if (mlirAttributeIsADenseI64Array(attribute))
    return nb::cast(make<DenseI64ArrayAttr>(context, attribute));
  if (mlirAttributeIsADenseI32Array(attribute))
    return nb::cast(make<DenseI32ArrayAttr>(context, attribute));
  if (mlirAttributeIsAAffineMap(attribute))
    return nb::cast(make<AffineMapAttr>(context, attribute));
  if (mlirAttributeIsAIntegerSet(attribute))
    return nb::cast(make<IntegerSetAttr>(context, attribute));
  if (mlirAttributeIsAFlatSymbolRef(attribute))
    return nb::cast(make<FlatSymbolRefAttr>(context, attribute));
  if (mlirAttributeIsASymbolRef(attribute))
    return nb::cast(make<SymbolRefAttr>(context, attribute));
  if (mlirAttributeIsADenseElements(attribute))
    return nb::cast(make<DenseElementsAttr>(context, attribute));
  if (tileFields(attribute))
    return nb::cast(make<TileAttr>(context, attribute));
  return nb::cast(make<Attribute>(context, attribute));
}

void python::bindAttributes(nb::module_ &m) {
  nb::class_<Attribute>(m, "Attribute", "A constant that belongs to an operation. Equal attributes are one object.")
      .def_static(
          "parse",
          [](std::string_view text, MaybeContext context) {
            Context owner = contextOr(context);
            CollectedDiagnostics diagnostics(owner->get());
            MlirAttribute parsed = mlirAttributeParseGet(owner->get(), toRef(text));
            if (mlirAttributeIsNull(parsed))
              raiseError(diagnostics.take(), "'" + std::string(text) + "' is not an attribute");
            return wrap(owner, parsed);
          },
          "text"_a, "context"_a = nb::none(),
          nb::sig("def parse(text: str, context: Context | None = None) -> Attribute"))
      .def_prop_ro(
          "value",
          [](const Attribute &self) -> nb::object {
            std::string text = printed([&](auto callback, void *to) { mlirAttributePrint(self.value, callback, to); });
            raiseError("attribute " + text + " has no value in Python; str() prints it");
          },
          nb::sig("def value(self) -> typing.Any"), "The attribute as a Python value, if its kind has one.")
      .def("__str__",
           [](const Attribute &self) {
             return printed([&](auto callback, void *to) { mlirAttributePrint(self.value, callback, to); });
           })
      .def("__repr__",
           [](const Attribute &self) {
             return "<attribute " +
                    printed([&](auto callback, void *to) { mlirAttributePrint(self.value, callback, to); }) + ">";
           })
      .def(
          "__eq__", [](const Attribute &a, const Attribute &b) { return mlirAttributeEqual(a.value, b.value); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Attribute &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
  bindScalars(m);
  bindContainers(m);
  nb::class_<AffineMapAttr, Attribute>(m, "AffineMapAttr")
      .def_static(
          "get", [](const AffineMap &map) { return make<AffineMapAttr>(map.context, mlirAffineMapAttrGet(map.value)); },
          "map"_a)
      .def_prop_ro("value", [](const AffineMapAttr &self) {
        return AffineMap{{self.context, mlirAffineMapAttrGetValue(self.value)}};
      });
  nb::class_<IntegerSetAttr, Attribute>(m, "IntegerSetAttr")
      .def_static(
          "get",
          [](const IntegerSet &set) { return make<IntegerSetAttr>(set.context, mlirIntegerSetAttrGet(set.value)); },
          "set"_a)
      .def_prop_ro("value", [](const IntegerSetAttr &self) {
        return IntegerSet{{self.context, mlirIntegerSetAttrGetValue(self.value)}};
      });
  nb::class_<TileAttr, Attribute>(m, "TileAttr", "An attribute of the `tile` dialect.")
      .def_prop_ro(
          "value", [](const TileAttr &self) { return tileValue(self.context, *tileFields(self.value)); },
          nb::sig("def value(self) -> object"), "The attribute as a value of `tilewright.dialects.tile`.");
}
