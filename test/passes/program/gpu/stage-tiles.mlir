// RUN: tilewright-opt %s --pass-pipeline='builtin.module(tile.program(tile-stage-tiles{target=cuda:h200}))' --mlir-print-local-scope --split-input-file | FileCheck %s

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#local = affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
#row = affine_map<(d0, d1)[s0, s1] -> (d0 - s0)>

// Rows of 321 elements start anywhere in a sector. The copy takes over the buffer that held the row, and so does the
// output, because the nest that writes it reads the row last and at the same index.
// CHECK-LABEL: tile.program @copies_unaligned_rows
// CHECK-SAME: outputs 1
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<77x321xf32, global>, %[[Y:.*]]: !tile.slice<77x321xf32, global>)
// CHECK: %[[BUFFER:.*]] = tile.alloc {tile.aligned_as = affine_map<(d0) -> (d0 * 321)>} : <1x321xf32, block>
// CHECK: tile.compute [77, 321] sizes [1, 321]
// CHECK-NEXT: tile.load %[[X]]
// CHECK-NEXT: tile.store {{.*}}, %[[BUFFER]]
// CHECK: tile.sync <block>
// CHECK-NOT: tile.alloc {{.*}}1x321
// CHECK: tile.compute
// CHECK: tile.load %[[BUFFER]] at affine_map<(d0, d1)[s0, s1] -> (d0 - s0, d1)>
// CHECK-NOT: tile.store
// CHECK: tile.sync <block>
// CHECK: tile.compute
// CHECK: tile.load %[[BUFFER]]
// CHECK: tile.store {{.*}}, %[[BUFFER]]
// CHECK: tile.sync <block>
// CHECK: tile.compute
// CHECK: tile.load %[[BUFFER]]
// CHECK-NEXT: tile.store {{.*}}, %[[Y]]
tile.program @copies_unaligned_rows outputs 1 {
^bb0(%x: !tile.slice<77x321xf32, global>, %y: !tile.slice<77x321xf32, global>):
  tile.parallel [77] tiles [1] workgroups 77 attributes {tile.threads = 128 : i64, tile.group = 128 : i64} {
  tile.walk {
  ^bb0(%i: index):
    %row = tile.alloc : !tile.slice<1x321xf32, block>
    %sum = tile.alloc : !tile.slice<1xf32, block>
    tile.compute [77, 321] sizes [1, 321] offsets [0] (%i) vector 1 reduce [1]
        into (%sum : !tile.slice<1xf32, block>) at [#row] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x321xf32, global> -> f32
      tile.store %v, %row at #local : f32, !tile.slice<1x321xf32, block>
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.sync <block>
    tile.compute [77, 321] sizes [1, 321] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %row at #local : !tile.slice<1x321xf32, block> -> f32
      %s = tile.load %sum at #row : !tile.slice<1xf32, block> -> f32
      %d = arith.subf %v, %s : f32
      tile.store %d, %y at #id : f32, !tile.slice<77x321xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// Each thread has a row: neighbours would read elements that are 20 bytes apart.
// CHECK-LABEL: tile.program @copies_rows_of_a_few_elements
// CHECK: %[[BUFFER:.*]] = tile.alloc {tile.aligned_as = affine_map<(d0) -> (d0 * 5)>} : <64x5xf32, block>
// CHECK: tile.sync <block>
// CHECK: tile.load %[[BUFFER]]
tile.program @copies_rows_of_a_few_elements outputs 1 {
^bb0(%x: !tile.slice<77x5xf32, global>, %y: !tile.slice<77xf32, global>):
  tile.parallel [77] tiles [64] workgroups 2 attributes {tile.threads = 64 : i64, tile.group = 1 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [77, 5] sizes [64, 5] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<77xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x5xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>

// The input before it does not fit; the output still takes over the buffer of the input that it is computed from.
// CHECK-LABEL: tile.program @stages_behind_what_does_not_fit
// CHECK: ^bb0(%[[LARGE:[a-z0-9]+]]: !tile.slice<3x100003xf32, global>, %[[X:[a-z0-9]+]]: !tile.slice<3x1003xf32, global>
// CHECK: %[[BUFFER:.*]] = tile.alloc {{.*}} : <1x1003xf32, block>
// CHECK-NOT: tile.alloc
// CHECK: tile.load %[[X]]
// CHECK: tile.load %[[LARGE]]
// CHECK: tile.store {{.*}}, %[[BUFFER]]
tile.program @stages_behind_what_does_not_fit outputs 2 {
^bb0(%large: !tile.slice<3x100003xf32, global>, %x: !tile.slice<3x1003xf32, global>,
     %s: !tile.slice<3xf32, global>, %y: !tile.slice<3x1003xf32, global>):
  tile.parallel [3] tiles [1] workgroups 3 attributes {tile.threads = 256 : i64, tile.group = 256 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [3, 100003] sizes [1, 100003] offsets [0] (%i) vector 1 reduce [1]
        into (%s : !tile.slice<3xf32, global>) at [affine_map<(d0, d1)[s0, s1] -> (d0)>] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %large at #id : !tile.slice<3x100003xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
    tile.compute [3, 1003] sizes [1, 1003] offsets [0] (%i) vector 1 reduce [] {
      %v = tile.load %x at #id : !tile.slice<3x1003xf32, global> -> f32
      %e = math.exp %v : f32
      tile.store %e, %y at #id : f32, !tile.slice<3x1003xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, d2)>
#rotated = affine_map<(d0, d1, d2)[s0, s1, s2] -> (d0, d1, (d2 + 32) mod 64)>

// Three of five heads at one position, read twice: three runs of eight sectors. A copy reads each of them once.
// CHECK-LABEL: tile.program @copies_runs_of_sectors
// CHECK-SAME: outputs 1
// CHECK: ^bb0(%[[X:.*]]: !tile.slice<5x7x64xf32, global>, %[[Y:.*]]: !tile.slice<5x7x64xf32, global>)
// CHECK: %[[BUFFER:.*]] = tile.alloc {{.*}} : <3x1x64xf32, block>
// CHECK: tile.compute [5, 7, 64] sizes [3, 1, 64]
// CHECK-NEXT: tile.load %[[X]]
// CHECK-NEXT: tile.store {{.*}}, %[[BUFFER]]
// CHECK: tile.sync <block>
// CHECK: tile.load %[[BUFFER]]
// CHECK: tile.load %[[BUFFER]]
// CHECK: tile.store {{.*}}, %[[Y]]
tile.program @copies_runs_of_sectors outputs 1 {
^bb0(%x: !tile.slice<5x7x64xf32, global>, %y: !tile.slice<5x7x64xf32, global>):
  tile.parallel [5, 7] tiles [3, 1] workgroups 14 attributes {tile.threads = 64 : i64, tile.group = 0 : i64} {
  tile.walk {
  ^bb0(%i: index, %j: index):
    tile.compute [5, 7, 64] sizes [3, 1, 64] offsets [0, 1] (%i, %j) vector 2 reduce [] {
      %v = tile.load %x at #id : !tile.slice<5x7x64xf32, global> -> f32
      %r = tile.load %x at #rotated : !tile.slice<5x7x64xf32, global> -> f32
      %s = arith.addf %v, %r : f32
      tile.store %s, %y at #id : f32, !tile.slice<5x7x64xf32, global>
      tile.yield
    }
  }
  }
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// The plan states that threads access rows directly, though these start anywhere in a sector.
// CHECK-LABEL: tile.program @accesses_directly_what_is_stated
// CHECK-NOT: tile.accesses
// CHECK-NOT: tile.alloc
// CHECK: return
module {
tile.program @accesses_directly_what_is_stated outputs 1 {
^bb0(%x: !tile.slice<77x321xf32, global>, %y: !tile.slice<77xf32, global>):
  tile.parallel [77] tiles [1] workgroups 77 attributes {tile.accesses = [#tile.access<direct>, #tile.access<derived>], tile.threads = 128 : i64, tile.group = 128 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [77, 321] sizes [1, 321] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<77xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x321xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
func.func @end() {
  return
}
}

// -----

#id = affine_map<(d0, d1)[s0, s1] -> (d0, d1)>
#acc = affine_map<(d0, d1)[s0, s1] -> (d0)>

// Rows of 128 elements are whole sectors, so a copy touches as many; the plan states it nevertheless.
// CHECK-LABEL: tile.program @copies_what_is_stated
// CHECK: %[[ROW:.*]] = tile.alloc {{.*}} : <1x128xf32, block>
// CHECK: tile.sync <block>
// CHECK: tile.load %[[ROW]]
tile.program @copies_what_is_stated outputs 1 {
^bb0(%x: !tile.slice<77x128xf32, global>, %y: !tile.slice<77xf32, global>):
  tile.parallel [77] tiles [1] workgroups 77 attributes {tile.accesses = [#tile.access<whole>, #tile.access<derived>], tile.threads = 32 : i64, tile.group = 32 : i64} {
  tile.walk {
  ^bb0(%i: index):
    tile.compute [77, 128] sizes [1, 128] offsets [0] (%i) vector 1 reduce [1]
        into (%y : !tile.slice<77xf32, global>) at [#acc] inits [0.0 : f32] kinds ["add"] {
    ^bb0(%acc: f32):
      %v = tile.load %x at #id : !tile.slice<77x128xf32, global> -> f32
      %n = arith.addf %v, %acc : f32
      tile.yield %n : f32
    }
  }
  }
}
