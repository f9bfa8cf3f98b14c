// Looks up targets and overrides their fields from JSON. Every error names the field by its path.
#include "passes/target/Target.h"

#include "passes/support/ParseJson.h"
#include "passes/target/MachineKind.h"
#include "passes/target/MicroKernelBody.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include <thread>

using namespace llvm;
using namespace tilewright;

namespace {
Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// Finds a target of the table.
const Target *find(StringRef name) {
  for (const MachineKind *kind : machineKinds())
    for (const Target &target : kind->targets)
      if (target.name == name)
        return &target;
  return nullptr;
}

/// Returns the names of the backends as alternatives: "cpu" or "cuda", in quotes.
std::string kindNames() {
  std::vector<std::string> quoted;
  for (const MachineKind *kind : machineKinds())
    quoted.push_back("\"" + kind->name + "\"");
  return join(quoted, " or ");
}

//===--------------------------------------------------------------------===//
// This machine
//===--------------------------------------------------------------------===//

/// Returns the widest table entry whose instructions this machine has; empty without SSE4.2.
StringRef bestEntry(const StringMap<bool> &features) {
  auto has = [&](std::initializer_list<StringRef> names) {
    return all_of(names, [&](StringRef name) { return features.lookup(name); });
  };
  if (has({"amx-tile", "amx-bf16", "avx512f", "avx512bf16"}))
    return "x86-64-amx";
  if (has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}))
    return "x86-64-avx512";
  if (has({"avx2", "fma", "f16c"}))
    return "x86-64-avx2";
  return has({"sse4.2", "popcnt"}) ? "x86-64-v2" : "";
}

/// Returns the features in sorted order, so that one machine always gives the same string.
std::string featureString(const StringMap<bool> &features) {
  std::vector<std::string> parts;
  for (const auto &feature : features)
    parts.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(parts);
  return join(parts, ",");
}

Expected<Target> hostTarget() {
  StringMap<bool> features = sys::getHostCPUFeatures();
  StringRef entry = bestEntry(features);
  if (entry.empty())
    return fail("target 'cpu': this machine has no SSE4.2; name a target of the table to compile for another machine");
  Target target = withCores(*find(entry), std::max(1u, std::thread::hardware_concurrency()));
  target.name = "cpu";
  target.cpu = sys::getHostCPUName().str();
  target.features = featureString(features);
  target.source = "instructions of this machine, numbers of " + entry.str() + ": " + target.source;
  return withRatesOf(target, target.cpu);
}

//===--------------------------------------------------------------------===//
// JSON
//===--------------------------------------------------------------------===//

/// Reads the fields of one object. It keeps the first error; later reads do nothing.
class Fields {
public:
  Fields(const json::Object &object, std::string path) : object(object), path(std::move(path)) {}

  void string(StringRef field, std::string &out) {
    read(field, "a string", [&](const json::Value &value) {
      auto text = value.getAsString();
      return text ? (out = text->str(), true) : false;
    });
  }
  void integer(StringRef field, int64_t &out, int64_t least) {
    read(field, "an integer of at least " + std::to_string(least), [&](const json::Value &value) {
      auto number = value.getAsInteger();
      return number && *number >= least ? (out = *number, true) : false;
    });
  }
  void number(StringRef field, double &out, bool zeroAllowed) {
    read(field, zeroAllowed ? "a number of at least 0" : "a positive number", [&](const json::Value &value) {
      auto number = value.getAsNumber();
      return number && (*number > 0 || (zeroAllowed && *number == 0)) ? (out = *number, true) : false;
    });
  }
  void read(StringRef field, const Twine &expected, function_ref<bool(const json::Value &)> parse) {
    known.push_back(field.str());
    const json::Value *value = object.get(field);
    if (value && !parse(*value) && message.empty())
      message = (path + field + ": expected " + expected).str();
  }
  bool has(StringRef field) const { return object.get(field); }
  void error(const Twine &text) {
    if (message.empty())
      message = text.str();
  }
  /// Returns the first error, or one for a field that no read named.
  std::string finish() {
    for (const auto &entry : object)
      if (message.empty() && !is_contained(known, entry.first.str()))
        message = (path + entry.first.str() + ": unknown field; known fields: " + join(known, ", "));
    return message;
  }

private:
  const json::Object &object;
  std::string path, message;
  std::vector<std::string> known;
};

