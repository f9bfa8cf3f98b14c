// Looks names up in the subtarget tables of LLVM's MC layer, for the two families that Tilewright compiles for.
#include "passes/target/ProcessorNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace tilewright;

static void initialiseTables() {
  static bool initialised = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    return true;
  }();
  (void)initialised;
}

/// Returns LLVM's table for a triple; null with `error` set if there is none.
static std::unique_ptr<MCSubtargetInfo> tableOf(const Triple &triple, std::string &error) {
  initialiseTables();
  const llvm::Target *family = TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<MCSubtargetInfo>(family ? family->createMCSubtargetInfo(triple, "", "") : nullptr);
}

/// Returns a hint at the entry with the smallest edit distance.
template <typename Entry> static std::string nearest(StringRef name, ArrayRef<Entry> entries) {
  const Entry *best = &*min_element(
      entries, [&](const Entry &a, const Entry &b) { return name.edit_distance(a.Key) < name.edit_distance(b.Key); });
  return "; did you mean '" + std::string(best->Key) + "'?";
}

static std::string whyNotIn(const MCSubtargetInfo &table, StringRef feature) {
  ArrayRef<SubtargetFeatureKV> features = table.getAllProcessorFeatures();
  if (any_of(features, [&](const SubtargetFeatureKV &known) { return known.Key == feature; }))
    return "";
  return ("features: no processor of " + Triple::getArchTypeName(table.getTargetTriple().getArch()) + " has '" +
          feature + "'" + nearest(feature, features))
      .str();
}

std::string tilewright::whyNoProcessor(StringRef tripleName, StringRef cpu, StringRef features) {
  std::string error;
  Triple triple(tripleName);
  std::unique_ptr<MCSubtargetInfo> table = tableOf(triple, error);
  if (!table)
    return ("triple: no code can be generated for '" + tripleName + "'").str();
  if (!table->isCPUStringValid(cpu))
    return ("cpu: no processor of " + Triple::getArchTypeName(triple.getArch()) + " is called '" + cpu + "'" +
            nearest(cpu, table->getAllProcessorDescriptions()))
        .str();
  for (StringRef feature : split(features, ',')) {
    StringRef name = feature;
    if (feature.empty())
      continue;
    if (!name.consume_front("+") && !name.consume_front("-"))
      return ("features: '" + feature + "' has no sign; write +" + feature + " or -" + feature).str();
    if (std::string why = whyNotIn(*table, name); !why.empty())
      return why;
  }
  return "";
}

std::string tilewright::whyNoFeature(StringRef triple, StringRef feature) {
  std::string error;
  std::unique_ptr<MCSubtargetInfo> table = tableOf(Triple(triple), error);
  return table ? whyNotIn(*table, feature) : ("triple: no code can be generated for '" + triple + "'").str();
}
