// RUN: tilewright-opt %s --tile-convert-to-gpu=target=cuda:h200 --split-input-file --verify-diagnostics

tile.program @larger_than_all_parts_have_room_for outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>):
  // expected-error @below {{clusters have 16 blocks, but target 'cuda:h200' supports powers of two up to 8}}
  tile.parallel [64] tiles [4] workgroups 16 attributes {tile.threads = 32 : i64, tile.cluster = 16 : i64} {
  tile.walk {
  ^bb0(%i: index):
  }
  }
}

// -----

tile.program @several_tiles_a_block outputs 1 {
^bb0(%x: !tile.slice<64xf32, global>):
  // expected-error @below {{clusters of 4 blocks need one tile per workgroup and no other part in the program; this part has 4 workgroups for 8 tiles}}
  tile.parallel [64] tiles [8] workgroups 4 attributes {tile.threads = 32 : i64, tile.cluster = 4 : i64} {
  tile.walk {
  ^bb0(%i: index):
  }
  }
}
