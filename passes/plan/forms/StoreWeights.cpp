// Makes packed weights parameters of their own. The pass decides which, and writes recipes; the owner of the parameter
// file carries them out, so that no weight passes through the compiler. IREE then maps the packed weights from the file
// instead of computing them when it loads the program. Weights that are constants of the module are packed here.
#include "dialects/tile/TileAttributeNames.h"
#include "passes/Passes.h"
#include "passes/graph/EvaluateRecipe.h"
#include "passes/graph/ParameterRecipe.h"
#include "passes/support/JsonFile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_STOREWEIGHTS
#include "passes/Passes.h.inc"

namespace {

using Kind = ParameterRecipe::Kind;

/// Returns the properties of an op, which unregistered ops keep apart from their attributes, or else its attributes.
DictionaryAttr propertiesOf(Operation *op) {
  auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties : op->getAttrDictionary();
}

/// IREE's globals that hold parameters, and their uses.
class ParameterGlobals {
public:
  explicit ParameterGlobals(ModuleOp module) : module(module) {
    for (Operation &op : module.getOps())
      if (auto name = propertiesOf(&op).getAs<StringAttr>("sym_name")) {
        symbols[name.getValue()] = &op;
        countName(parameterOf(&op), 1);
      }
    module.walk([&](Operation *op) { count(op, 1); });
  }

  /// Returns the global that a load reads, if it holds a parameter and is immutable, or null.
  Operation *loadedBy(Operation *load) const {
    if (load->getName().getStringRef() != "util.global.load")
      return nullptr;
    auto name = propertiesOf(load).getAs<FlatSymbolRefAttr>("global");
    Operation *global = name ? symbols.lookup(name.getValue()) : nullptr;
    return global && !propertiesOf(global).contains("is_mutable") && parameterOf(global) ? global : nullptr;
  }

  /// Returns the parameter that a global is initialised with.
  static std::optional<ParameterRecipe> parameterOf(Operation *global) {
    auto initial = propertiesOf(global).getAs<OpaqueAttr>("initial_value");
    auto type = initial ? dyn_cast<RankedTensorType>(initial.getType()) : RankedTensorType();
    if (!type || !type.hasStaticShape() || initial.getDialectNamespace() != "stream")
      return std::nullopt;
    StringRef spelled = initial.getAttrData();
    if (!spelled.consume_front("parameter.named<\"") || !spelled.consume_back("\">") || spelled.contains('\\'))
      return std::nullopt; // names with escapes are left alone, too
    auto [scope, name] = spelled.split("\"::\"");
    if (name.empty())
      return std::nullopt;
    ParameterRecipe recipe;
    recipe.kind = Kind::parameter;
    recipe.shape = type.getShape().vec();
    recipe.scope = scope.str();
    recipe.name = name.str();
    return recipe;
  }

  /// Creates a global like `model` for another parameter.
  Operation *create(Operation *model, StringRef scope, StringRef name, RankedTensorType type) {
    OpBuilder builder(model);
    NamedAttrList properties(propertiesOf(model));
    std::string symbol = uniqueSymbol(propertiesOf(model).getAs<StringAttr>("sym_name").getValue());
    properties.set("sym_name", builder.getStringAttr(symbol));
    properties.set("type", TypeAttr::get(type));
    std::string parameter = llvm::formatv("parameter.named<\"{0}\"::\"{1}\">", scope, name);
    properties.set("initial_value", OpaqueAttr::get(builder.getStringAttr("stream"), parameter, type));
    Operation *global = build(builder, model, {}, properties);
    symbols[symbol] = global;
    countName(parameterOf(global), 1);
    return global;
  }

  Value load(OpBuilder &builder, Operation *model, Operation *global, RankedTensorType type) {
    NamedAttrList properties(propertiesOf(model));
    properties.set("global", FlatSymbolRefAttr::get(propertiesOf(global).getAs<StringAttr>("sym_name")));
    Operation *load = build(builder, model, type, properties);
    count(load, 1);
    return load->getResult(0);
  }

  /// Erases an op without users, and the ops that made its operands if nothing else uses them. Adds parameters that no
  /// op loads any more to `unused`.
  void eraseWithOperands(Operation *op, SmallVectorImpl<ParameterRecipe> &unused) {
    SmallVector<Operation *> producers;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && !llvm::is_contained(producers, producer))
        producers.push_back(producer);
    Operation *global = loadedBy(op);
    count(op, -1);
    op->erase();
    if (global && uses.lookup(propertiesOf(global).getAs<StringAttr>("sym_name")) == 0)
      eraseGlobal(global, unused);
    for (Operation *producer : producers)
      if (producer->use_empty() && (isMemoryEffectFree(producer) || loadedBy(producer)))
        eraseWithOperands(producer, unused);
  }

