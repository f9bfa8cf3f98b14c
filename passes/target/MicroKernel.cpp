// The registry of micro kernels: a list that others can extend, and one way to choose from it.
#include "passes/target/MicroKernel.h"

#include "passes/target/BuiltinMicroKernels.h"
#include "passes/target/MicroKernelBody.h"
#include "passes/target/MicroKernelChoices.h"
#include "passes/target/ProcessorNames.h"
#include "passes/target/Target.h"
#include "passes/target/Warpgroups.h"
#include "llvm/ADT/StringExtras.h"
#include <mutex>

using namespace llvm;
using namespace tilewright;

namespace {
struct Registry {
  std::mutex mutex;
  std::vector<MicroKernel> kernels = builtinMicroKernels(); ///< the last ones are preferred
  size_t registrations = 0;
};

Registry &registry() {
  static Registry registry;
  return registry;
}

bool isFloat(StringRef type) { return is_contained({"f16", "bf16", "f32", "f64"}, type); }
bool isInteger(StringRef type) { return is_contained({"si8", "ui8", "i32"}, type); }

/// Returns true if the types match; "float" and "integer" stand for all types of their kind.
bool fits(StringRef wanted, StringRef type) {
  return wanted == type || (wanted == "float" && isFloat(type)) || (wanted == "integer" && isInteger(type));
}

bool isSame(const MicroKernel &a, const MicroKernel &b) {
  return a.name == b.name && a.types.lhs == b.types.lhs && a.types.rhs == b.types.rhs &&
         a.types.accumulator == b.types.accumulator && a.vectorBytes == b.vectorBytes && a.unit == b.unit;
}

/// Returns true if the micro kernel can read rhs in this layout. Unpacked rows can be interleaved in registers for a
/// step that wants several K per lane, but packed ones cannot be separated again.
bool reads(const MicroKernel &kernel, RhsLayout layout) {
  if (kernel.unit == StepUnit::tiles && !layout.tiles)
    return false;
  return layout.packedDepth <= 1 || kernel.depth == layout.packedDepth;
}

/// Returns all micro kernels that can compute the contraction on the target, the most preferred first.
std::vector<MicroKernel> candidates(const Target &target, const ProductTypes &types, RhsLayout layout) {
  std::vector<MicroKernel> found;
  auto add = [&](const std::vector<MicroKernel> &kernels) {
    for (const MicroKernel &kernel : reverse(kernels))
      if (kernel.takes(types) && kernel.runsOn(target) && reads(kernel, layout))
        found.push_back(kernel);
  };
  add(target.microKernels);
  std::lock_guard<std::mutex> lock(registry().mutex);
  add(registry().kernels);
  return found;
}
} // namespace

std::string MicroKernel::verify() const {
  auto known = [](StringRef type) { return isFloat(type) || isInteger(type); };
  if (name.empty() || !all_of(name, [](char c) { return isAlnum(c) || c == '_'; }))
    return "name: expected letters, digits and underscores";
  for (StringRef type : {StringRef(types.lhs), StringRef(types.rhs), StringRef(types.accumulator)})
    if (!known(type) && type != "float" && type != "integer")
      return ("types: '" + type + "' is none of f16, bf16, f32, f64, si8, ui8, i32").str();
  if (types.accumulator != "f32" && types.accumulator != "f64" && types.accumulator != "i32" && !isGeneric())
    return "accumulator: expected f32, f64 or i32";
  if (!is_contained({1, 2, 4}, depth))
    return "depth: expected 1, 2 or 4";
  if (!(speed > 0)) // also refuses NaN
    return "speed: expected a positive number";
  if (unit == StepUnit::vector && !is_contained({0, 16, 32, 64}, vectorBytes))
    return "vectorBytes: expected 16, 32 or 64, or 0 for a step of any width";
  if (block.rows < 0 || block.vectors < 0 || (block.rows == 0) != (block.vectors == 0) ||
      (block.vectors & (block.vectors - 1)))
    return "block: expected rows and a power of two of vectors, or neither";
  for (const std::string &feature : features)
    if (std::string wrong = isOfThreads() ? "" : whyNoFeature("x86_64", feature); !wrong.empty())
      return wrong;
  if (!step && body.empty())
    return "body: missing";
  if (!step && vectorBytes == 0)
    return "vectorBytes: missing; a body is written for one width";
  return step ? "" : verifyMicroKernelBody(*this);
}

bool MicroKernel::runsOn(const Target &target) const {
  if (unit == StepUnit::tiles && 2 * kTileRowBytes % target.vectorBytes != 0)
    return false; // a block has to be whole vectors
  return isOfThreads() == target.traits.threadBlocks && (vectorBytes == 0 || vectorBytes == target.vectorBytes) &&
         all_of(features, [&](const std::string &feature) { return target.has(feature); });
}

bool MicroKernel::takes(const ProductTypes &product) const {
  return fits(types.lhs, product.lhs) && fits(types.rhs, product.rhs) && fits(types.accumulator, product.accumulator);
}

