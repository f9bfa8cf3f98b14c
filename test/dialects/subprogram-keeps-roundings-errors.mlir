// RUN: tilewright-opt %s --verify-diagnostics

#id = affine_map<(i) -> (i)>

func.func @s8_unrounded(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %r = tile.subprogram "s" (%x) extents [4] tiles [4] grid [0] vector 0 workgroups 1 numerics <kept, accurate>
      : (tensor<4xbf16>) -> tensor<4xbf16> {
  ^bb0(%a: tensor<4xbf16>):
    // expected-error @+1 {{S8: an unrounded edge where the subprogram's numerics keep roundings}}
    %c = tile.connect %a <thread> unrounded : tensor<4xbf16>
    tile.yield %c : tensor<4xbf16>
  }
  return %r : tensor<4xbf16>
}
