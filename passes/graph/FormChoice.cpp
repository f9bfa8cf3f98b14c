#include "passes/graph/FormChoice.h"

#include "passes/support/Locations.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// The struct
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> FormChoice::values(StringRef parameter) const {
  auto found = parameters.find(parameter.str());
  return found == parameters.end() ? ArrayRef<int64_t>() : ArrayRef(found->second);
}

bool FormChoice::isMetBy(const FormChoice &other) const {
  return form == other.form && number == other.number && taken == other.taken &&
         (!taken || parameters.empty() || parameters == other.parameters);
}

std::string FormChoice::label() const {
  std::string label = llvm::formatv("form '{0}' {1}", form, number);
  return ops.empty() ? label : label + " of " + llvm::join(ops, ", ");
}

void FormChoice::print(raw_ostream &os) const {
  os << label() << (taken ? " is taken" : " is declined");
  for (const auto &[name, values] : parameters) {
    os << ", " << name << " ";
    llvm::interleave(values, os, "x");
  }
  if (otherwiseSeconds > 0)
    os << llvm::format(", %.3g us predicted, otherwise %.3g us", seconds * 1e6, otherwiseSeconds * 1e6);
  os << ": " << reason;
  if (!wouldChange.empty())
    os << "; would change: " << wouldChange;
}

//===----------------------------------------------------------------------===//
// The record on the function
//===----------------------------------------------------------------------===//

/// On a function: an array of dictionaries, the choices that passes have made so far.
static constexpr llvm::StringLiteral kFormsAttr = "tile.forms";
/// On a function: the same, for choices that a plan requests of the passes that follow.
static constexpr llvm::StringLiteral kRequestedFormsAttr = "tile.requested_forms";

static DictionaryAttr attrOf(const FormChoice &choice, MLIRContext *context) {
  Builder builder(context);
  auto strings = [&](const std::vector<std::string> &texts) {
    return builder.getStrArrayAttr(llvm::map_to_vector(texts, [](const std::string &text) { return StringRef(text); }));
  };
  NamedAttrList parameters;
  for (const auto &[name, values] : choice.parameters)
    parameters.set(name, builder.getDenseI64ArrayAttr(values));
  NamedAttrList fields;
  fields.set("form", builder.getStringAttr(choice.form));
  fields.set("number", builder.getI64IntegerAttr(choice.number));
  fields.set("ops", strings(choice.ops));
  fields.set("taken", builder.getBoolAttr(choice.taken));
  fields.set("parameters", parameters.getDictionary(context));
  fields.set("accumulation", builder.getStringAttr(choice.numerics.accumulation));
  fields.set("reassociates", builder.getBoolAttr(choice.numerics.reassociates));
  fields.set("roundings_removed", builder.getI64IntegerAttr(choice.numerics.roundingsRemoved));
  fields.set("seconds", builder.getF64FloatAttr(choice.seconds));
  fields.set("otherwise_seconds", builder.getF64FloatAttr(choice.otherwiseSeconds));
  fields.set("reason", builder.getStringAttr(choice.reason));
  fields.set("would_change", builder.getStringAttr(choice.wouldChange));
  fields.set("locations", strings(choice.locations));
  return fields.getDictionary(context);
}

static FormChoice choiceOf(DictionaryAttr fields) {
  auto string = [&](StringRef name) {
    auto text = fields.getAs<StringAttr>(name);
    return text ? text.str() : "";
  };
  auto strings = [&](StringRef name) {
    std::vector<std::string> texts;
    if (auto list = fields.getAs<ArrayAttr>(name))
      for (Attribute text : list)
        texts.push_back(cast<StringAttr>(text).str());
    return texts;
  };
  auto integer = [&](StringRef name) {
    auto number = fields.getAs<IntegerAttr>(name);
    return number ? number.getInt() : 0;
  };
  auto flag = [&](StringRef name) {
    auto value = fields.getAs<BoolAttr>(name);
    return value && value.getValue();
  };
  auto number = [&](StringRef name) {
    auto value = fields.getAs<FloatAttr>(name);
    return value ? value.getValueAsDouble() : 0;
  };
  FormChoice choice;
  choice.form = string("form");
  choice.number = integer("number");
  choice.ops = strings("ops");
  choice.taken = flag("taken");
  if (auto parameters = fields.getAs<DictionaryAttr>("parameters"))
    for (NamedAttribute parameter : parameters)
      choice.parameters[parameter.getName().str()] = cast<DenseI64ArrayAttr>(parameter.getValue()).asArrayRef().vec();
  choice.numerics = {string("accumulation"), flag("reassociates"), integer("roundings_removed")};
  choice.seconds = number("seconds");
  choice.otherwiseSeconds = number("otherwise_seconds");
  choice.reason = string("reason");
  choice.wouldChange = string("would_change");
  choice.locations = strings("locations");
  return choice;
}

