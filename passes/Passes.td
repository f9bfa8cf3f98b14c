// Every pass: its contract, options and statistics are in the Passes.td of its folder. The classes in C++ and the
// functions in Python are generated from here.
#ifndef TILEWRIGHT_PASSES_TD
#define TILEWRIGHT_PASSES_TD

include "passes/analysis/Passes.td"
include "passes/plan/Passes.td"
include "passes/transforms/Passes.td"
include "passes/movement/Passes.td"
include "passes/codegen/cpu/Passes.td"
include "passes/codegen/gpu/Passes.td"
include "passes/codegen/iree/Passes.td"
include "passes/verify/Passes.td"

#endif