  /// Returns true if a global is initialised with the parameter.
  bool names(const ParameterRecipe &parameter) const { return named.lookup(keyOf(parameter)) > 0; }

private:
  static Operation *build(OpBuilder &builder, Operation *model, TypeRange results, const NamedAttrList &properties) {
    OperationState state(model->getLoc(), model->getName().getStringRef());
    state.addTypes(results);
    DictionaryAttr attributes = properties.getDictionary(builder.getContext());
    if (model->getPropertiesAsAttribute()) {
      state.propertiesAttr = attributes;
      state.addAttributes(model->getDiscardableAttrDictionary().getValue());
    } else {
      state.addAttributes(attributes.getValue());
    }
    return builder.create(state);
  }

  static std::string keyOf(const ParameterRecipe &parameter) {
    return parameter.scope + std::string(1, '\0') + parameter.name;
  }

  void countName(const std::optional<ParameterRecipe> &parameter, int64_t sign) {
    if (parameter)
      named[keyOf(*parameter)] += sign;
  }

  void count(Operation *op, int64_t sign) {
    auto visit = [&](Attribute attribute) {
      if (attribute)
        attribute.walk([&](SymbolRefAttr symbol) { uses[symbol.getRootReference()] += sign; });
    };
    visit(op->getAttrDictionary());
    if (!op->isRegistered())
      visit(op->getPropertiesAsAttribute());
  }

  void eraseGlobal(Operation *global, SmallVectorImpl<ParameterRecipe> &unused) {
    auto visibility = propertiesOf(global).getAs<StringAttr>("sym_visibility");
    if (!visibility || visibility.getValue() != "private")
      return;
    ParameterRecipe parameter = *parameterOf(global);
    symbols.erase(propertiesOf(global).getAs<StringAttr>("sym_name").getValue());
    countName(parameter, -1);
    global->erase();
    unused.push_back(std::move(parameter));
  }

  std::string uniqueSymbol(StringRef source) const {
    std::string name = (source + "_packed").str();
    for (unsigned next = 1; symbols.contains(name); ++next)
      name = (source + "_packed_" + Twine(next)).str();
    return name;
  }

  ModuleOp module;
  llvm::StringMap<Operation *> symbols;
  llvm::StringMap<int64_t> named;     ///< number of globals with a parameter, by scope and name
  DenseMap<StringAttr, int64_t> uses; ///< number of references, by symbol
};

/// A new parameter to store.
struct StoredWeight {
  ParameterRecipe recipe;
  std::string scope, name;
  RankedTensorType type;
  Operation *global;

  llvm::json::Value toJson() const {
    std::string element;
    llvm::raw_string_ostream(element) << type.getElementType();
    return llvm::json::Object{{"scope", scope},
                              {"name", name},
                              {"type", element},
                              {"element_bytes", type.getElementTypeBitWidth() / 8},
                              {"recipe", recipe.toJson()}};
  }
};

/// Returns the first parameter of a recipe.
const ParameterRecipe &firstSource(const ParameterRecipe &recipe) {
  return recipe.parts.empty() ? recipe : firstSource(recipe.parts.front());
}

class StoreWeights : public impl::StoreWeightsBase<StoreWeights> {
  using StoreWeightsBase::StoreWeightsBase;

