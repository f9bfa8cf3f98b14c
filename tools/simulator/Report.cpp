// Prints a report as JSON. docs/guide/simulator.md explains the fields.
#include "tools/simulator/Simulator.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace tilewright::simulator;
namespace json = llvm::json;

const char *tilewright::simulator::name(InstructionClass instructionClass) {
  switch (instructionClass) {
  case InstructionClass::integer:
    return "integer";
  case InstructionClass::floating:
    return "floating";
  case InstructionClass::special:
    return "special";
  case InstructionClass::convert:
    return "convert";
  case InstructionClass::tensor:
    return "tensor";
  case InstructionClass::global:
    return "globalMemory";
  case InstructionClass::shared:
    return "sharedMemory";
  case InstructionClass::local:
    return "localMemory";
  case InstructionClass::shuffle:
    return "shuffle";
  case InstructionClass::barrier:
    return "barrier";
  case InstructionClass::control:
    return "control";
  }
  __builtin_unreachable();
}

static json::Object toValue(const AccessCounts &counts) {
  return json::Object{{"requests", counts.requests},
                      {"bytes", counts.bytes},
                      {"sectors", counts.sectors},
                      {"idealSectors", counts.idealSectors},
                      {"conflicts", counts.conflicts}};
}

static json::Object toValue(const SiteReport &site) {
  return json::Object{
      {"operation", site.operation}, {"location", site.location},         {"space", site.space},
      {"access", site.access},       {"isInMainLoop", site.isInMainLoop}, {"counts", toValue(site.counts)}};
}

static json::Object toValue(const BindingReport &binding) {
  return json::Object{{"sectorsRead", binding.sectorsRead},
                      {"sectorsWritten", binding.sectorsWritten},
                      {"bytesNeverWritten", binding.bytesNeverWritten}};
}

static json::Object toValue(const Fault &fault) {
  return json::Object{{"kind", fault.kind},
                      {"message", fault.message},
                      {"operation", fault.operation},
                      {"location", fault.location},
                      {"otherLocation", fault.otherLocation}};
}

template <typename Item> static json::Array toArray(const std::vector<Item> &items) {
  json::Array result;
  for (const Item &item : items)
    result.push_back(toValue(item));
  return result;
}

std::string tilewright::simulator::toJson(const Report &report) {
  json::Object instructions;
  for (unsigned index = 0; index < numInstructionClasses; ++index)
    instructions[name(static_cast<InstructionClass>(index))] = report.instructions[index];
  json::Object result{{"kernel", report.kernel},
                      {"device", report.device},
                      {"blocks", report.blocks},
                      {"threadsPerBlock", report.threadsPerBlock},
                      {"sharedBytesPerBlock", report.sharedBytesPerBlock},
                      {"warpInstructions", report.warpInstructions},
                      {"threadInstructions", report.threadInstructions},
                      {"instructions", std::move(instructions)},
                      {"blockVisits", report.blockVisits},
                      {"divergentBlockVisits", report.divergentBlockVisits},
                      {"activeLanes", report.activeLanes},
                      {"globalReads", toValue(report.globalReads)},
                      {"globalWrites", toValue(report.globalWrites)},
                      {"globalAtomics", toValue(report.globalAtomics)},
                      {"sharedReads", toValue(report.sharedReads)},
                      {"sharedWrites", toValue(report.sharedWrites)},
                      {"dramBytesRead", report.dramBytesRead},
                      {"dramBytesWritten", report.dramBytesWritten},
                      {"warpBarriers", report.warpBarriers},
                      {"blockBarriers", report.blockBarriers},
                      {"clusterBarriers", report.clusterBarriers},
                      {"gridBarriers", report.gridBarriers},
                      {"shuffles", report.shuffles},
                      {"sites", toArray(report.sites)},
                      {"bindings", toArray(report.bindings)},
                      {"faults", toArray(report.faults)},
                      {"compileSeconds", report.compileSeconds},
                      {"runSeconds", report.runSeconds}};
  return llvm::formatv("{0:2}", json::Value(std::move(result))).str();
}