std::optional<tile::Space> parseSpace(const json::Value &value) {
  auto text = value.getAsString();
  return text ? tile::symbolizeSpace(*text) : std::nullopt;
}

/// Reads a level. It overrides the base's level of the same name, or is new and goes where it is in the list.
Expected<MemoryLevel> levelFromJson(const json::Value &value, const std::string &path, const MemoryLevel *base) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return fail(path + ": expected an object");
  MemoryLevel level = base ? *base : MemoryLevel{"", tile::Space::global, 0, 0, 64, 1};
  Fields fields(*object, path + ".");
  if (!base)
    for (StringRef field : {"space", "bandwidth"})
      if (!fields.has(field))
        fields.error(path + "." + field + ": missing, and the base target has no level of this name");
  fields.string("name", level.name);
  fields.read("space", "one of register, block, cluster, global, host", [&](const json::Value &text) {
    auto space = parseSpace(text);
    return space ? (level.space = *space, true) : false;
  });
  fields.integer("capacityBytes", level.capacityBytes, 0);
  fields.number("bandwidth", level.bandwidth, /*zeroAllowed=*/false);
  fields.integer("transactionBytes", level.transactionBytes, 1);
  fields.integer("units", level.units, 1);
  std::string message = fields.finish();
  if (!message.empty())
    return fail(message);
  return level;
}

/// Fills `levels`. The list replaces the base's, and each level starts from the base's level of the same name.
std::string readLevels(const json::Value &value, std::vector<MemoryLevel> &levels) {
  const json::Array *array = value.getAsArray();
  if (!array || array->empty())
    return "levels: expected a list of memory levels, innermost first";
  std::vector<MemoryLevel> result;
  for (auto [i, entry] : enumerate(*array)) {
    std::string path = "levels[" + std::to_string(i) + "]";
    const json::Object *object = entry.getAsObject();
    auto name = object ? object->getString("name") : std::nullopt;
    if (!name)
      return path + ".name: expected a string";
    auto base = find_if(levels, [&](const MemoryLevel &level) { return level.name == *name; });
    Expected<MemoryLevel> level = levelFromJson(entry, path, base == levels.end() ? nullptr : &*base);
    if (!level)
      return toString(level.takeError());
    result.push_back(*level);
  }
  levels = std::move(result);
  return "";
}

json::Value gpuToJson(const GpuLimits &gpu) {
  return json::Object{{"warpLanes", gpu.warpLanes},
                      {"threadsPerBlock", gpu.threadsPerBlock},
                      {"threadsPerSm", gpu.threadsPerSm},
                      {"blocksPerSm", gpu.blocksPerSm},
                      {"registersPerSm", gpu.registersPerSm},
                      {"registersPerThread", gpu.registersPerThread},
                      {"sharedBytesPerSm", gpu.sharedBytesPerSm},
                      {"reservedSharedBytes", gpu.reservedSharedBytes},
                      {"guaranteedSms", gpu.guaranteedSms},
                      {"clockHz", gpu.clockHz},
                      {"sharedCycles", gpu.sharedCycles},
                      {"l2Cycles", gpu.l2Cycles},
                      {"dramCycles", gpu.dramCycles},
                      {"gridBarrierSeconds", gpu.gridBarrierSeconds}};
}

/// Fills `gpu`, field by field over the base's.
std::string readGpu(const json::Value &value, GpuLimits &gpu) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return "gpu: expected an object";
  Fields fields(*object, "gpu.");
  fields.integer("warpLanes", gpu.warpLanes, 0);
  fields.integer("threadsPerBlock", gpu.threadsPerBlock, 0);
  fields.integer("threadsPerSm", gpu.threadsPerSm, 0);
  fields.integer("blocksPerSm", gpu.blocksPerSm, 0);
  fields.integer("registersPerSm", gpu.registersPerSm, 0);
  fields.integer("registersPerThread", gpu.registersPerThread, 0);
  fields.integer("sharedBytesPerSm", gpu.sharedBytesPerSm, 0);
  fields.integer("reservedSharedBytes", gpu.reservedSharedBytes, 0);
  fields.integer("guaranteedSms", gpu.guaranteedSms, 0);
  fields.number("clockHz", gpu.clockHz, /*zeroAllowed=*/true);
  fields.number("sharedCycles", gpu.sharedCycles, /*zeroAllowed=*/true);
  fields.number("l2Cycles", gpu.l2Cycles, /*zeroAllowed=*/true);
  fields.number("dramCycles", gpu.dramCycles, /*zeroAllowed=*/true);
  fields.number("gridBarrierSeconds", gpu.gridBarrierSeconds, /*zeroAllowed=*/true);
  return fields.finish();
}

