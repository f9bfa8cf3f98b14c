// RUN: tilewright-opt %s --split-input-file --verify-diagnostics

tile.program @f1_no_dims outputs 0 {
  tile.parallel [6, 8] tiles [1, 2] workgroups 2 {
    tile.walk {
    ^bb0(%i: index, %j: index):
      // expected-error @+1 {{F1: along must count from 1 to the 2 dims of the grid}}
      tile.keep along 0 {
      }
    }
  }
}

// -----

tile.program @f1_more_than_the_grid outputs 0 {
  tile.parallel [6] tiles [1] workgroups 2 {
    tile.walk {
    ^bb0(%i: index):
      // expected-error @+1 {{F1: along must count from 1 to the 1 dims of the grid}}
      tile.keep along 2 {
      }
    }
  }
}
