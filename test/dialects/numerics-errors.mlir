// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{A3: each form must be a known one and stand once, not 'online softmax'}}
func.func private @a3_repeated() attributes {n = #tile.numerics<relaxed, fast, forms = ["online softmax", "online softmax"]>}

// -----

// expected-error @+1 {{A3: each form must be a known one and stand once, not ''}}
func.func private @a3_empty() attributes {n = #tile.numerics<kept, accurate, forms = [""]>}
