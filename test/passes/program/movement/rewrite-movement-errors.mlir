// RUN: not tilewright-opt %s --tile-rewrite-movement=rules=fuse 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not tilewright-opt %s --tile-rewrite-movement=target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET

// RULE: error: there is no rule 'fuse': take sync, swap and merge
// TARGET: error: {{.*}}abacus
module {}