static ArrayRef<Attribute> attrsOf(Operation *function, StringRef name) {
  auto list = function->getAttrOfType<ArrayAttr>(name);
  return list ? list.getValue() : ArrayRef<Attribute>();
}

std::vector<FormChoice> tilewright::recordedForms(Operation *function) {
  std::vector<FormChoice> forms;
  for (Attribute form : attrsOf(function, kFormsAttr))
    forms.push_back(choiceOf(cast<DictionaryAttr>(form)));
  return forms;
}

std::vector<FormChoice> tilewright::recordedForms(const TensorGraph &graph) {
  if (graph.exprs().empty())
    return {};
  Operation *op = graph.exprs().front().op;
  Operation *function = op->getParentOfType<FunctionOpInterface>(); // which a loop may separate from the op
  return recordedForms(function ? function : op->getParentOp());
}

void tilewright::requestForms(Operation *function, ArrayRef<FormChoice> forms) {
  MLIRContext *context = function->getContext();
  auto attrs = llvm::map_to_vector(forms, [&](const FormChoice &form) -> Attribute { return attrOf(form, context); });
  function->setAttr(kRequestedFormsAttr, ArrayAttr::get(context, attrs));
}

void tilewright::dropRequestedForms(Operation *function) { function->removeAttr(kRequestedFormsAttr); }

static bool isOf(Attribute attr, StringRef form) {
  return cast<DictionaryAttr>(attr).getAs<StringAttr>("form").getValue() == form;
}

/// Returns the choice that is requested for an offer, or nothing.
static std::optional<FormChoice> requestFor(Operation *function, const FormChoice &offer) {
  for (Attribute attr : attrsOf(function, kRequestedFormsAttr))
    if (isOf(attr, offer.form))
      if (FormChoice request = choiceOf(cast<DictionaryAttr>(attr)); request.number == offer.number)
        return request;
  return std::nullopt;
}

std::string tilewright::takesNoParameters(const FormChoice &choice) {
  return choice.parameters.empty() ? "" : "it has no parameters";
}

FailureOr<FormChoice> tilewright::settleForm(Operation *function, FormChoice choice, ArrayRef<Operation *> ops,
                                             WhyNotForm whyNot) {
  for (Operation *op : ops) {
    choice.ops.push_back(op->getName().getStringRef().str());
    choice.locations.push_back(describe(op->getLoc()));
  }
  SmallVector<Attribute> recorded(attrsOf(function, kFormsAttr));
  choice.number = llvm::count_if(recorded, [&](Attribute other) { return isOf(other, choice.form); });
  std::optional<FormChoice> request = requestFor(function, choice);
  if (request && !request->ops.empty() && request->ops != choice.ops)
    return ops.front()->emitError("illegal plan: names ") << request->label() << ", but the graph offers "
                                                          << choice.label();
  if (request && !request->isMetBy(choice)) {
    choice.taken = request->taken;
    if (request->taken && !request->parameters.empty())
      choice.parameters = request->parameters;
    choice.seconds = choice.otherwiseSeconds = 0; // the rule predicted something else
    choice.reason = "the given plan says so";
    choice.wouldChange = "another plan";
    if (std::string why = choice.taken ? whyNot(choice) : ""; !why.empty())
      return ops.front()->emitError("illegal plan: takes ") << choice.label() << ", but " << why;
  }
  recorded.push_back(attrOf(choice, function->getContext()));
  function->setAttr(kFormsAttr, ArrayAttr::get(function->getContext(), recorded));
  return choice;
}

std::string tilewright::whyNotRecorded(ArrayRef<FormChoice> requested, ArrayRef<FormChoice> recorded) {
  for (const FormChoice &request : requested) {
    auto known = llvm::find_if(recorded, [&](const FormChoice &form) {
      return form.form == request.form && form.number == request.number;
    });
    if (known == recorded.end()) {
      auto offers = llvm::count_if(recorded, [&](const FormChoice &form) { return form.form == request.form; });
      return llvm::formatv("names {0}; the graph offers {1} of this form", request.label(), offers);
    }
    if (!request.isMetBy(*known))
      return llvm::formatv("{0} {1}, but the graph was rewritten by another choice: forms are chosen before the plan "
                           "is carried out",
                           request.taken ? "takes" : "declines", known->label());
  }
  return "";
}
