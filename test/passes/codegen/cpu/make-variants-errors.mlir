// RUN: not tilewright-opt %s --tile-make-variants=targets=x86-64-avx2,x86-64-avx512 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tilewright-opt %s --tile-make-variants=targets=x86-64-avx2,x86-64-avx2 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: echo '{"base": "x86-64-avx2", "features": "+avx2,+avxvnni"}' > %t.json
// RUN: not tilewright-opt %s --tile-make-variants=targets=%t.json,x86-64-v2 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// ORDER: variant 'x86-64-avx512' would never be chosen, because 'x86-64-avx2' comes before it and needs no more
// TWICE: target 'x86-64-avx2' is given twice
// UNKNOWN: IREE's runtime does not report avxvnni, so no variant can depend on it
module {}
