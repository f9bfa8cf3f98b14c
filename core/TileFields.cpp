// Reads the parameters of the dialect's attributes and types.
#include "core/Ir.h"

#include "dialects/tile/TileDialect.h"

#include "mlir/CAPI/IR.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;

using Described = std::optional<std::pair<std::string, TileFields>>;

static std::vector<int64_t> numbers(ArrayRef<int64_t> values) { return values.vec(); }

template <typename T> static Described with(TileFields fields) { return std::pair(T::getMnemonic().str(), fields); }

static std::vector<std::string> strings(ArrayAttr list) {
  std::vector<std::string> texts;
  if (list)
    for (auto text : list.getAsRange<StringAttr>())
      texts.push_back(text.str());
  return texts;
}

/// Returns the fields of a form that is offered. Python has defaults for those that are left out.
static TileFields fieldsOf(tile::FormAttr form) {
  TileFields fields{{"form", form.getForm().str()},
                    {"number", static_cast<int64_t>(form.getNumber())},
                    {"taken", static_cast<int64_t>(form.getTaken())},
                    {"ops", strings(form.getOps())},
                    {"accumulation", form.getAccumulation().str()},
                    {"reassociates", static_cast<int64_t>(form.getReassociates())},
                    {"roundings_removed", form.getRoundingsRemoved()},
                    {"reason", form.getReason().str()},
                    {"would_change", form.getWouldChange().str()},
                    {"locations", strings(form.getLocations())}};
  if (DictionaryAttr parameters = form.getParameters())
    fields.push_back({"parameters", wrap(Attribute(parameters))});
  for (auto [name, seconds] : {std::pair<StringRef, FloatAttr>{"seconds", form.getSeconds()},
                               {"otherwise_seconds", form.getOtherwiseSeconds()}})
    if (seconds)
      fields.push_back({name.str(), wrap(Attribute(seconds))});
  return fields;
}

Described tilewright::tileFields(MlirAttribute attribute) {
  return llvm::TypeSwitch<Attribute, Described>(unwrap(attribute))
      .Case([](tile::ScopeAttr scope) {
        return with<tile::ScopeAttr>({{"value", stringifyScope(scope.getValue()).str()}});
      })
      .Case([](tile::SpaceAttr space) {
        return with<tile::SpaceAttr>({{"value", stringifySpace(space.getValue()).str()}});
      })
      .Case([](tile::AccessAttr access) {
        return with<tile::AccessAttr>({{"value", stringifyAccess(access.getValue()).str()}});
      })
      .Case([](tile::LifetimeAttr lifetime) {
        return with<tile::LifetimeAttr>({{"value", stringifyLifetime(lifetime.getValue()).str()}});
      })
      .Case([](tile::FormAttr form) { return with<tile::FormAttr>(fieldsOf(form)); })
      .Case([](tile::TilingAttr tiling) {
        return with<tile::TilingAttr>({{"level", stringifyScope(tiling.getLevel()).str()},
                                       {"sizes", numbers(tiling.getSizes())},
                                       {"order", numbers(tiling.getOrder())}});
      })
      .Case([](tile::NumericsAttr numerics) {
        std::vector<std::string> forms;
        for (StringAttr form : numerics.getForms())
          forms.push_back(form.str());
        return with<tile::NumericsAttr>({{"roundings", stringifyRoundings(numerics.getRoundings()).str()},
                                         {"math", stringifyMath(numerics.getMath()).str()},
                                         {"forms", forms}});
      })
      .Case([](tile::RunningAttr running) {
        return with<tile::RunningAttr>({{"accumulator", running.getAccumulator()}, {"block", running.getBlock()}});
      })
      .Case([](tile::GemmAttr gemm) {
        return with<tile::GemmAttr>({{"m", gemm.getM()},
                                     {"n", gemm.getN()},
                                     {"k_slices", gemm.getKSlices()},
                                     {"step", gemm.getStep()},
                                     {"stages", gemm.getStages()},
                                     {"lhs", stringifyResidency(gemm.getLhs()).str()},
                                     {"prefetch", stringifyOperands(gemm.getPrefetch()).str()},
                                     {"lhs_copy", gemm.getLhsCopy()},
                                     {"rhs_copy", gemm.getRhsCopy()}});
      })
      .Case([](tile::BlockingAttr blocking) {
        return with<tile::BlockingAttr>({{"vectors", blocking.getVectors()},
                                         {"unroll", blocking.getUnroll()},
                                         {"panel_k", blocking.getPanelK()},
                                         {"prefetch", blocking.getPrefetch()},
                                         {"k_outermost", static_cast<int64_t>(blocking.getKOutermost())},
                                         {"even_rows", blocking.getEvenRows()},
                                         {"wider_last", static_cast<int64_t>(blocking.getWiderLast())}});
      })
      .Case([](tile::TargetAttr target) {
        TileFields fields{{"name", target.getName().str()}};
        if (target.getOverrides())
          fields.push_back({"overrides", wrap(Attribute(target.getOverrides()))});
        return with<tile::TargetAttr>(fields);
      })
      .Default([](Attribute) { return std::nullopt; });
}

Described tilewright::tileFields(MlirType type) {
  auto slice = dyn_cast<tile::SliceType>(unwrap(type));
  if (!slice)
    return std::nullopt;
  return with<tile::SliceType>({{"shape", numbers(slice.getShape())},
                                {"element_type", wrap(slice.getElementType())},
                                {"space", stringifySpace(slice.getSpace()).str()},
                                {"strides", numbers(slice.getStrides())}});
}
