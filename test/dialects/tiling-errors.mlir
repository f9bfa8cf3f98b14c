// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{A1: tile sizes must be positive}}
func.func private @a1_size() attributes {t = #tile.tiling<block, sizes = [4, 0], order = [0, 1]>}

// -----

// expected-error @+1 {{A2: order must be a permutation of the 2 dims}}
func.func private @a2_repeated() attributes {t = #tile.tiling<block, sizes = [4, 8], order = [0, 0]>}

// -----

// expected-error @+1 {{A2: order must be a permutation of the 2 dims}}
func.func private @a2_missing() attributes {t = #tile.tiling<block, sizes = [4, 8], order = [1]>}
