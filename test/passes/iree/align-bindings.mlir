// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-align-bindings --split-input-file | FileCheck %s

// On a GPU, slices and offsets that are no multiple of 16 bytes, or not known, are copied, through reshapes and slices
// of slices. The others are left alone: those that are aligned, and those that are not contiguous, which IREE copies
// anyway.
// CHECK-LABEL: func.func @slices
// CHECK: %[[ODD:.*]] = tensor.extract_slice %{{.*}}[0, 3]
// CHECK: %[[EVEN:.*]] = tensor.extract_slice %{{.*}}[0, 8]
// CHECK: %[[NEXT:.*]] = tensor.extract_slice %[[EVEN]][0, 1]
// CHECK: %[[SHAPED:.*]] = tensor.expand_shape %[[NEXT]]
// CHECK: %[[PIECES:.*]] = tensor.extract_slice %{{.*}}[0, 3] [2, 16]
// CHECK: %[[LATER:.*]] = tensor.extract_slice
// CHECK: %[[A:.*]] = "util.optimization_barrier"(%[[ODD]])
// CHECK: %[[B:.*]] = "util.optimization_barrier"(%[[SHAPED]])
// CHECK: %[[C:.*]] = "util.optimization_barrier"(%[[LATER]])
// CHECK: tile.launch @tilewright_kernels::@k(%[[A]], %[[EVEN]], %[[B]], %[[PIECES]], %[[C]])
// CHECK-LABEL: func.func @places
// CHECK: %[[Y:.*]] = tile.launch
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[Y]]
// CHECK: tensor.concat dim(0) %[[FLAT]], %{{.*}}
// CHECK: %[[COPY:.*]] = "util.optimization_barrier"(%[[FLAT]])
// CHECK: tensor.concat dim(0) %{{.*}}, %[[COPY]]
// CHECK: tensor.insert_slice %[[FLAT]] into %{{.*}}[8]
// CHECK: %[[COPIED:.*]] = "util.optimization_barrier"(%[[FLAT]])
// CHECK: tensor.insert_slice %[[COPIED]] into %{{.*}}[7]
// CHECK: tensor.concat dim(1) %{{.*}}, %[[Y]]
module {
  module @tilewright_kernels {
    gpu.module @kernels {
    }
  }
  func.func @slices(%x: tensor<1x64xf32>, %m: tensor<2x64xf32>, %at: index) -> tensor<7xf32> {
    %odd = tensor.extract_slice %x[0, 3] [1, 16] [1, 1] : tensor<1x64xf32> to tensor<1x16xf32>
    %even = tensor.extract_slice %x[0, 8] [1, 32] [1, 1] : tensor<1x64xf32> to tensor<1x32xf32>
    %next = tensor.extract_slice %even[0, 1] [1, 16] [1, 1] : tensor<1x32xf32> to tensor<1x16xf32>
    %shaped = tensor.expand_shape %next [[0], [1, 2]] output_shape [1, 4, 4] : tensor<1x16xf32> into tensor<1x4x4xf32>
    %pieces = tensor.extract_slice %m[0, 3] [2, 16] [1, 1] : tensor<2x64xf32> to tensor<2x16xf32>
    %later = tensor.extract_slice %x[0, %at] [1, 16] [1, 1] : tensor<1x64xf32> to tensor<1x16xf32>
    %y = tile.launch @tilewright_kernels::@k(%odd, %even, %shaped, %pieces, %later)
        : (tensor<1x16xf32>, tensor<1x32xf32>, tensor<1x4x4xf32>, tensor<2x16xf32>, tensor<1x16xf32>) -> tensor<7xf32>
    return %y : tensor<7xf32>
  }
  func.func @places(%x: tensor<7xf32>, %z: tensor<7xf32>, %w: tensor<32xf32>, %v: tensor<2x3xf32>) -> (tensor<21xf32>, tensor<21xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x10xf32>) {
    %y = tile.launch @tilewright_kernels::@k(%x) : (tensor<7xf32>) -> tensor<2x7xf32>
    %f = tensor.collapse_shape %y [[0, 1]] : tensor<2x7xf32> into tensor<14xf32>
    %a = tensor.concat dim(0) %f, %z : (tensor<14xf32>, tensor<7xf32>) -> tensor<21xf32>
    %b = tensor.concat dim(0) %z, %f : (tensor<7xf32>, tensor<14xf32>) -> tensor<21xf32>
    %c = tensor.insert_slice %f into %w[8] [14] [1] : tensor<14xf32> into tensor<32xf32>
    %d = tensor.insert_slice %f into %w[7] [14] [1] : tensor<14xf32> into tensor<32xf32>
    %e = tensor.concat dim(1) %v, %y : (tensor<2x3xf32>, tensor<2x7xf32>) -> tensor<2x10xf32>
    return %a, %b, %c, %d, %e : tensor<21xf32>, tensor<21xf32>, tensor<32xf32>, tensor<32xf32>, tensor<2x10xf32>
  }
}

