// The list of parameters as a table, and its JSON form. Errors name the field by its path.
#include "passes/target/CostParameters.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace llvm;
using namespace tilewright;

ArrayRef<CostField> tilewright::costFields() {
#define ROW(group, type, field, unit, meaning, source, date)                                                           \
  {#group "." #field,                                                                                                  \
   unit,                                                                                                               \
   meaning,                                                                                                            \
   source,                                                                                                             \
   date,                                                                                                               \
   std::is_integral_v<type>,                                                                                           \
   [](const CostParameters &costs) { return static_cast<double>(costs.group.field); },                                 \
   [](CostParameters &costs, double value) { costs.group.field = static_cast<type>(value); }},
  static const CostField fields[] = {
#define CPU_COST(type, field, value, unit, meaning, source, date) ROW(cpu, type, field, unit, meaning, source, date)
#define GPU_COST(type, field, value, unit, meaning, source, date) ROW(gpu, type, field, unit, meaning, source, date)
#define COMMON_COST(type, field, value, unit, meaning, source, date)                                                   \
  ROW(common, type, field, unit, meaning, source, date)
#define CONFIDENCE(type, field, value, unit, meaning, source, date)                                                    \
  ROW(confidence, type, field, unit, meaning, source, date)
#include "passes/target/CostParameters.def"
  };
#undef ROW
  return fields;
}

std::string CostField::whyNot(double value) const {
  if (unit == "error")
    return value >= 0 && value < 1 ? "" : "expected a number of at least 0 and below 1";
  if (unit == "share")
    return value > 0 && value <= 1 ? "" : "expected a positive number of at most 1";
  if (isInteger)
    return value >= 1 && value <= 1 << 30 && value == std::floor(value) ? "" : "expected an integer of at least 1";
  return value > 0 && std::isfinite(value) ? "" : "expected a positive number";
}

static const CostField *find(StringRef name) {
  ArrayRef<CostField> fields = costFields();
  const CostField *found = find_if(fields, [&](const CostField &field) { return field.name == name; });
  return found == fields.end() ? nullptr : found;
}

static json::Value numberOf(const CostField &field, const CostParameters &costs) {
  double value = field.get(costs);
  return field.isInteger ? json::Value(static_cast<int64_t>(value)) : json::Value(value);
}

json::Value tilewright::toJson(const CostParameters &costs, StringRef group) {
  json::Array list;
  for (const CostField &field : costFields()) {
    StringRef own = field.name.take_until([](char letter) { return letter == '.'; });
    if (own != "common" && own != "confidence" && own != group)
      continue;
    auto known = costs.origins.find(field.name.str());
    bool isDefault = known == costs.origins.end();
    list.push_back(json::Object{{"name", field.name},
                                {"value", numberOf(field, costs)},
                                {"unit", field.unit},
                                {"source", isDefault ? field.source : StringRef(known->second.source)},
                                {"date", isDefault ? field.date : StringRef(known->second.date)}});
  }
  return list;
}

/// Reads one entry of the list into `costs`. Returns the error, which begins with the member it is about.
static std::string readCost(const json::Object &object, CostParameters &costs) {
  auto name = object.getString("name");
  const CostField *field = name ? find(*name) : nullptr;
  if (!name)
    return "name: expected a string";
  if (!field) {
    StringRef group = name->take_until([](char letter) { return letter == '.'; });
    std::vector<StringRef> known;
    for (const CostField &one : costFields())
      if (!is_contained({"cpu", "gpu", "common", "confidence"}, group) || one.name.starts_with((group + ".").str()))
        known.push_back(one.name);
    return ("name: '" + *name + "' is no cost parameter; known ones: " + join(known, ", ")).str();
  }
  auto value = object.getNumber("value");
  if (!value)
    return "value: expected a number";
  if (std::string why = field->whyNot(*value); !why.empty())
    return "value: " + why + " for " + field->name.str();
  const json::Value *unit = object.get("unit");
  if (unit && unit->getAsString() != StringRef() && unit->getAsString() != field->unit)
    return "unit: " + field->name.str() + " has the unit '" + field->unit.str() + "'";
  CostOrigin origin{"a target file", ""};
  for (auto [member, out] : {std::pair("source", &origin.source), std::pair("date", &origin.date)})
    if (const json::Value *text = object.get(member)) {
      if (!text->getAsString())
        return std::string(member) + ": expected a string";
      *out = text->getAsString()->str();
    }
  for (const auto &member : object)
    if (StringRef known = member.first; !is_contained({"name", "value", "unit", "source", "date"}, known))
      return (known + ": unknown field; known fields: name, value, unit, source, date").str();
  field->set(costs, *value);
  costs.origins.erase(field->name.str());
  if (origin.source != field->source || origin.date != field->date)
    costs.origins[field->name.str()] = std::move(origin);
  return "";
}

std::string tilewright::readCosts(const json::Value &value, CostParameters &costs) {
  const json::Array *array = value.getAsArray();
  if (!array)
    return "costs: expected a list of cost parameters";
  for (auto [i, entry] : enumerate(*array)) {
    const json::Object *object = entry.getAsObject();
    std::string why = object ? readCost(*object, costs) : "expected an object";
    if (!why.empty())
      return "costs[" + std::to_string(i) + "]" + (object ? "." : ": ") + why;
  }
  return "";
}
