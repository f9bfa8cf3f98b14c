// RUN: not tilewright-opt %s --mlir-print-ir-before-all --tilewright-cpu 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not tilewright-opt %s --mlir-print-ir-before-all --pass-pipeline='builtin.module(tilewright-cuda{target=cuda:a100})' \
// RUN:   2>&1 | FileCheck %s --check-prefix=CUDA

// A pipeline that writes code asks for the name of its file before any pass runs.
// CPU-NOT: IR Dump
// CPU: tilewright-cpu needs object-path=FILE
// CUDA-NOT: IR Dump
// CUDA: tilewright-cuda needs object-path=FILE
module {}
