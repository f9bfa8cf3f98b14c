// Passes of passes/codegen/common, which every backend uses to generate target code.
#ifndef TILEWRIGHT_CODEGEN_COMMON_PASSES_TD
#define TILEWRIGHT_CODEGEN_COMMON_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmulateInstructions : Pass<"tile-emulate-instructions", "::mlir::func::FuncOp"> {
  let summary = "Replace ops that the kernel's target has no instruction for";
  let description = [{
    Arrives: kernels over `arith` and `math`. Leaves: kernels in which f64 and
    f16 or bf16 are converted through f32, rounded once; and in which, if the
    target lacks `fma`, an f32 `math.fma` is a product and a sum in f64; if it
    lacks `f16c`, conversions between f16 and f32 are integer arithmetic; if it
    lacks `avx512bf16`, conversions between bf16 and f32 are integer arithmetic
    as well. bf16 values that are only moved become i16. The pass leaves all
    other ops alone.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"",
                        "target name or JSON file, for kernels without a target of their own">];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def LowerMath : Pass<"tile-lower-math", "::mlir::ModuleOp"> {
  let summary = "Replace transcendental functions by arithmetic, without libm";
  let description = [{
    Arrives: `math` ops on f32 scalars and vectors. Leaves: `arith`, and the
    `math` ops that are instructions on every CPU target (abs, floor, ceil,
    trunc, roundeven, sqrt, fma, copysign). An `scf.if` surrounds the code that
    only huge arguments of sine and cosine need. If the target has AVX-512 VL,
    its scaling by a power of two is an `llvm.call_intrinsic`. Any other `math`
    op that remains is an error at the op. docs/reference/math.md has the error of each
    function. Conversions to integers of less than 32 bits first convert to 32
    bits, so that a signed conversion of 128 to 255 to a byte gives the same
    bits on every processor.
  }];
  let options = [Option<"target", "target", "std::string", "\"cpu\"", "target name or JSON file">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif
