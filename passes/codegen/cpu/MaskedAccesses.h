// Masked loads and stores in the registers of AVX, decided before LLVM's instruction selection.
#ifndef TILEWRIGHT_CODEGEN_CPU_MASKEDACCESSES_H
#define TILEWRIGHT_CODEGEN_CPU_MASKEDACCESSES_H

#include "llvm/IR/Function.h"
#include "llvm/Target/TargetMachine.h"

namespace tilewright {

/// Rewrites what `llvm.masked.load` and `llvm.masked.store` do in a function for AVX or AVX2 with AVX's own
/// instructions; returns how many calls were rewritten. Functions for other instruction sets are left alone: AVX-512
/// has mask registers, and before AVX LLVM loads and stores lane by lane. Call it after the optimiser, which would turn
/// the instructions into the calls that they came from.
int64_t useNativeMasks(llvm::Function &function, const llvm::TargetMachine &machine);

} // namespace tilewright

#endif