/// Fills `kernels`; the list replaces the base's.
std::string readMicroKernels(const json::Value &value, std::vector<MicroKernel> &kernels) {
  const json::Array *array = value.getAsArray();
  if (!array)
    return "microKernels: expected a list";
  std::vector<MicroKernel> result;
  for (auto [i, entry] : enumerate(*array)) {
    Expected<MicroKernel> kernel = microKernelFromJson(entry);
    if (!kernel)
      return "microKernels[" + std::to_string(i) + "]: " + toString(kernel.takeError());
    result.push_back(std::move(*kernel));
  }
  kernels = std::move(result);
  return "";
}

Expected<Target> baseOf(const json::Object &object) {
  const json::Value *base = object.get("base");
  if (!base)
    return of(*findMachineKind("cpu"), Target());
  auto name = base->getAsString();
  if (!name)
    return fail("base: expected the name of a known target");
  if (*name == "cpu")
    return hostTarget();
  if (const Target *target = find(*name))
    return *target;
  return fail("base: unknown target '" + *name + "'; known targets: cpu, " + join(knownTargets(), ", "));
}
} // namespace

const MemoryLevel &Target::level(tile::Space space) const {
  assert(!levels.empty() && "a target has at least one memory level");
  for (const MemoryLevel &level : reverse(levels))
    if (level.space == space)
      return level;
  return space < tile::Space::global ? levels.front() : levels.back();
}

bool Target::has(StringRef feature) const {
  if (is_contained(traits.instructions, feature))
    return true;
  SmallVector<StringRef> parts;
  StringRef(features).split(parts, ',');
  return is_contained(parts, ("+" + feature).str());
}

Target tilewright::withRatesOf(Target target, StringRef cpu) {
  // These processors do one 512-bit multiply-add per cycle instead of two (AMD's guide for Zen 4, measured: FMA loop
  // 115 GFLOP/s per core; Intel's optimization manual for cores of laptops and desktops).
  bool isHalf = is_contained({"znver4", "cannonlake", "icelake-client", "tigerlake", "rocketlake"}, cpu);
  if (!isHalf || target.vectorBytes < 64)
    return target;
  target.flopsPerSecond /= 2;
  target.source += "; half as many multiply-adds on " + cpu.str();
  return target;
}

Target tilewright::withCores(Target target, int64_t cores) {
  double factor = static_cast<double>(cores) / target.cores;
  for (MemoryLevel &level : target.levels)
    if (level.units == target.cores && target.cores > 1) {
      level.units = cores;
      level.bandwidth *= factor;
    } else {
      level.bandwidth *= std::min(factor, 1.0);
    }
  target.flopsPerSecond *= factor;
  target.specialPerSecond *= factor;
  target.cores = cores;
  target.gpu.guaranteedSms = std::min(target.gpu.guaranteedSms, cores);
  return target;
}

std::vector<std::string> tilewright::knownTargets() {
  std::vector<std::string> names;
  for (const MachineKind *kind : machineKinds())
    for (const Target &target : kind->targets)
      names.push_back(target.name);
  return names;
}

Expected<Target> tilewright::lookupTarget(StringRef nameOrPath) {
  if (nameOrPath == "cpu")
    return hostTarget();
  if (const Target *target = find(nameOrPath))
    return *target;
  if (!nameOrPath.ends_with(".json"))
    return fail("unknown target '" + nameOrPath + "'; known targets: cpu, " + join(knownTargets(), ", ") +
                ", or a path to a .json file");
  auto buffer = MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (!buffer)
    return fail("target file '" + nameOrPath + "': " + buffer.getError().message());
  Expected<json::Value> value = parseJson((*buffer)->getBuffer());
  if (!value)
    return fail("target file '" + nameOrPath + "': " + toString(value.takeError()));
  Expected<Target> target = targetFromJson(*value);
  if (!target)
    return fail("target file '" + nameOrPath + "': " + toString(target.takeError()));
  return target;
}

