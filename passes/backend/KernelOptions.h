// Options of the pipelines, which all backends share.
#ifndef TILEWRIGHT_BACKEND_KERNELOPTIONS_H
#define TILEWRIGHT_BACKEND_KERNELOPTIONS_H

#include "mlir/Pass/PassOptions.h"

namespace tilewright {

struct KernelOptions : mlir::PassPipelineOptions<KernelOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("target name or JSON file"), llvm::cl::init("cpu")};
  ListOption<std::string> variants{*this, "variants",
                                   llvm::cl::desc("more targets, the narrowest last, of which the processor chooses")};
  Option<std::string> objectPath{*this, "object-path", llvm::cl::desc("path of the object file to write")};
  Option<std::string> imagePath{*this, "image-path",
                                llvm::cl::desc("path of the GPU code that the module embeds; empty: object-path")};
  Option<std::string> launches{*this, "launches",
                               llvm::cl::desc("write what a runtime for CPUs needs to run the kernels as JSON")};
  Option<std::string> planIn{*this, "plan-in", llvm::cl::desc("JSON plan to carry out instead of planning")};
  Option<std::string> planOut{*this, "plan-out", llvm::cl::desc("write the plan as JSON")};
  Option<std::string> report{*this, "report", llvm::cl::desc("write a report on the plan and its reasons as JSON")};
  ListOption<std::string> scopes{*this, "scopes", llvm::cl::desc("scopes of parameter files that can be rewritten")};
  Option<std::string> recipes{*this, "recipes", llvm::cl::desc("write recipes of the parameters to store as JSON")};
  Option<std::string> manifest{*this, "manifest", llvm::cl::desc("write the kernels' signatures as JSON")};
  Option<std::string> numerics{*this, "numerics", llvm::cl::init("default"),
                               llvm::cl::desc("default, strict (every rounding to bf16 and f16 as in the graph) or "
                                              "tf32 (products of f32 rounded to tf32, on GPUs)")};
  Option<int64_t> cores{*this, "cores", llvm::cl::desc("hardware threads to plan for; 0: the target's"),
                        llvm::cl::init(0)};
  Option<int64_t> blockBytes{*this, "block-bytes",
                             llvm::cl::desc("memory of a block in bytes that plans may use; 0: the target's"),
                             llvm::cl::init(0)};
  Option<bool> countBytes{*this, "count-bytes", llvm::cl::init(false),
                          llvm::cl::desc("instrument kernels to count bytes moved; IREE cannot run them then")};
  Option<bool> traceAccesses{*this, "trace-accesses", llvm::cl::init(false),
                             llvm::cl::desc("instrument kernels to record addresses; IREE cannot run them then")};
  Option<bool> gridSync{*this, "grid-sync", llvm::cl::init(true),
                        llvm::cl::desc("join kernels by grid barriers, if the target has them")};
  Option<std::string> policy{*this, "policy", llvm::cl::init("greedy"),
                             llvm::cl::desc("planning policy (tile-print-policies lists them)")};
  Option<double> planSeconds{*this, "plan-seconds", llvm::cl::init(2),
                             llvm::cl::desc("about how long the search of the policy unified may take")};
  Option<bool> fuse{*this, "fuse", llvm::cl::init(true), llvm::cl::desc("let ops share kernels")};
  ListOption<int64_t> unfused{*this, "unfused", llvm::cl::desc("numbers in the plan of ops that share no kernel")};
  ListOption<int64_t> left{*this, "left", llvm::cl::desc("numbers in the plan of ops that stay with IREE")};
  Option<std::string> atNormalized{*this, "at-normalized",
                                   llvm::cl::desc("passes to run on the module before it is planned")};
  Option<std::string> atPlanned{*this, "at-planned",
                                llvm::cl::desc("passes to run on the planned module, before the plan is verified")};
  Option<std::string> atPrograms{*this, "at-programs",
                                 llvm::cl::desc("passes to run on the module with tile programs")};
  Option<std::string> failAt{*this, "fail-at", llvm::cl::Hidden,
                             llvm::cl::desc("for tests: the stage at which to fail: planned, program or code")};
  ListOption<std::string> failOn{*this, "fail-on", llvm::cl::Hidden,
                                 llvm::cl::desc("for tests: substrings of locations in the kernel that fails")};
  Option<bool> failByCrash{*this, "fail-by-crash", llvm::cl::Hidden, llvm::cl::init(false),
                           llvm::cl::desc("for tests: end the process instead of failing a pass")};
  Option<bool> assumeTiles{*this, "assume-tiles", llvm::cl::init(false),
                           llvm::cl::desc("do not request permission to use AMX in kernels, for emulators")};
  Option<std::string> dumpAssembly{*this, "dump-assembly", llvm::cl::desc("write the kernels' assembly")};
};

} // namespace tilewright

#endif
