// RUN: tilewright-opt %s --tile-form-subprograms='plan-in=%S/Inputs/illegal-plan.json' --verify-diagnostics
// RUN: not tilewright-opt %s --tile-form-subprograms='plan-in=%S/Inputs/malformed-plan.json' 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not tilewright-opt %s --tile-form-subprograms='plan-in=%S/Inputs/absent.json' 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not tilewright-opt %s --tile-form-subprograms='plan-out=%S/absent/plan.json' 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// RUN: not tilewright-opt %s --tile-form-subprograms='target=z80' 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tilewright-opt %s --tile-form-subprograms='policy=magic' 2>&1 | FileCheck %s --check-prefix=POLICY

// MALFORMED: error: plan '{{.*}}malformed-plan.json': {{.*}} at plan.kernels[0]
// ABSENT: error: cannot open input file '{{.*}}absent.json'
// UNWRITABLE: error: cannot open output file '{{.*}}plan.json'
// TARGET: error: unknown target 'z80'; known targets: cpu, x86-64-v2, x86-64-avx2
// POLICY: error: unknown policy 'magic'; known policies: greedy, unfused, xla, fusionstitching, welder, powerfusion, souffle, chimera, unified, exhaustive

// expected-error @+1 {{illegal plan: kernel 'second' group 0: dim 0 is not in the grid, so its tile must be its extent: it cannot be walked in blocks, because no expression reduces it}}
func.func @center(%x: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %zero = arith.constant dense<0.0> : tensor<37xf32>
  %e = tensor.empty() : tensor<37x53xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<37x53xf32>) outs(%zero : tensor<37xf32>) dimensions = [1]
  %sb = linalg.broadcast ins(%s : tensor<37xf32>) outs(%e : tensor<37x53xf32>) dimensions = [1]
  %y = linalg.sub ins(%x, %sb : tensor<37x53xf32>, tensor<37x53xf32>)
                  outs(%e : tensor<37x53xf32>) -> tensor<37x53xf32>
  return %y : tensor<37x53xf32>
}
