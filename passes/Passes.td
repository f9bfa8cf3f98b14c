// All passes. The Passes.td of each folder states the contracts, options and statistics of its passes. The C++ base
// classes and the Python functions are generated from this file.
#ifndef TILEWRIGHT_PASSES_TD
#define TILEWRIGHT_PASSES_TD

include "passes/graph/Passes.td"
include "passes/normalize/Passes.td"
include "passes/normalize/forms/Passes.td"
include "passes/plan/fusion/Passes.td"
include "passes/plan/forms/Passes.td"
include "passes/plan/apply/Passes.td"
include "passes/program/Passes.td"
include "passes/program/cpu/Passes.td"
include "passes/program/gpu/Passes.td"
include "passes/program/movement/Passes.td"
include "passes/codegen/common/Passes.td"
include "passes/codegen/cpu/Passes.td"
include "passes/codegen/gpu/Passes.td"
include "passes/iree/Passes.td"

#endif