json::Value tilewright::toJson(const Target &target) {
  json::Array levels;
  for (const MemoryLevel &level : target.levels)
    levels.push_back(json::Object{{"name", level.name},
                                  {"space", tile::stringifySpace(level.space)},
                                  {"capacityBytes", level.capacityBytes},
                                  {"bandwidth", level.bandwidth},
                                  {"transactionBytes", level.transactionBytes},
                                  {"units", level.units}});
  json::Array kernels;
  for (const MicroKernel &kernel : target.microKernels)
    kernels.push_back(toJson(kernel));
  return json::Object{{"name", target.name},
                      {"backend", target.backend},
                      {"triple", target.triple},
                      {"cpu", target.cpu},
                      {"features", target.features},
                      {"levels", std::move(levels)},
                      {"cores", target.cores},
                      {"vectorBytes", target.vectorBytes},
                      {"vectorRegisters", target.vectorRegisters},
                      {"launchSeconds", target.launchSeconds},
                      {"barrierSeconds", target.barrierSeconds},
                      {"flopsPerSecond", target.flopsPerSecond},
                      {"specialPerSecond", target.specialPerSecond},
                      {"maxBindings", target.maxBindings},
                      {"blockBytes", target.blockBytes},
                      {"gpu", gpuToJson(target.gpu)},
                      {"costs", toJson(target.costs, target.traits.threadBlocks ? "gpu" : "cpu")},
                      {"microKernels", std::move(kernels)},
                      {"source", target.source}};
}

Expected<Target> tilewright::targetFromJson(const json::Value &value) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return fail("expected an object with a target's fields");
  Expected<Target> base = baseOf(*object);
  if (!base)
    return base.takeError();
  Target target = *base;
  Fields fields(*object, "");
  if (!fields.has("base"))
    for (StringRef field : {"name", "levels", "flopsPerSecond", "specialPerSecond", "blockBytes", "triple", "cpu"})
      if (!fields.has(field))
        fields.error(field + ": missing; give it, or a \"base\" target to take it from");
  std::string baseName;
  fields.string("base", baseName);
  // Cores come first: the base's numbers scale with them, but numbers given in the file do not.
  int64_t cores = target.cores;
  fields.integer("cores", cores, 1);
  target = withCores(target, cores);
  fields.string("name", target.name);
  fields.read("backend", kindNames(), [&](const json::Value &text) {
    auto name = text.getAsString();
    const MachineKind *kind = name ? findMachineKind(*name) : nullptr;
    return kind ? (target = of(*kind, std::move(target)), true) : false;
  });
  if (target.traits.threadBlocks && !base->traits.threadBlocks && !fields.has("gpu"))
    fields.error("gpu: missing; give it, or a GPU as \"base\" to take it from");
  fields.string("triple", target.triple);
  fields.string("cpu", target.cpu);
  fields.string("features", target.features);
  std::string memberError; ///< the first error inside a member
  auto readMember = [&](StringRef field, auto read, auto &out) {
    fields.read(field, "", [&](const json::Value &member) {
      std::string why = read(member, out);
      memberError = memberError.empty() ? why : memberError;
      return why.empty();
    });
  };
  readMember("levels", readLevels, target.levels);
  fields.integer("vectorBytes", target.vectorBytes, 1);
  fields.integer("vectorRegisters", target.vectorRegisters, 1);
  fields.number("launchSeconds", target.launchSeconds, /*zeroAllowed=*/true);
  fields.number("barrierSeconds", target.barrierSeconds, /*zeroAllowed=*/true);
  fields.number("flopsPerSecond", target.flopsPerSecond, /*zeroAllowed=*/false);
  fields.number("specialPerSecond", target.specialPerSecond, /*zeroAllowed=*/false);
  fields.integer("maxBindings", target.maxBindings, 1);
  fields.integer("blockBytes", target.blockBytes, 0);
  readMember("gpu", readGpu, target.gpu);
  readMember("costs", readCosts, target.costs);
  readMember("microKernels", readMicroKernels, target.microKernels);
  fields.string("source", target.source);
  std::string message = fields.finish();
  if (!memberError.empty())
    return fail(memberError);
  if (!message.empty())
    return fail(message);
  if (std::string why = findMachineKind(target.backend)->whyNoCode(target); !why.empty())
    return fail(why);
  return target;
}
