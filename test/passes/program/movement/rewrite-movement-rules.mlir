// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=sync" | FileCheck %s --check-prefix=SYNC
// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=swap" | FileCheck %s --check-prefix=SWAP
// RUN: tilewright-opt %s --tile-rewrite-movement="target=sm_80 rules=merge" | FileCheck %s --check-prefix=MERGE
// RUN: tilewright-opt %s --tile-rewrite-movement=target=sm_80 --remarks-filter-passed=tile-rewrite-movement \
// RUN:   --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNTS

// Each rule is applied alone to three phases, the last two of which have the same tiling: an exponential, a copy, and a
// sum with other inputs.
#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// Phases with the same tiling become one part, which hands over within the block; no op moves.
// SYNC-LABEL: tile.program @exp_copy_add outputs 2
// SYNC: math.exp
// SYNC: tile.sync <grid>
// SYNC: tile.alloc : <4x53xf32, block>
// SYNC: tile.sync <thread>
// SYNC-NOT: tile.parallel
// SYNC: tile.launch

// The exponential moves behind both movements; the barriers stay.
// SWAP-LABEL: tile.program @exp_copy_add outputs 3
// SWAP-NOT: math.exp
// SWAP: tile.sync <grid>
// SWAP-NOT: math.exp
// SWAP: tile.sync <grid>
// SWAP: math.exp
// SWAP-NEXT: tile.load
// SWAP: tile.launch

// The copy is removed; its reader reads the copy's source. The exponential is written and read as before.
// MERGE-LABEL: tile.program @exp_copy_add outputs 2
// MERGE: math.exp
// MERGE-NEXT: tile.store %{{.*}}, %[[T:arg[0-9]+]]
// MERGE: tile.sync <grid>
// MERGE: tile.load %[[T]]
// MERGE-NEXT: tile.load
// MERGE-NEXT: arith.addf
// MERGE-NOT: tile.parallel
// MERGE: tile.launch

// COUNTS: remark: {{.*}}'exp_copy_add' in 2 rounds: 1 joined, 0 dropped, 0 raised, 2 swapped, 2 read-after-write, 0 read-after-read
// COUNTS-NOT: remark
tile.program @exp_copy_add outputs 3 {
^bb0(%x: !tile.slice<37x53xf32, global>, %z: !tile.slice<37x53xf32, global>, %t: !tile.slice<37x53xf32, global>,
     %u: !tile.slice<37x53xf32, global>, %y: !tile.slice<37x53xf32, global>):
  tile.parallel [37, 53] tiles [37, 8] workgroups 7 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [37, 8] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<37x53xf32, global> -> f32
      %e = math.exp %v : f32
      tile.store %e, %t at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [37, 53] tiles [4, 53] workgroups 10 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [4, 53] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %t at #id : !tile.slice<37x53xf32, global> -> f32
      tile.store %v, %u at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
  tile.sync <grid>
  tile.parallel [37, 53] tiles [4, 53] workgroups 10 attributes {tile.threads = 128 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [4, 53] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %u at #id : !tile.slice<37x53xf32, global> -> f32
      %w = tile.load %z at #id : !tile.slice<37x53xf32, global> -> f32
      %a = arith.addf %v, %w : f32
      tile.store %a, %y at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
}
func.func @call(%x: tensor<37x53xf32>, %z: tensor<37x53xf32>) -> tensor<37x53xf32> {
  %0:3 = tile.launch @exp_copy_add(%x, %z) : (tensor<37x53xf32>, tensor<37x53xf32>)
      -> (tensor<37x53xf32>, tensor<37x53xf32>, tensor<37x53xf32>)
  return %0#2 : tensor<37x53xf32>
}

// No rule applies, so the counts are zero.
tile.program @one_phase outputs 1 {
^bb0(%x: !tile.slice<37x53xf32, global>, %y: !tile.slice<37x53xf32, global>):
  tile.parallel [37, 53] tiles [4, 53] workgroups 10 {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [37, 53] sizes [4, 53] offsets [0, 1] (%i, %j) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<37x53xf32, global> -> f32
      tile.store %v, %y at #id : f32, !tile.slice<37x53xf32, global>
      tile.yield
    }
  }
  }
}
