// Passes of passes/graph: they print the results of the analyses of tensor expressions.
#ifndef TILEWRIGHT_GRAPH_PASSES_TD
#define TILEWRIGHT_GRAPH_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintTensorGraph : Pass<"tile-print-tensor-graph", "::mlir::func::FuncOp"> {
  let summary = "Print the tensor dependence graph";
  let description = [{
    Prints the graph of Souffle 5.1: on each op its expression, edges and live
    ranges, and at the definition of a tensor that several expressions read,
    whether the reuse is spatial or temporal. The pass changes nothing. See
    test/passes/graph/tensor-graph.mlir.
  }];
}

def PrintElementDependence : Pass<"tile-print-element-dependence", "::mlir::func::FuncOp"> {
  let summary = "Print which input elements each output element relies on";
  let description = [{
    Prints the relations of Souffle 5.2: one-relies-on-one with its matrix if
    the map is affine, and one-relies-on-many with the ranges of the reduction
    variables. The pass changes nothing. See
    test/passes/graph/element-dependence.mlir.
  }];
}

def PrintComputeRatio : Pass<"tile-print-compute-ratio", "::mlir::func::FuncOp"> {
  let summary = "Print arithmetic per element moved";
  let description = [{
    Prints the ratio of Souffle 5.3 on each op, and whether the op is memory- or
    compute-intensive. The pass changes nothing. See
    test/passes/graph/compute-ratio.mlir.
  }];
  let options = [Option<"threshold", "threshold", "double", "3.0",
                        "smallest ratio, in operations per element, of a compute-intensive op">];
}

def PrintPropagation : Pass<"tile-print-propagation", "::mlir::func::FuncOp"> {
  let summary = "Print the tiles that an output tile needs, their footprint and their traffic";
  let description = [{
    Propagates tiles as in Welder 3.1: the tile of the first returned value is
    carried to every input and on to the other outputs. An output that cannot be
    aligned is named with the reason. The pass changes nothing. See
    test/passes/graph/propagation.mlir.
  }];
  let options = [
    ListOption<"outputTile", "output-tile", "int64_t",
               "elements per dim of the first returned value; dims without a number are whole">,
    Option<"reductionTile", "reduction-tile", "int64_t", "0",
           "elements of a reduced dim that are resident at once; 0 keeps all">,
    Option<"connect", "connect", "bool", "true", "connect every edge; if false, every op is alone">];
}

#endif
