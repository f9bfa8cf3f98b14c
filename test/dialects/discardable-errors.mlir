// The discardable attributes of the dialect have a type and ops that may have them; others do not exist.
// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{the tile dialect has no attribute 'tile.thread'}}
func.func private @a_misspelt_name() attributes {tile.thread = 32 : i64}

// -----

// expected-error @+1 {{'tile.threads' must be an i64 of at least 1}}
func.func private @another_type() attributes {tile.threads = 32 : i32}

// -----

// expected-error @+1 {{'tile.cluster' must be an i64 of at least 1}}
func.func private @a_number_out_of_range() attributes {tile.cluster = 0 : i64}

// -----

// expected-error @+1 {{'tile.resident_tile' is an attribute of tile.alloc}}
func.func private @another_op() attributes {tile.resident_tile = 0 : i64}

// -----

// expected-error @+1 {{'tile.grid_sync' must be a unit}}
func.func private @a_value_of_a_flag() attributes {tile.grid_sync = true}

// -----

// expected-error @+1 {{'tile.binding_bytes' must be an i64 array}}
func.func private @a_list_of_other_numbers() attributes {tile.binding_bytes = array<i32: 4>}

// -----

// expected-error @+1 {{'tile.in_place' must be an array of i64 arrays}}
func.func private @no_ties() attributes {tile.in_place = [1 : i64]}

// -----

// expected-error @+1 {{'tile.form' must be the name of a form}}
func.func private @an_unknown_form() attributes {tile.form = "hello"}

// -----

// expected-error @+1 {{'tile.triangles' must be an array of an integer and two floats}}
func.func private @half_a_triangle() attributes {tile.triangles = [1 : i64, 0.0 : f32]}

// -----

// expected-error @+1 {{'tile.swizzled' must be an array of two positive i64}}
func.func private @no_steps() attributes {tile.swizzled = array<i64: 64, 0>}

// -----

// expected-error @+1 {{'tile.forms' must be an array of #tile.form, each with another form or number}}
func.func private @a_form_twice() attributes {
    tile.forms = [#tile.form<form = "merged contractions", number = 0, taken = true>,
                  #tile.form<form = "merged contractions", number = 0, taken = false>]}

// -----

// expected-error @+1 {{'tile.requested_forms' must be an array of #tile.form, each with another form or number}}
func.func private @requests_of_another_type() attributes {tile.requested_forms = [{form = "merged contractions"}]}

// -----

// expected-error @+1 {{'tile.blocking' is an attribute of tile.expr and tile.compute}}
func.func private @a_blocking_of_a_function() attributes {tile.blocking = #tile.blocking<vectors = 4>}

// -----

#id = affine_map<(i) -> (i)>
func.func @lifetimes_of_other_inputs(%x: tensor<7xf32>) -> tensor<7xf32> {
  // expected-error @+1 {{'tile.staged' has 2 lifetimes for 1 inputs}}
  %r = tile.subprogram "f" (%x) extents [7] tiles [7] grid [] vector 0 workgroups 1
      {tile.staged = [#tile.lifetime<tile>, #tile.lifetime<kernel>]} : (tensor<7xf32>) -> tensor<7xf32> {
  ^bb0(%a: tensor<7xf32>):
    %y = tile.expr domain [7] reduce [] (%a) maps [#id] guards [unit] into [#id] inits [] dims [0]
        : (tensor<7xf32>) -> tensor<7xf32> {
    ^bb0(%v: f32):
      tile.yield %v : f32
    }
    tile.yield %y : tensor<7xf32>
  }
  return %r : tensor<7xf32>
}

// -----

// expected-error @+1 {{'tile.staged' is an attribute of tile.subprogram}}
func.func private @staging_of_a_function() attributes {tile.staged = [#tile.lifetime<tile>]}
