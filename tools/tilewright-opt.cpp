// The opt of this project: every pass and pipeline on a file, with the conventions of mlir-opt.
#include "core/Core.h"

int main(int argc, char **argv) { return tilewright::optMain(argc, argv); }