bool MicroKernel::isAllowedBy(NumericsMode numerics) const {
  if (roundsToTf32)
    return numerics == NumericsMode::tf32;
  return strict || numerics != NumericsMode::strict;
}

RegisterBlock MicroKernel::blockFor(const Target &target) const {
  if (unit == StepUnit::tiles)
    return {2 * kTileRows, 2 * kTileRowBytes / target.vectorBytes};
  return block.rows > 0 ? block : registerBlock(target.vectorRegisters, besides);
}

int64_t MicroKernel::width(const Target &target, int64_t accumulatorBytes) const {
  return blockFor(target).vectors * (target.vectorBytes / accumulatorBytes);
}

std::string MicroKernel::label(const Target &target) const {
  RegisterBlock shape = blockFor(target);
  return name + "-" + std::to_string(shape.rows) + "x" + std::to_string(shape.vectors);
}

std::string tilewright::registerMicroKernel(MicroKernel kernel) {
  if (std::string wrong = kernel.verify(); !wrong.empty())
    return "micro kernel '" + kernel.name + "': " + wrong;
  std::lock_guard<std::mutex> lock(registry().mutex);
  erase_if(registry().kernels, [&](const MicroKernel &other) { return isSame(kernel, other); });
  registry().kernels.push_back(std::move(kernel));
  ++registry().registrations;
  return "";
}

size_t tilewright::numMicroKernelRegistrations() {
  std::lock_guard<std::mutex> lock(registry().mutex);
  return registry().registrations;
}

std::optional<MicroKernel> tilewright::chooseMicroKernel(const Target &target, const ProductTypes &types,
                                                         RhsLayout layout, NumericsMode numerics) {
  std::optional<MicroKernel> best;
  // Among equally fast ones, prefer the one that reads rhs in its present layout.
  auto rank = [&](const MicroKernel &kernel) {
    return std::pair(kernel.speed, layout.packedDepth == 0 ? !kernel.isGeneric() : kernel.depth == layout.packedDepth);
  };
  for (MicroKernel &kernel : candidates(target, types, layout))
    if (!isOfWarpgroup(kernel) && kernel.isAllowedBy(numerics) && (!best || rank(kernel) > rank(*best)))
      best = std::move(kernel);
  return best;
}

std::vector<MicroKernel> tilewright::allMicroKernels(const Target &target, const ProductTypes &types, RhsLayout layout,
                                                     NumericsMode numerics) {
  std::vector<MicroKernel> found = candidates(target, types, layout);
  llvm::erase_if(found, [&](const MicroKernel &kernel) { return !kernel.isAllowedBy(numerics); });
  return found;
}

std::optional<MicroKernel> tilewright::warpgroupKernel(const Target &target, const ProductTypes &types,
                                                       NumericsMode numerics) {
  for (MicroKernel &kernel : candidates(target, types, {/*packedDepth=*/1}))
    if (isOfWarpgroup(kernel) && kernel.isAllowedBy(numerics))
      return std::move(kernel);
  return std::nullopt;
}

std::optional<MicroKernel> tilewright::blockMicroKernel(const Target &target, const ProductTypes &types,
                                                        StringRef label, OperandStorage storage, NumericsMode numerics,
                                                        std::string *instead) {
  auto kernel = findMicroKernel(target, types, {/*packedDepth=*/1}, label);
  std::string why;
  if (!kernel)
    why = "target '" + target.name + "' has no '" + label.rsplit('-').first.str() + "' for " + types.lhs + " times " +
          types.rhs + " with accumulators in " + types.accumulator;
  else if (numerics == NumericsMode::strict && !kernel->strict)
    why = "strict numerics forbid '" + kernel->name + "', which does not round each product separately";
  else if (!kernel->isAllowedBy(numerics))
    why = "numerics '" + stringify(numerics).str() + "' forbid '" + kernel->name + "', which rounds operands to tf32";
  else if (isOfWarpgroup(*kernel) && (storage.rhsInBuffer || (storage.lhsInBuffer && !takesLhsFromBuffers(*kernel))))
    why = "an operand is in a buffer of the block, which descriptors of '" + kernel->name + "' cannot address";
  else if (!storage.alongK && readsAlongK(*kernel))
    why = "'" + kernel->name + "' of " + types.lhs +
          " reads operands whose K is contiguous, and in one of them it is not";
  if (instead)
    *instead = why;
  return why.empty() ? kernel : chooseMicroKernel(target, types, {/*packedDepth=*/1}, numerics);
}

std::optional<MicroKernel> tilewright::findMicroKernel(const Target &target, const ProductTypes &types,
                                                       RhsLayout layout, StringRef label) {
  StringRef name = label.rsplit('-').first;
  for (MicroKernel &kernel : candidates(target, types, layout))
    if (kernel.name == name)
      return std::move(kernel);
  return std::nullopt;
}
