// The opt tool of this project: runs any pass or pipeline on a file, with the conventions of mlir-opt.
#include "core/Core.h"

int main(int argc, char **argv) { return tilewright::optMain(argc, argv); }
