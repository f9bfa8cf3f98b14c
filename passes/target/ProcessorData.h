// What IREE's runtime tells a kernel about the processor it runs on: one word of feature bits (the first of the
// processor data in the executable environment), which a kernel tests before it uses an instruction set.
#ifndef TILEWRIGHT_TARGET_PROCESSORDATA_H
#define TILEWRIGHT_TARGET_PROCESSORDATA_H

#include "passes/target/Target.h"

namespace tilewright {

/// The bits that must be set for a target's code to run. Scalar extensions that the runtime does not report (BMI,
/// POPCNT) are not among them: every processor with the vector extensions of the table has them. A vector extension
/// that it does not report is an error.
llvm::Expected<uint64_t> processorBits(const Target &target);

/// The bit of AMX's tile registers. A process may use them if the operating system has granted it that, besides.
uint64_t tileRegistersBit();

} // namespace tilewright

#endif
