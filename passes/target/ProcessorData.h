// Processor features that IREE's runtime reports to a kernel: one word of bits (the first of the processor data in the
// executable environment), which a kernel tests before it uses an instruction set.
#ifndef TILEWRIGHT_TARGET_PROCESSORDATA_H
#define TILEWRIGHT_TARGET_PROCESSORDATA_H

#include "passes/target/Target.h"
#include "llvm/ADT/StringMap.h"

namespace tilewright {

/// Returns the bit of each feature that IREE's runtime reports on x86-64. Bits never change their meaning once released.
const llvm::StringMap<unsigned> &reportedBits();

/// Returns the bits that must be set for a target's code to run. They leave out scalar extensions that the runtime does
/// not report (BMI, POPCNT), because every processor with the vector extensions of the table has them. A vector
/// extension that the runtime does not report is an error.
llvm::Expected<uint64_t> processorBits(const Target &target);

/// Returns the bit of AMX's tile registers. A process may use them only if the operating system has granted them, too.
uint64_t tileRegistersBit();

} // namespace tilewright

#endif
