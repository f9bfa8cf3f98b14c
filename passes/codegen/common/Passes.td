// Passes of passes/codegen/common: target code for every backend.
#ifndef TILEWRIGHT_CODEGEN_COMMON_PASSES_TD
#define TILEWRIGHT_CODEGEN_COMMON_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmulateInstructions : Pass<"tile-emulate-instructions", "::mlir::func::FuncOp"> {
  let summary = "Replace what a kernel's target has no instruction for";
  let description = [{
    Arrives: kernels over `arith` and `math`. Leaves: without `fma`, `math.fma`
    in f32 as a product and a sum in f64; without `f16c`, conversions between
    f16 and f32 as integer arithmetic; without `avx512bf16`, conversions between
    bf16 and f32 so too; bf16 as i16 wherever it is only moved. All else is left
    alone.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"",
                        "target name or JSON file, of kernels that do not say theirs">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LowerMath : Pass<"tile-lower-math", "::mlir::ModuleOp"> {
  let summary = "Replace transcendental functions by arithmetic, without libm";
  let description = [{
    Arrives: `math` ops on f32 scalars and vectors. Leaves: `arith`, and those
    `math` ops that are instructions on every CPU target (abs, floor, ceil,
    trunc, roundeven, sqrt, fma, copysign); an `scf.if` around what only huge
    arguments of sine and cosine need; and, where the target has AVX-512 VL, its
    scaling by a power of two as an `llvm.call_intrinsic`. Anything else that
    remains is an error at the op. docs/math.md has the error of each function.
    Conversions to integers of less than 32 bits go by way of words, so that
    unsigned bytes by the signed conversion are the same on every processor.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif
