// RUN: tilewright-opt %s --allow-unregistered-dialect --tile-print-launches --verify-diagnostics

// Without a path, the pass says which option is missing.
// expected-error @below {{no file is named to write to: give the pass the option for it; '-' is stdout}}
module {
}
