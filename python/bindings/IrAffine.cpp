// Affine maps, their expressions, and integer sets as Python values.
#include "python/bindings/Ir.h"

#include "mlir-c/AffineExpr.h"

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

using MaybeContext = std::optional<std::shared_ptr<Session>>;

static std::string kindOf(MlirAffineExpr expr) {
  if (mlirAffineExprIsADim(expr))
    return "dim";
  if (mlirAffineExprIsASymbol(expr))
    return "symbol";
  if (mlirAffineExprIsAConstant(expr))
    return "constant";
  if (mlirAffineExprIsAAdd(expr))
    return "add";
  if (mlirAffineExprIsAMul(expr))
    return "mul";
  if (mlirAffineExprIsAMod(expr))
    return "mod";
  return mlirAffineExprIsAFloorDiv(expr) ? "floordiv" : "ceildiv";
}

/// Evaluates an expression at a point of the dims. Raises an error for a symbol or a point of too few dims.
static int64_t evaluate(MlirAffineExpr expr, const std::vector<int64_t> &point) {
  if (mlirAffineExprIsAConstant(expr))
    return mlirAffineConstantExprGetValue(expr);
  if (mlirAffineExprIsADim(expr)) {
    size_t dim = mlirAffineDimExprGetPosition(expr);
    if (dim >= point.size())
      raiseError("the point has no coordinate for d" + std::to_string(dim));
    return point[dim];
  }
  if (mlirAffineExprIsASymbol(expr))
    raiseError("an expression with symbols has no value at a point of the dims");
  int64_t lhs = evaluate(mlirAffineBinaryOpExprGetLHS(expr), point);
  int64_t rhs = evaluate(mlirAffineBinaryOpExprGetRHS(expr), point);
  if (mlirAffineExprIsAAdd(expr))
    return lhs + rhs;
  if (mlirAffineExprIsAMul(expr))
    return lhs * rhs;
  if (rhs <= 0)
    raiseError("a division by " + std::to_string(rhs) + " has no value");
  int64_t floor = lhs / rhs - (lhs % rhs < 0);
  if (mlirAffineExprIsAMod(expr))
    return lhs - floor * rhs;
  return floor + (mlirAffineExprIsACeilDiv(expr) && lhs % rhs != 0);
}

/// True if an expression uses no dims from `dims` on and no symbols, of which MLIR would not find out.
static bool usesOnly(MlirAffineExpr expr, intptr_t dims) {
  if (mlirAffineExprIsABinary(expr))
    return usesOnly(mlirAffineBinaryOpExprGetLHS(expr), dims) && usesOnly(mlirAffineBinaryOpExprGetRHS(expr), dims);
  return mlirAffineExprIsADim(expr) ? mlirAffineDimExprGetPosition(expr) < dims : !mlirAffineExprIsASymbol(expr);
}

template <typename T> static std::string textOf(const T &value, void (*print)(T, MlirStringCallback, void *)) {
  return printed([&](auto callback, void *to) { print(value, callback, to); });
}

/// Parses the text of a map or set, with or without the name that attributes have before it.
static MlirAttribute parse(const Context &owner, std::string_view name, std::string_view text) {
  std::string whole(text);
  if (whole.rfind(name, 0) != 0)
    whole = std::string(name) + "<" + whole + ">";
  CollectedDiagnostics diagnostics(owner->get());
  MlirAttribute parsed = mlirAttributeParseGet(owner->get(), toRef(whole));
  if (mlirAttributeIsNull(parsed))
    raiseError(diagnostics.take(), "'" + std::string(text) + "' is not an " + std::string(name));
  return parsed;
}

