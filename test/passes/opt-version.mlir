// RUN: tilewright-opt --version | FileCheck %s

// The version is that of this project; MLIR's is in parentheses.
// CHECK: {{^}}tilewright-opt {{[0-9]+\.[0-9]+\.[0-9]+}} (MLIR {{[0-9]+\.}}
