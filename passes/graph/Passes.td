// Passes of passes/graph: printing what the analyses of tensor expressions find.
#ifndef TILEWRIGHT_GRAPH_PASSES_TD
#define TILEWRIGHT_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintTensorGraph : Pass<"tile-print-tensor-graph", "::mlir::func::FuncOp"> {
  let summary = "Print the tensor dependence graph";
  let description = [{
    Souffle 5.1: on each op its expression, edges and live ranges; where a
    tensor is defined that several expressions read, whether the reuse is
    spatial or temporal. Changes nothing. See test/passes/graph/tensor-graph.mlir.
  }];
}

def PrintElementDependence : Pass<"tile-print-element-dependence", "::mlir::func::FuncOp"> {
  let summary = "Print which input elements each output element relies on";
  let description = [{
    Souffle 5.2: one-relies-on-one with its matrix where the map is affine,
    one-relies-on-many with the ranges of the reduction variables. Changes
    nothing. See test/passes/graph/element-dependence.mlir.
  }];
}

def PrintComputeRatio : Pass<"tile-print-compute-ratio", "::mlir::func::FuncOp"> {
  let summary = "Print arithmetic per element moved";
  let description = [{
    Souffle 5.3. Changes nothing. See test/passes/graph/compute-ratio.mlir.
  }];
  let options = [Option<"threshold", "threshold", "double", "3.0",
                        "operations per element from which an op is compute-intensive">];
}

def PrintPropagation : Pass<"tile-print-propagation", "::mlir::func::FuncOp"> {
  let summary = "Print the tiles that an output tile needs, their footprint and their traffic";
  let description = [{
    Welder 3.1: the tile of the first returned value, carried to every input and
    on to the other outputs; an output that cannot be aligned is named with the
    reason. Changes nothing. See test/passes/graph/propagation.mlir.
  }];
  let options = [
    ListOption<"outputTile", "output-tile", "int64_t", "elements per dim of the first returned value; missing: all">,
    Option<"reductionTile", "reduction-tile", "int64_t", "0",
           "elements of a reduced dim that are resident at once; 0: all">,
    Option<"connect", "connect", "bool", "true", "connect every edge; false: every op alone">];
}

#endif
