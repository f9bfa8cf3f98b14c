// Selects the instructions of masked loads and stores on AVX and AVX2, before LLVM's instruction selection, which gets
// them wrong (MaskedAccesses.cpp has the details).
#ifndef TILEWRIGHT_CODEGEN_CPU_MASKEDACCESSES_H
#define TILEWRIGHT_CODEGEN_CPU_MASKEDACCESSES_H

#include "llvm/IR/Function.h"
#include "llvm/Target/TargetMachine.h"

namespace tilewright {

/// Replaces calls of `llvm.masked.load` and `llvm.masked.store`, in a function for AVX or AVX2, by AVX's own
/// instructions. Returns the number of replaced calls. Leaves functions for other instruction sets alone: AVX-512 has
/// mask registers, and before AVX, LLVM loads and stores lane by lane. Call it after the optimiser, which would turn
/// the instructions back into those calls.
int64_t useNativeMasks(llvm::Function &function, const llvm::TargetMachine &machine);

} // namespace tilewright

#endif
