// The parameters of the cost models for one machine. CostParameters.def lists them with unit, source and date; a target
// holds their values, and its file may set them.
#ifndef TILEWRIGHT_TARGET_COSTPARAMETERS_H
#define TILEWRIGHT_TARGET_COSTPARAMETERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>

namespace tilewright {

struct CpuCosts {
#define CPU_COST(type, field, value, unit, meaning, source, date) type field = value;
#include "passes/target/CostParameters.def"
};

struct GpuCosts {
#define GPU_COST(type, field, value, unit, meaning, source, date) type field = value;
#include "passes/target/CostParameters.def"
};

/// Parameters of CPUs and GPUs alike.
struct CommonCosts {
#define COMMON_COST(type, field, value, unit, meaning, source, date) type field = value;
#include "passes/target/CostParameters.def"
};

/// The errors of predictions, by what is compared (see cost/Confidence.h), and sizes on which they depend.
struct ConfidenceCosts {
#define CONFIDENCE(type, field, value, unit, meaning, source, date) type field = value;
#include "passes/target/CostParameters.def"
};

/// How a value was found.
struct CostOrigin {
  std::string source, date; ///< a document or a measurement; YYYY-MM-DD
};

struct CostParameters {
  CpuCosts cpu;
  GpuCosts gpu;
  CommonCosts common;
  ConfidenceCosts confidence;
  std::map<std::string, CostOrigin> origins = {}; ///< by name, for values that are not those of the list
};

/// A row of the list.
struct CostField {
  llvm::StringRef name; ///< "gpu.stepCycles"
  llvm::StringRef unit, meaning, source, date;
  bool isInteger;
  double (*get)(const CostParameters &costs);
  void (*set)(CostParameters &costs, double value);

  /// Returns why the parameter cannot have this value, or an empty string.
  std::string whyNot(double value) const;
};

/// Returns the whole list, in its order.
llvm::ArrayRef<CostField> costFields();

/// Returns the parameters whose names begin with "common.", with "confidence." or with `group` and a dot, each with its
/// value, unit, source and date.
llvm::json::Value toJson(const CostParameters &costs, llvm::StringRef group);

/// Overrides the parameters that a JSON list names, each with "value" and perhaps "unit", "source" and "date". Returns
/// the error with its position, or an empty string.
std::string readCosts(const llvm::json::Value &value, CostParameters &costs);

} // namespace tilewright

#endif