static void bindExpressions(nb::module_ &m) {
  using Binary = MlirAffineExpr (*)(MlirAffineExpr, MlirAffineExpr);
  auto expression = nb::class_<AffineExpr>(m, "AffineExpr", "A quasi-affine expression of the dims of a domain.");
  expression
      .def_static(
          "dim",
          [](unsigned position, MaybeContext context) {
            Context owner = contextOr(context);
            return AffineExpr{{owner, mlirAffineDimExprGet(owner->get(), position)}};
          },
          "position"_a, "context"_a = nb::none())
      .def_static(
          "constant",
          [](int64_t value, MaybeContext context) {
            Context owner = contextOr(context);
            return AffineExpr{{owner, mlirAffineConstantExprGet(owner->get(), value)}};
          },
          "value"_a, "context"_a = nb::none())
      .def_prop_ro(
          "kind", [](const AffineExpr &self) { return kindOf(self.value); },
          "One of dim, symbol, constant, add, mul, mod, floordiv and ceildiv.")
      .def_prop_ro("position",
                   [](const AffineExpr &self) {
                     if (!mlirAffineExprIsADim(self.value))
                       raiseError("only a dim has a position");
                     return mlirAffineDimExprGetPosition(self.value);
                   })
      .def_prop_ro("value",
                   [](const AffineExpr &self) {
                     if (!mlirAffineExprIsAConstant(self.value))
                       raiseError("only a constant has a value");
                     return mlirAffineConstantExprGetValue(self.value);
                   })
      .def(
          "evaluate",
          [](const AffineExpr &self, const std::vector<int64_t> &point) { return evaluate(self.value, point); },
          "point"_a);
  for (auto [name, part] : {std::pair{"lhs", &mlirAffineBinaryOpExprGetLHS}, {"rhs", &mlirAffineBinaryOpExprGetRHS}})
    expression.def_prop_ro(name, [part = part](const AffineExpr &self) {
      if (!mlirAffineExprIsABinary(self.value))
        raiseError("only an expression of two others has sides");
      return AffineExpr{{self.context, part(self.value)}};
    });
  for (auto [name, build] : {std::pair<const char *, Binary>{"__add__", mlirAffineAddExprGet},
                             {"__mul__", mlirAffineMulExprGet},
                             {"__mod__", mlirAffineModExprGet},
                             {"__floordiv__", mlirAffineFloorDivExprGet}}) {
    expression.def(
        name,
        [build = build](const AffineExpr &self, const AffineExpr &other) {
          requireSame(self.context, other.context);
          return AffineExpr{{self.context, build(self.value, other.value)}};
        },
        nb::is_operator());
    expression.def(
        name,
        [build = build](const AffineExpr &self, int64_t other) {
          return AffineExpr{{self.context, build(self.value, mlirAffineConstantExprGet(self.context->get(), other))}};
        },
        nb::is_operator());
  }
  expression.def("__str__", [](const AffineExpr &self) { return textOf(self.value, mlirAffineExprPrint); })
      .def(
          "__eq__", [](const AffineExpr &a, const AffineExpr &b) { return mlirAffineExprEqual(a.value, b.value); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const AffineExpr &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
}

static void bindSets(nb::module_ &m) {
  nb::class_<IntegerSet>(m, "IntegerSet", "The points of a domain where affine constraints hold.")
      .def_static(
          "parse",
          [](std::string_view text, MaybeContext context) {
            Context owner = contextOr(context);
            return IntegerSet{{owner, mlirIntegerSetAttrGetValue(parse(owner, "affine_set", text))}};
          },
          "text"_a, "context"_a = nb::none(), "Parses text such as \"(d0) : (d0 - 1 >= 0)\".")
      .def_prop_ro("n_dims", [](const IntegerSet &self) { return mlirIntegerSetGetNumDims(self.value); })
      .def_prop_ro(
          "constraints",
          [](const IntegerSet &self) {
            std::vector<std::pair<AffineExpr, bool>> result;
            for (intptr_t i = 0, n = mlirIntegerSetGetNumConstraints(self.value); i < n; ++i)
              result.push_back({AffineExpr{{self.context, mlirIntegerSetGetConstraint(self.value, i)}},
                                mlirIntegerSetIsConstraintEq(self.value, i)});
            return result;
          },
          "Expressions, each with True if it is zero in the set, or False if it is at least zero.")
      .def(
          "contains",
          [](const IntegerSet &self, const std::vector<int64_t> &point) {
            for (intptr_t i = 0, n = mlirIntegerSetGetNumConstraints(self.value); i < n; ++i) {
              int64_t value = evaluate(mlirIntegerSetGetConstraint(self.value, i), point);
              if (mlirIntegerSetIsConstraintEq(self.value, i) ? value != 0 : value < 0)
                return false;
            }
            return true;
          },
          "point"_a)
      .def("__str__", [](const IntegerSet &self) { return textOf(self.value, mlirIntegerSetPrint); })
      .def(
          "__eq__", [](const IntegerSet &a, const IntegerSet &b) { return mlirIntegerSetEqual(a.value, b.value); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const IntegerSet &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
}

void python::bindAffine(nb::module_ &m) {
  bindExpressions(m);
  nb::class_<AffineMap>(m, "AffineMap", "A quasi-affine map from a domain to the elements of a tensor.")
      .def_static(
          "get",
          [](intptr_t dims, const std::vector<AffineExpr> &results, MaybeContext context) {
            Context owner = contextOr(context);
            std::vector<MlirAffineExpr> expressions;
            for (const AffineExpr &result : results) {
              requireSame(owner, result.context);
              if (!usesOnly(result.value, dims))
                raiseError("a result of the map uses a dim that the map does not have");
              expressions.push_back(result.value);
            }
            return AffineMap{{owner, mlirAffineMapGet(owner->get(), dims, 0, expressions.size(), expressions.data())}};
          },
          "dims"_a, "results"_a, "context"_a = nb::none())
      .def_static(
          "identity",
          [](intptr_t dims, MaybeContext context) {
            Context owner = contextOr(context);
            return AffineMap{{owner, mlirAffineMapMultiDimIdentityGet(owner->get(), dims)}};
          },
          "dims"_a, "context"_a = nb::none())
      .def_static(
          "parse",
          [](std::string_view text, MaybeContext context) {
            Context owner = contextOr(context);
            return AffineMap{{owner, mlirAffineMapAttrGetValue(parse(owner, "affine_map", text))}};
          },
          "text"_a, "context"_a = nb::none(), "Parses text such as \"(d0, d1) -> (d1, d0)\".")
      .def_prop_ro("n_dims", [](const AffineMap &self) { return mlirAffineMapGetNumDims(self.value); })
      .def_prop_ro("n_symbols", [](const AffineMap &self) { return mlirAffineMapGetNumSymbols(self.value); })
      .def_prop_ro("is_identity", [](const AffineMap &self) { return mlirAffineMapIsIdentity(self.value); })
      .def_prop_ro("is_permutation", [](const AffineMap &self) { return mlirAffineMapIsPermutation(self.value); })
      .def_prop_ro("results",
                   [](const AffineMap &self) {
                     std::vector<AffineExpr> results;
                     for (intptr_t i = 0, n = mlirAffineMapGetNumResults(self.value); i < n; ++i)
                       results.push_back(AffineExpr{{self.context, mlirAffineMapGetResult(self.value, i)}});
                     return results;
                   })
      .def(
          "evaluate",
          [](const AffineMap &self, const std::vector<int64_t> &point) {
            std::vector<int64_t> values;
            for (intptr_t i = 0, n = mlirAffineMapGetNumResults(self.value); i < n; ++i)
              values.push_back(evaluate(mlirAffineMapGetResult(self.value, i), point));
            return values;
          },
          "point"_a, "Returns the image of a point.")
      .def("__str__", [](const AffineMap &self) { return textOf(self.value, mlirAffineMapPrint); })
      .def(
          "__eq__", [](const AffineMap &a, const AffineMap &b) { return mlirAffineMapEqual(a.value, b.value); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const AffineMap &self) { return reinterpret_cast<intptr_t>(self.value.ptr); });
  bindSets(m);
}
