// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{T1: a slice holds integers or floats, not}}
func.func private @t1_element(!tile.slice<4x8xcomplex<f32>, block>)

// -----

// expected-error @+1 {{T2: expected 2 strides, got 1}}
func.func private @t2_strides(!tile.slice<4x8xf32, global, strides [8]>)

// -----

// expected-error @+1 {{unknown memory space 'attic'}}
func.func private @space(!tile.slice<4x8xf32, attic>)
