#include "passes/graph/FormChoice.h"

#include "dialects/tile/TileAttributeNames.h"
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
  std::string label = llvm::formatv("form '{0}' {1}", tile::stringifyForm(form), number);
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

static tile::FormAttr attrOf(const FormChoice &choice, MLIRContext *context) {
  Builder builder(context);
  auto strings = [&](const std::vector<std::string> &texts) {
    return builder.getStrArrayAttr(llvm::map_to_vector(texts, [](const std::string &text) { return StringRef(text); }));
  };
  NamedAttrList parameters;
  for (const auto &[name, values] : choice.parameters)
    parameters.set(name, builder.getDenseI64ArrayAttr(values));
  return tile::FormAttr::get(context, tile::stringifyForm(choice.form), choice.number, choice.taken,
                             strings(choice.ops), parameters.getDictionary(context), choice.numerics.accumulation,
                             choice.numerics.reassociates, choice.numerics.roundingsRemoved,
                             builder.getF64FloatAttr(choice.seconds), builder.getF64FloatAttr(choice.otherwiseSeconds),
                             choice.reason, choice.wouldChange, strings(choice.locations));
}

static FormChoice choiceOf(tile::FormAttr attr) {
  auto strings = [](ArrayAttr list) {
    std::vector<std::string> texts;
    for (Attribute text : list ? list.getValue() : ArrayRef<Attribute>())
      texts.push_back(cast<StringAttr>(text).str());
    return texts;
  };
  auto number = [](FloatAttr value) { return value ? value.getValueAsDouble() : 0; };
  FormChoice choice;
  choice.form = *tile::symbolizeForm(attr.getForm());
  choice.number = attr.getNumber();
  choice.ops = strings(attr.getOps());
  choice.taken = attr.getTaken();
  if (DictionaryAttr parameters = attr.getParameters())
    for (NamedAttribute parameter : parameters)
      choice.parameters[parameter.getName().str()] = cast<DenseI64ArrayAttr>(parameter.getValue()).asArrayRef().vec();
  choice.numerics = {attr.getAccumulation().str(), attr.getReassociates(), attr.getRoundingsRemoved()};
  choice.seconds = number(attr.getSeconds());
  choice.otherwiseSeconds = number(attr.getOtherwiseSeconds());
  choice.reason = attr.getReason().str();
  choice.wouldChange = attr.getWouldChange().str();
  choice.locations = strings(attr.getLocations());
  return choice;
}

/// Returns the forms that an attribute of a function lists.
static auto formsOf(Operation *function, StringRef name) {
  auto list = function->getAttrOfType<ArrayAttr>(name);
  return (list ? list : ArrayAttr::get(function->getContext(), {})).getAsRange<tile::FormAttr>();
}

std::vector<FormChoice> tilewright::recordedForms(Operation *function) {
  std::vector<FormChoice> forms;
  for (tile::FormAttr form : formsOf(function, kFormsAttr))
    forms.push_back(choiceOf(form));
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

/// Returns the choice that is requested for an offer, or nothing.
static std::optional<FormChoice> requestFor(Operation *function, const FormChoice &offer) {
  for (tile::FormAttr attr : formsOf(function, kRequestedFormsAttr))
    if (attr.getForm() == tile::stringifyForm(offer.form) && attr.getNumber() == offer.number)
      return choiceOf(attr);
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
  auto recorded = llvm::to_vector_of<Attribute>(formsOf(function, kFormsAttr));
  choice.number = llvm::count_if(recorded, [&](Attribute other) {
    return cast<tile::FormAttr>(other).getForm() == tile::stringifyForm(choice.form);
  });
  std::optional<FormChoice> request = requestFor(function, choice);
  if (request && !request->ops.empty() && request->ops != choice.ops)
    return ops.front()->emitError("illegal plan: names ") << request->label() << ", but the graph offers "
                                                          << choice.label();
  if (request && !request->isMetBy(choice)) {
    choice.taken = request->taken;
    if (request->taken && !request->parameters.empty())
      choice.parameters = request->parameters;
    choice.seconds = request->seconds; // the rule predicted something else
    choice.otherwiseSeconds = request->otherwiseSeconds;
    choice.reason = request->reason;
    choice.wouldChange = request->wouldChange;
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
