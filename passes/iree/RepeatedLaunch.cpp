// A state lies in its initial tensor in step 0. After that, steps alternate between two memories, or the state lies
// where the step before has collected it. Parts of sequences lie in the sequence.
#include "passes/iree/RepeatedLaunch.h"

#include "passes/graph/LoopBodies.h"
#include "passes/graph/StepSlice.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::tile;

namespace {
/// The use of a result of the launch: the numbers of the loop's tensors that it is written into, or that it becomes.
struct Role {
  std::optional<unsigned> collected, state;
  StepSlice part{0, 0}; ///< of the collected tensor, in bytes
};

int64_t bytesOfElement(Value tensor) {
  return elementBytes(cast<RankedTensorType>(tensor.getType()).getElementType());
}

class Decision {
public:
  Decision(scf::ForOp loop, int64_t alignment) : alignment(alignment) { made.loop = loop; }

  std::variant<RepeatedLaunch, std::string> decide() {
    for (auto step : {&Decision::findLaunch, &Decision::findRoles, &Decision::placeInputs, &Decision::placeOutputs})
      if (std::string why = (this->*step)(); !why.empty())
        return why;
    return std::move(made);
  }

private:
  std::string findLaunch() {
    std::optional<int64_t> steps = tripCount(made.loop);
    if (!steps || *steps < 1)
      return "it has no known number of steps";
    made.steps = *steps;
    auto launches = made.loop.getBody()->getOps<LaunchOp>();
    if (!llvm::hasSingleElement(launches))
      return "a step is " + std::to_string(llvm::range_size(launches)) + " launches";
    made.launch = *launches.begin();
    for (Operation &op : *made.loop.getBody())
      if (&op != made.launch && !isMemoryEffectFree(&op) && op.getName().getStringRef() != "util.global.load")
        return "a step has effects besides the launch: " + op.getName().getStringRef().str();
    if (made.launch.getTied())
      return "a result takes the memory of an input";
    return "";
  }

  /// Finds what becomes of each result, and checks that each tensor that the loop carries comes from one.
  std::string findRoles() {
    roles.resize(made.launch.getNumResults());
    for (auto [number, next] : llvm::enumerate(made.loop.getYieldedValues())) {
      Value value = throughViews(next);
      auto insert = value.getDefiningOp<tensor::InsertSliceOp>();
      Value source = insert && isInBody(insert) ? throughViews(insert.getSource()) : value;
      if (source.getDefiningOp() != made.launch)
        return "tensor " + std::to_string(number) + " of those that it carries is no result of the kernel";
      Role &role = roles[cast<OpResult>(source).getResultNumber()];
      if (std::optional<unsigned> &place = insert ? role.collected : role.state; place)
        return "a result is carried twice";
      else
        place = number;
      if (!insert)
        continue;
      BlockArgument whole = made.loop.getRegionIterArg(number);
      if (throughViews(insert.getDest()) != whole || !whole.hasOneUse() || !insert->hasOneUse())
        return "a tensor that it collects is read in the loop";
      if (!throughViews(made.loop.getInitArgs()[number]).getDefiningOp<tensor::EmptyOp>())
        return "a tensor that it collects has elements before the loop";
      std::optional<StepSlice> part = partOf(insert, insert.getDestType());
      if (!part)
        return "it collects parts of a tensor that are no neighbours, or not aligned";
      role.part = *part;
    }
    for (const Role &role : roles)
      if (role.collected && role.state && !role.part.alwaysMoves())
        return "a state is collected where the state of another step is";
    return "";
  }

  /// Returns the part that a slice covers, in bytes, if it is aligned in every step.
  std::optional<StepSlice> partOf(OffsetSizeAndStrideOpInterface slice, RankedTensorType whole) const {
    std::optional<StepSlice> part = stepSlice(slice, whole.getShape(), made.loop);
    if (!part)
      return std::nullopt;
    int64_t size = elementBytes(whole.getElementType());
    StepSlice bytes{part->offset * size, part->stride * size, part->from, part->to};
    return bytes.offset % alignment == 0 && bytes.stride % alignment == 0 ? std::optional(bytes) : std::nullopt;
  }

