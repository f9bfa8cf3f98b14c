// An input may be overwritten if every load of it covers the same points of the tile as the only store to the output,
// and comes first: the same loops with the same offsets in an earlier nest, or the same map in the same nest.
#include "passes/program/InPlace.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// A loop over one dim of a binding: its offset in the tile and its size.
struct Loop {
  int64_t extent, size;
  Value offset;
  bool operator==(const Loop &other) const {
    return extent == other.extent && size == other.size && offset == other.offset;
  }
};

/// The part of a binding that a nest covers, one loop per dim.
using Footprint = SmallVector<Loop>;
} // namespace

static Value offsetOf(ComputeOp nest, unsigned dim) {
  for (auto [offset, of] : llvm::zip(nest.getOffsets(), nest.getOffsetDims()))
    if (of == dim)
      return offset;
  return Value();
}

/// Returns none if an index is not the loop of a single dim.
static std::optional<Footprint> footprint(ComputeOp nest, AffineMap map) {
  Footprint loops;
  for (AffineExpr index : map.getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(index);
    if (!dim && index != getAffineConstantExpr(0, index.getContext()))
      return std::nullopt;
    int64_t extent = dim ? nest.getExtents()[dim.getPosition()] : 1;
    if (extent == 1)
      loops.push_back({1, 1, Value()});
    else
      loops.push_back({extent, nest.getSizes()[dim.getPosition()], offsetOf(nest, dim.getPosition())});
  }
  return loops;
}

/// Returns the nest around a load or store if it runs once per tile and executes its ops as they are written; otherwise
/// null.
static ComputeOp nestOf(Operation *access) {
  auto nest = access->getParentOfType<ComputeOp>();
  return isa<WalkOp>(nest->getParentOp()) && !nest.getMicroKernel() ? nest : ComputeOp();
}

/// Returns the only store to `output` if it writes each element once.
static StoreOp onlyStore(Value output) {
  if (!output.hasOneUse())
    return {};
  auto store = dyn_cast<StoreOp>(*output.user_begin());
  ComputeOp nest = store ? nestOf(store) : ComputeOp();
  if (!nest)
    return {};
  llvm::SmallDenseSet<unsigned> indexed;
  for (AffineExpr index : store.getMap().getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(index); dim && !indexed.insert(dim.getPosition()).second)
      return {};
  for (auto [dim, extent] : llvm::enumerate(nest.getExtents()))
    if (extent > 1 && !indexed.contains(dim))
      return {};
  return store;
}

/// Returns true if `load` reads everything it needs of its tile before `store` writes it.
static bool readsBefore(LoadOp load, StoreOp store) {
  ComputeOp reader = nestOf(load), writer = nestOf(store);
  if (!reader || load.getGuard() || reader->getBlock() != writer->getBlock())
    return false;
  if (reader == writer)
    return load.getMap() == store.getMap() && load->isBeforeInBlock(store);
  std::optional<Footprint> read = footprint(reader, load.getMap()), written = footprint(writer, store.getMap());
  return reader->isBeforeInBlock(writer) && read && written && *read == *written;
}

SmallVector<SmallVector<unsigned>> tilewright::inputsToOverwrite(ProgramOp program) {
  Block &body = program.getBody().front();
  unsigned inputs = body.getNumArguments() - program.getOutputs();
  SmallVector<SmallVector<unsigned>> candidates(program.getOutputs());
  for (auto [number, output] : llvm::enumerate(body.getArguments().drop_front(inputs))) {
    StoreOp store = onlyStore(output);
    if (!store)
      continue;
    auto fits = [&, output = output](Value input) {
      return input.getType() == output.getType() && llvm::all_of(input.getUsers(), [&](Operation *user) {
               auto load = dyn_cast<LoadOp>(user);
               return load && readsBefore(load, store);
             });
    };
    for (unsigned input = 0; input < inputs; ++input)
      if (fits(body.getArgument(input)))
        candidates[number].push_back(input);
  }
  return candidates;
}

/// Returns true if the result of the op is the memory of its operand.
static bool isView(Operation *op) {
  return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op) ||
         op->getName().getStringRef().starts_with("iree_tensor_ext.compute_barrier.");
}

/// Returns true if a launch produced `value` and its only user is the last to read that memory.
static bool isLastUse(Value value) {
  Operation *source = value.getDefiningOp();
  if (!source || !value.hasOneUse() || source->getBlock() != (*value.user_begin())->getBlock())
    return false;
  return isa<LaunchOp>(source) || (isView(source) && isLastUse(source->getOperand(0)));
}

SmallVector<int64_t> tilewright::decideTied(LaunchOp launch, ArrayRef<SmallVector<unsigned>> candidates) {
  SmallVector<int64_t> tied;
  for (ArrayRef<unsigned> inputs : candidates) {
    const unsigned *free = llvm::find_if(inputs, [&](unsigned input) {
      return !llvm::is_contained(tied, input) && isLastUse(launch.getInputs()[input]);
    });
    tied.push_back(free == inputs.end() ? -1 : static_cast<int64_t>(*free));
  }
  return tied;
}

std::string tilewright::inPlaceName(StringRef kernel, ArrayRef<int64_t> tied) {
  std::string name = (kernel + "_in_place").str();
  for (int64_t input : tied)
    name += input < 0 ? "_n" : "_" + std::to_string(input);
  return name;
}
