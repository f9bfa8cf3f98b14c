// RUN: tilewright-opt %s --pass-pipeline='builtin.module(func.func(tile-trace-accesses,canonicalize,cse))' | FileCheck %s

// Each access appends its address, bytes and direction, for bindings and for the workgroup's memory; accesses that find
// no space left are counted in the last entry.
// CHECK-LABEL: func.func @kernel
// CHECK-SAME: (%[[X:.*]]: memref<4x8xf32>, %[[TRACE:.*]]: memref<1099511627776xindex>, %[[LOCAL:.*]]: memref<64xi8>, %{{.*}}: index)
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[BYTES:.*]] = arith.constant 64 : index
// CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index %[[X]]
// CHECK: %[[USED:.*]] = memref.load %[[TRACE]][%c0]
// CHECK: %[[ROOM:.*]] = memref.load %[[TRACE]][%c1]
// CHECK: %[[MIN:.*]] = arith.minui %[[USED]], %[[ROOM]]
// CHECK: %[[PLACE:.*]] = arith.addi %[[MIN]], %[[C2]]
// CHECK: memref.store %{{.*}}, %[[TRACE]][%[[PLACE]]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[USED]], %c1
// CHECK: memref.store %[[NEXT]], %[[TRACE]][%c0]
// CHECK: vector.load %[[X]]
// CHECK: memref.extract_aligned_pointer_as_index %{{.*}} : memref<8xf32>
// CHECK: vector.store
func.func @kernel(%x: memref<4x8xf32>, %local: memref<64xi8>, %workgroup: index) attributes {tile.workgroups = 1 : i64} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %buffer = memref.view %local[%zero][] : memref<64xi8> to memref<8xf32>
  %v = vector.load %x[%two, %zero] : memref<4x8xf32>, vector<8xf32>
  vector.store %v, %buffer[%zero] : memref<8xf32>, vector<8xf32>
  return
}

// A function that is not a kernel is left alone.
// CHECK-LABEL: func.func @other
// CHECK-NOT: memref.store
func.func @other(%x: memref<4xf32>, %i: index) -> f32 {
  %v = memref.load %x[%i] : memref<4xf32>
  return %v : f32
}