  bool isInBody(Operation *op) { return op->getBlock() == made.loop.getBody(); }

  unsigned input(Value outside) {
    auto known = llvm::find(made.inputs, outside);
    if (known == made.inputs.end())
      known = made.inputs.insert(known, outside);
    return known - made.inputs.begin();
  }

  std::string placeInputs() {
    for (Value operand : made.launch.getInputs()) {
      Value value = throughViews(operand);
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && argument.getOwner() == made.loop.getBody()) {
        unsigned number = argument.getArgNumber() - 1; // behind the induction variable
        states.push_back({made.addresses.size(), number});
        unsigned first = input(made.loop.getInitArgs()[number]);
        made.addresses.push_back({first, first, first, 0, 0, 0});
        continue;
      }
      auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
      bool isPart = slice && isInBody(slice);
      Value whole = isPart ? throughViews(slice.getSource()) : value;
      if (!whole.getDefiningOp() ? cast<BlockArgument>(whole).getOwner() == made.loop.getBody()
                                 : isInBody(whole.getDefiningOp()))
        return "an op that is not ours computes an input of the kernel in the loop";
      std::optional<StepSlice> part = isPart ? partOf(slice, slice.getSourceType()) : StepSlice{0, 0};
      if (!part)
        return "it reads parts of a tensor that are no neighbours, or not aligned";
      unsigned binding = input(whole);
      made.addresses.push_back(addressOf(binding, *part));
    }
    return "";
  }

  static StepAddress addressOf(unsigned binding, const StepSlice &part) {
    int64_t first = part.offset + part.from * part.stride;
    return {binding, binding, binding, first, part.offset, part.stride, part.from, part.to};
  }

  unsigned output(Type type) {
    made.outputs.push_back(type);
    return made.outputs.size() - 1;
  }

  /// Places the results; all inputs are known, so outputs are numbered behind them.
  std::string placeOutputs() {
    unsigned inputs = made.inputs.size();
    made.results.resize(made.loop.getNumResults());
    for (auto [result, role] : llvm::zip_equal(made.launch.getResults(), roles)) {
      if (role.collected) {
        unsigned own = output(made.loop.getResult(*role.collected).getType());
        made.results[*role.collected].output = own;
        unsigned binding = inputs + own;
        made.addresses.push_back(addressOf(binding, role.part));
        if (role.state) {
          int64_t last = role.part.offset + (made.steps - 1) * role.part.stride;
          made.results[*role.state] = {own, last / bytesOfElement(result)};
          passOn(*role.state, binding, binding, role.part.offset - role.part.stride, role.part.stride);
        }
      } else if (role.state) {
        Type type = made.loop.getResult(*role.state).getType();
        unsigned own = output(type), other = output(type);
        made.results[*role.state].output = own;
        bool isOdd = made.steps % 2 != 0; // the last step writes the result
        unsigned even = inputs + (isOdd ? own : other), odd = inputs + (isOdd ? other : own);
        made.addresses.push_back({even, even, odd, 0, 0, 0});
        passOn(*role.state, odd, even, 0, 0);
      } else {
        unsigned binding = inputs + output(result.getType());
        made.addresses.push_back({binding, binding, binding, 0, 0, 0});
      }
    }
    return "";
  }

  /// Has the inputs that are a state find it, from step 1 on, where the step before has put it.
  void passOn(unsigned state, unsigned even, unsigned odd, int64_t offset, int64_t stride) {
    for (auto [address, number] : states)
      if (number == state) {
        made.addresses[address].even = even;
        made.addresses[address].odd = odd;
        made.addresses[address].offset = offset;
        made.addresses[address].stride = stride;
      }
  }

  int64_t alignment;
  RepeatedLaunch made;
  SmallVector<Role> roles; ///< of each result of the launch
  SmallVector<std::pair<size_t, unsigned>> states; ///< inputs that are states: their addresses and numbers
};
} // namespace

std::variant<RepeatedLaunch, std::string> tilewright::decideRepeatedLaunch(scf::ForOp loop, int64_t alignment) {
  return Decision(loop, alignment).decide();
}
