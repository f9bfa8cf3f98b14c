// Every pass: its contract, options and statistics are in the Passes.td of its folder. The classes in C++ and the
// functions in Python are generated from here.
#ifndef TILEWRIGHT_PASSES_TD
#define TILEWRIGHT_PASSES_TD

include "passes/graph/Passes.td"
include "passes/normalize/Passes.td"
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
