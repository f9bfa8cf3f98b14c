// The opt of this project: every pass and pipeline on a file, with the conventions of mlir-opt.
#include "passes/Pipelines.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  tilewright::registerDialects(registry);
  tilewright::registerAllPassesAndPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "Tilewright optimizer driver\n", registry));
}
