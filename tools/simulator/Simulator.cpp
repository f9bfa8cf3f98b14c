// Simulates a launch: parses the module, rewrites the kernel for the host, compiles it, runs it and fills the report.
#include "tools/simulator/Simulator.h"
#include "tools/simulator/Jit.h"
#include "tools/simulator/Machine.h"
#include "tools/simulator/Rewrite.h"

#include "passes/support/Locations.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::simulator;

/// Returns the reason why the device refuses the launch, or "".
static std::string refusal(const Launch &launch, const DeviceProgram &program, const Machine &machine) {
  auto text = [](uint64_t value) { return std::to_string(value); };
  uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  if (program.numBindings != launch.bindings.size() || program.numConstants != launch.constants.size())
    return "the kernel takes " + text(program.numBindings) + " buffers and " + text(program.numConstants) +
           " constants; the launch has " + text(launch.bindings.size()) + " and " + text(launch.constants.size());
  if (blocks == 0)
    return "the grid is empty";
  if (blocks % program.cluster != 0)
    return "a grid of " + text(blocks) + " blocks is not a multiple of the cluster size " + text(program.cluster);
  if (program.cluster > 1 && program.gridBarrier)
    return "a grid barrier in a kernel with clusters is not simulated";
  if (!program.maxThreads[0] && !launch.block[0])
    return "the kernel has no nvvm.maxntid, so the launch must say how many threads a block has";
  uint64_t most = uint64_t(program.maxThreads[0]) * program.maxThreads[1] * program.maxThreads[2];
  if (machine.numThreads > 1024 || (most && machine.numThreads > most))
    return "a block of " + text(machine.numThreads) + " threads is more than the " + text(most ? most : 1024) +
           " that are allowed";
  if (launch.device.sharedBytes && machine.layout.usedBytes > launch.device.sharedBytes)
    return "a block needs " + text(machine.layout.usedBytes) + " bytes of shared memory; " + launch.device.name +
           " has " + text(launch.device.sharedBytes);
  uint64_t resident = launch.device.multiprocessors * std::max(1u, program.minBlocksPerMultiprocessor);
  if (program.gridBarrier && blocks > resident)
    return "the kernel has a grid barrier, but of its " + text(blocks) + " blocks only " + text(resident) +
           " are sure to run at the same time on " + launch.device.name;
  return "";
}

/// Largest grid, in blocks. Shadow memory has 22 bits for the number of a block.
static constexpr uint64_t mostBlocks = 4'000'000;

static double product(const std::array<uint32_t, 3> &size) { return double(size[0]) * size[1] * size[2]; }

std::pair<Report, std::string> tilewright::simulator::simulate(const Launch &launch) {
  if (product(launch.grid) > mostBlocks)
    return {{}, "a grid of more than " + std::to_string(mostBlocks) + " blocks is not simulated"};
  if (product(launch.block) > 1024)
    return {{}, "a block has at most 1024 threads"};
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Clock::time_point begin = Clock::now();

  DialectRegistry registry;
  registry.insert<gpu::GPUDialect, LLVM::LLVMDialect, NVVM::NVVMDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    std::string location = describe(diagnostic.getLocation());
    errors += (errors.empty() ? "" : "; ") + (location.empty() ? "" : location + ": ") + diagnostic.str();
    return success();
  });
  auto module = parseSourceString<ModuleOp>(launch.text, ParserConfig(&context), "kernel");
  if (!module)
    return {{}, errors};
  DeviceProgram program;
  OwningOpRef<ModuleOp> rewritten = rewriteKernel(*module, launch.kernel, program);
  if (!rewritten)
    return {{}, errors};
  auto jit = Jit::compile(*rewritten);
  if (!jit)
    return {{}, llvm::toString(jit.takeError()) + errors};
  auto entry = (*jit)->address(entryName);
  if (!entry)
    return {{}, llvm::toString(entry.takeError())};

  GlobalMemory memory;
  bool fits = memory.addBindings(launch.bindings, program.granule());
  for (const Variable &variable : program.global) {
    auto address = (*jit)->address(variable.name);
    if (!address)
      return {{}, llvm::toString(address.takeError())};
    fits = fits && memory.addVariable(variable, static_cast<char *>(*address), program.granule());
  }
  if (!fits)
    return {{}, "the host has no memory for the buffers"};
  Machine machine(program, launch, memory, reinterpret_cast<Machine::Entry>(*entry));
  if (std::string why = refusal(launch, program, machine); !why.empty())
    return {{}, why};

  Report report;
  report.compileSeconds = seconds(begin);
  begin = Clock::now();
  if (std::string why = machine.run(); !why.empty())
    return {{}, why};
  machine.fill(report);
  report.runSeconds = seconds(begin);
  if (report.faults.empty())
    memory.copyBack(launch.bindings);
  return {report, ""};
}