// -----

// The step of a sequence begins at a position that is known only at run time, but steps are whole multiples apart: of 16
// bytes in the first sequence, not in the second.
// CHECK-LABEL: func.func @steps
// CHECK: %[[EVEN:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0] [1, 8]
// CHECK: %[[ODD:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0] [1, 7]
// CHECK: %[[COPY:.*]] = "util.optimization_barrier"(%[[ODD]])
// CHECK: tile.launch @tilewright_kernels::@k(%[[EVEN]], %[[COPY]])
module {
  module @tilewright_kernels {
    gpu.module @kernels {
    }
  }
  func.func @steps(%x: tensor<5x8xf32>, %y: tensor<5x7xf32>, %at: index) -> tensor<7xf32> {
    %even = tensor.extract_slice %x[%at, 0] [1, 8] [1, 1] : tensor<5x8xf32> to tensor<8xf32>
    %odd = tensor.extract_slice %y[%at, 0] [1, 7] [1, 1] : tensor<5x7xf32> to tensor<7xf32>
    %z = tile.launch @tilewright_kernels::@k(%even, %odd) : (tensor<8xf32>, tensor<7xf32>) -> tensor<7xf32>
    return %z : tensor<7xf32>
  }
}

// -----

// On a CPU, kernels with streaming stores need offsets of whole 64 bytes. Whole vectors are read from any address.
// CHECK-LABEL: func.func @cpu
// CHECK: %[[X:.*]] = tensor.extract_slice
// CHECK: %[[Y:.*]] = tile.launch @tilewright_kernels::@streams(%[[X]])
// CHECK: %[[COPY:.*]] = "util.optimization_barrier"(%[[Y]])
// CHECK: tensor.insert_slice %[[COPY]] into %{{.*}}[8]
// CHECK: tensor.insert_slice %[[Y]] into %{{.*}}[16]
module {
  module @tilewright_kernels {
    llvm.func @streams(%a: !llvm.ptr, %v: vector<16xf32>) {
      llvm.call @streams.kernel(%a, %v) : (!llvm.ptr, vector<16xf32>) -> ()
      llvm.return
    }
    llvm.func internal @streams.kernel(%a: !llvm.ptr, %v: vector<16xf32>) {
      llvm.store %v, %a {alignment = 64 : i64, nontemporal} : vector<16xf32>, !llvm.ptr
      llvm.return
    }
  }
  func.func @cpu(%x: tensor<32xf32>, %w: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
    %s = tensor.extract_slice %x[3] [16] [1] : tensor<32xf32> to tensor<16xf32>
    %y = tile.launch @tilewright_kernels::@streams(%s) : (tensor<16xf32>) -> tensor<14xf32>
    %a = tensor.insert_slice %y into %w[8] [14] [1] : tensor<14xf32> into tensor<64xf32>
    %b = tensor.insert_slice %y into %w[16] [14] [1] : tensor<14xf32> into tensor<64xf32>
    return %a, %b : tensor<64xf32>, tensor<64xf32>
  }
}

// -----

// CHECK-LABEL: func.func @stores_through_caches
// CHECK-NOT: optimization_barrier
module {
  module @tilewright_kernels {
    llvm.func @plain(%a: !llvm.ptr, %v: vector<16xf32>) {
      llvm.store %v, %a {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
      llvm.return
    }
  }
  func.func @stores_through_caches(%x: tensor<32xf32>, %w: tensor<64xf32>) -> tensor<64xf32> {
    %z = tile.launch @tilewright_kernels::@plain(%x) : (tensor<32xf32>) -> tensor<14xf32>
    %c = tensor.insert_slice %z into %w[7] [14] [1] : tensor<14xf32> into tensor<64xf32>
    return %c : tensor<64xf32>
  }
}
