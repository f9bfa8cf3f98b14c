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

Described tilewright::tileFields(MlirAttribute attribute) {
  return llvm::TypeSwitch<Attribute, Described>(unwrap(attribute))
      .Case([](tile::ScopeAttr scope) {
        return with<tile::ScopeAttr>({{"value", stringifyScope(scope.getValue()).str()}});
      })
      .Case([](tile::SpaceAttr space) {
        return with<tile::SpaceAttr>({{"value", stringifySpace(space.getValue()).str()}});
      })
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
