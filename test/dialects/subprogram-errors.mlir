// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

func.func @s1_arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{S1: block arguments must match the operands}}
  tile.subprogram "k" (%x) extents [4] tiles [4] grid [] vector 0 workgroups 1 : (tensor<4xf32>) -> () {
  ^bb0(%a: tensor<5xf32>):
    tile.yield
  }
  return
}

// -----

func.func @s2_results(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{S2: the body must yield the results}}
  %r = tile.subprogram "k" (%x) extents [4] tiles [4] grid [] vector 0 workgroups 1 : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<4xf32>):
    tile.yield %a : tensor<4xf32>
  }
  return %r : tensor<5xf32>
}

// -----

func.func @s3_lengths() {
  // expected-error @+1 {{S3: expected one tile per extent}}
  tile.subprogram "k" () extents [4, 5] tiles [4] grid [] vector 0 workgroups 1 : () -> () {
    tile.yield
  }
  return
}

// -----

func.func @s3_tile() {
  // expected-error @+1 {{S3: tile 5 does not fit extent 4}}
  tile.subprogram "k" () extents [4] tiles [5] grid [0] vector 0 workgroups 1 : () -> () {
    tile.yield
  }
  return
}

// -----

func.func @s4_grid() {
  // expected-error @+1 {{S4: grid and vector must name dims of the space, without repetition}}
  tile.subprogram "k" () extents [4] tiles [1] grid [0, 0] vector 0 workgroups 1 : () -> () {
    tile.yield
  }
  return
}

// -----

func.func @s4_vector() {
  // expected-error @+1 {{S4: grid and vector must name dims of the space, without repetition}}
  tile.subprogram "k" () extents [4] tiles [1] grid [0] vector 1 workgroups 1 : () -> () {
    tile.yield
  }
  return
}

// -----

func.func @s5_cut() {
  // expected-error @+1 {{S5: dim 2 is not in the grid, and dim 1 is walked in blocks, so its tile must be its extent}}
  tile.subprogram "k" () extents [4, 8, 8] tiles [1, 2, 2] grid [0] vector 1 workgroups 1 : () -> () {
    tile.yield
  }
  return
}

// -----

func.func @s7_streamed() {
  // expected-error @+1 {{S7: streamed must name results, without repetition}}
  tile.subprogram "k" () extents [4] tiles [1] grid [0] vector 0 workgroups 1 streamed [0] : () -> () {
    tile.yield
  }
  return
}
