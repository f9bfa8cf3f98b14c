#include "passes/normalize/layers/DecideWavefront.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tilewright;

static constexpr llvm::StringLiteral kJoint = "joint";

/// Returns the bytes of the weights of all projections but the first.
static double projectedBytes(const LayerStack &stack) {
  double bytes = 0;
  for (const auto &[value, others] : stack.ofProjections)
    for (Value other : others)
      if (auto type = dyn_cast<RankedTensorType>(other.getType()))
        bytes += type.getNumElements() * tile::elementBytes(type.getElementType());
  return bytes;
}

/// Returns true if the layers hand a state on that is rounded to 16 bits or fewer.
static bool isRounded(const LayerStack &stack) {
  tensor::InsertSliceOp collected = stack.layers.front().collected;
  return collected && getElementTypeOrSelf(collected.getSourceType()).getIntOrFloatBitWidth() <= 16;
}

/// A wavefront saves steps, each of which ends with a barrier, and reads the weights of the projections in each of its
/// steps instead of once.
FormChoice tilewright::decideWavefront(const LayerStack &stack, const std::optional<JointProduct> &joint,
                                       const Target &target, NumericsMode numerics) {
  double weights = projectedBytes(stack);
  const MemoryLevel &memory = target.levels.back();
  auto cache =
      llvm::find_if(target.levels, [](const MemoryLevel &level) { return level.space == tile::Space::global; });
  bool staysInCache = cache != target.levels.end() && weights <= cache->capacityBytes;
  double bandwidth = staysInCache ? cache->bandwidth : memory.bandwidth;
  double step = target.gpu.gridBarrierSeconds + target.gpu.dramCycles / std::max(target.gpu.clockHz, 1.0);
  FormChoice choice;
  choice.form = tile::Form::wavefront;
  choice.seconds = stack.waves() * (step + weights / bandwidth);
  choice.otherwiseSeconds = static_cast<double>(stack.layers.size()) * stack.steps() * step + weights / memory.bandwidth;
  choice.taken = choice.seconds < choice.otherwiseSeconds;
  choice.parameters[kJoint.str()] = {joint ? 1 : 0};
  choice.numerics.reassociates = joint.has_value();
  choice.numerics.roundingsRemoved = numerics != NumericsMode::strict && isRounded(stack) ? 1 : 0;
  choice.reason = llvm::formatv("{0} layers of {1} steps take {2} steps at once", stack.layers.size(), stack.steps(),
                                stack.waves());
  choice.wouldChange = choice.taken ? "weights of layers that take longer to read than barriers"
                                    : "smaller weights, or barriers that take longer";
  return choice;
}

bool tilewright::hasJointProduct(const FormChoice &choice) { return choice.values(kJoint).front() == 1; }

std::string tilewright::whyNotWavefront(const std::optional<JointProduct> &joint, FormChoice &choice) {
  ArrayRef<int64_t> value = choice.values(kJoint);
  if (choice.parameters.size() != 1 || value.size() != 1 || (value.front() != 0 && value.front() != 1))
    return "its only parameter is joint, which is 0 or 1";
  choice.numerics.reassociates = value.front() == 1;
  return value.front() == 1 && !joint ? "these layers have no joint products" : "";
}
