// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{A4: m must be a power of two, not 3}}
func.func private @a4_units() attributes {gemm = #tile.gemm<m = 3, n = 1, step = 8, stages = 2>}

// -----

// expected-error @+1 {{A4: step must be a power of two, not 0}}
func.func private @a4_no_step() attributes {gemm = #tile.gemm<m = 1, n = 1, step = 0, stages = 2>}

// -----

// expected-error @+1 {{A4: a step of 4 along K has no element for some of the 8 slices}}
func.func private @a4_slices() attributes {gemm = #tile.gemm<m = 1, n = 1, k_slices = 8, step = 4, stages = 2>}

// -----

// expected-error @+1 {{A5: a contraction needs at least two stages, not 1}}
func.func private @a5_one_stage() attributes {gemm = #tile.gemm<m = 1, n = 1, step = 8, stages = 1>}

// -----

// expected-error @+1 {{A9: lhs_copy must be 0 or a power of two of at most 16 bytes, not 12}}
func.func private @a9_no_power() attributes {gemm = #tile.gemm<m = 1, n = 1, step = 8, stages = 2, lhs_copy = 12>}

// -----

// expected-error @+1 {{A9: rhs_copy must be 0 or a power of two of at most 16 bytes, not 32}}
func.func private @a9_too_wide() attributes {gemm = #tile.gemm<m = 1, n = 1, step = 8, stages = 2, rhs_copy = 32>}
