// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

module {
  tile.program @k outputs 1 {
  ^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>):
  }
  func.func @h1_bindings_differ(%a: tensor<7xf32>) -> tensor<7xf32> {
    // expected-error @+1 {{H1: inputs and results do not fit the bindings of @k}}
    %r = tile.launch @k(%a) : (tensor<7xf32>) -> tensor<7xf32>
    return %r : tensor<7xf32>
  }
}

// -----

module {
  tile.program @k outputs 2 {
  ^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>, %z: !tile.slice<8xf32, global>):
  }
  func.func @h2_one_input_for_two_results(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    // expected-error @+1 {{H2: results cannot take the memory of inputs as array<i64: 0, 0> says}}
    %r:2 = tile.launch @k(%a) {tied = array<i64: 0, 0>} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

module {
  tile.program @k outputs 1 attributes {in_place = [array<i64: 1>]} {
  ^bb0(%x: !tile.slice<8xf32, global>, %y: !tile.slice<8xf32, global>, %z: !tile.slice<8xf32, global>):
  }
  func.func @h3_not_what_the_program_lists(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{H3: @k does not list array<i64: 0> in its in_place}}
    %r = tile.launch @k(%a, %b) {tied = array<i64: 0>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
  }
}
