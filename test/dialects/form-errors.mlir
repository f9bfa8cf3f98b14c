// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{A6: unknown form 'hello'}}
func.func private @a6_unknown() attributes {form = #tile.form<form = "hello", number = 0, taken = true>}

// -----

// expected-error @+2 {{A7: parameter "parts" must be an array of i64}}
func.func private @a7_parameter() attributes {
    form = #tile.form<form = "two-phase reduction", number = 0, taken = true, parameters = {parts = 4 : i64}>}

// -----

// expected-error @+2 {{A8: ops must be strings}}
func.func private @a8_ops() attributes {
    form = #tile.form<form = "two-phase reduction", number = 0, taken = true, ops = [3 : i64]>}