  void runOnOperation() override {
    SmallVector<Operation *> packed;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](Operation *op) {
        if (op->removeAttr(kPackedWeightAttr))
          packed.push_back(op);
      });
    llvm::erase_if(packed, foldConstant);
    carryOut(packed);
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([](linalg::GenericOp op) { op->removeAttr(kSwizzleAttr); }); // IREE does not know it
  }

  /// Packs a weight that is a constant of the module. Returns false for others.
  static bool foldConstant(Operation *op) {
    DenseElementsAttr packed = constantOfRecipe(op->getResult(0));
    if (!packed)
      return false;
    OpBuilder builder(op);
    op->replaceAllUsesWith(arith::ConstantOp::create(builder, op->getLoc(), packed));
    eraseIfDead(op);
    return true;
  }

  static void eraseIfDead(Operation *op) {
    if (!op || !isOpTriviallyDead(op))
      return;
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      eraseIfDead(operand.getDefiningOp());
  }

  void carryOut(ArrayRef<Operation *> packed) {
    if (recipes.empty())
      return;
    stored.clear();
    known.clear();
    ParameterGlobals globals(getOperation());
    // Parameters are kept until all recipes are known, because a weight may be packed in two ways.
    SmallVector<std::optional<ParameterRecipe>> found;
    for (Operation *op : packed)
      found.push_back(decide(op, globals));
    SmallVector<ParameterRecipe> unused;
    for (auto [op, recipe] : llvm::zip(packed, found))
      if (recipe)
        store(op, *recipe, globals, unused);
    llvm::erase_if(unused, [&](const ParameterRecipe &parameter) { return globals.names(parameter); });
    if (failed(writeJson(getOperation(), recipes, toJson(unused))))
      signalPassFailure();
  }

  /// Returns the recipe of a packed weight. Otherwise emits a remark and returns nothing.
  std::optional<ParameterRecipe> decide(Operation *op, const ParameterGlobals &globals) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    std::string reason;
    auto recipe = recipeOf(op->getResult(0), [&](Value value) -> std::optional<ParameterRecipe> {
      Operation *global = globals.loadedBy(value.getDefiningOp());
      auto parameter = global ? globals.parameterOf(global) : std::nullopt;
      if (!parameter)
        return std::nullopt;
      if (!llvm::is_contained(scopes, parameter->scope)) {
        reason = "the parameter file of scope '" + parameter->scope + "' cannot be rewritten";
        return std::nullopt;
      }
      return parameter;
    });
    if (!recipe && reason.empty())
      reason = "it is not made of parameters by movement and constant matrices only";
    if (recipe && type.getElementTypeBitWidth() % 8 != 0)
      reason = "its elements are not whole bytes";
    if (recipe && reason.empty())
      reason = recipe->verify();
    if (reason.empty())
      return recipe;
    remark::missed(op->getLoc(), remark::RemarkOpts::name("computed-at-load").category("tile-store-weights"))
        << "tile: a packed weight is computed each time the program is loaded: " + reason;
    ++numDeclined;
    return std::nullopt;
  }

  void store(Operation *op, const ParameterRecipe &recipe, ParameterGlobals &globals,
             SmallVectorImpl<ParameterRecipe> &unused) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Operation *model = firstLoad(op);
    OpBuilder builder(op);
    const StoredWeight &weight = stored[indexOf(recipe, type, globals.loadedBy(model), globals)];
    remark::passed(op->getLoc(), remark::RemarkOpts::name("stored").category("tile-store-weights"))
        << "tile: a packed weight is stored as " + weight.scope + "::" + weight.name + ": " + recipe.toString();
    op->getResult(0).replaceAllUsesWith(globals.load(builder, model, weight.global, type));
    globals.eraseWithOperands(op, unused);
  }

  /// Returns the load at the beginning of a recipe.
  static Operation *firstLoad(Operation *op) {
    while (op->getNumOperands() > 0) {
      Operation *from = op->getOperand(0).getDefiningOp();
      op = from->hasTrait<OpTrait::ConstantLike>() ? op->getOperand(1).getDefiningOp() : from; // a product's matrix
    }
    return op;
  }

  /// Returns the index of a recipe's parameter in `stored`, to which it is added if it is new.
  size_t indexOf(const ParameterRecipe &recipe, RankedTensorType type, Operation *model, ParameterGlobals &globals) {
    std::string key;
    llvm::raw_string_ostream(key) << recipe.toJson() << " " << type;
    auto [entry, isNew] = known.try_emplace(key, stored.size());
    if (!isNew)
      return entry->second;
    StoredWeight weight{recipe, firstSource(recipe).scope, "", type, nullptr};
    weight.name = uniqueName(firstSource(recipe), type, globals);
    weight.global = globals.create(model, weight.scope, weight.name, type);
    stored.push_back(std::move(weight));
    ++numStored;
    return entry->second;
  }

  static std::string uniqueName(const ParameterRecipe &source, RankedTensorType type, const ParameterGlobals &globals) {
    ParameterRecipe candidate = source;
    std::string base = source.name + "/packed-";
    llvm::raw_string_ostream os(base);
    llvm::interleave(type.getShape(), os, "x");
    candidate.name = base;
    for (unsigned next = 1; globals.names(candidate); ++next)
      candidate.name = base + "-" + std::to_string(next);
    return candidate.name;
  }

  llvm::json::Value toJson(ArrayRef<ParameterRecipe> unused) const {
    llvm::json::Array parameters, dropped;
    for (const StoredWeight &weight : stored)
      parameters.push_back(weight.toJson());
    for (const ParameterRecipe &parameter : unused)
      dropped.push_back(llvm::json::Object{{"scope", parameter.scope}, {"name", parameter.name}});
    return llvm::json::Object{{"parameters", std::move(parameters)}, {"unused", std::move(dropped)}};
  }

  std::vector<StoredWeight> stored;
  llvm::StringMap<size_t> known; ///< by recipe and type: index into `stored`
};
} // namespace
} // namespace tilewright
