// Copies the ops of a part, with the weights that they read, into a new function. An image in another layout is an
// argument, or a result, with a transpose behind it: keepLayout and the planner fold that into the kernel next to it.
#include "passes/plan/forms/ImageTrials.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/graph/Form.h"
#include "passes/normalize/Winograd.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tilewright;

namespace {
SmallVector<int64_t> inverse(ArrayRef<int64_t> order) {
  SmallVector<int64_t> result(order.size());
  for (auto [position, dim] : llvm::enumerate(order))
    result[dim] = position;
  return result;
}

Value transposed(OpBuilder &builder, Value tensor, ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t dim) { return type.getDimSize(dim); });
  Value into = tensor::EmptyOp::create(builder, tensor.getLoc(), shape, type.getElementType());
  return linalg::TransposeOp::create(builder, tensor.getLoc(), tensor, into, order)->getResult(0);
}

/// Builds the function of a trial beside another function.
class TrialBuilder {
public:
  TrialBuilder(func::FuncOp like, std::function<bool(Operation *)> isPart)
      : isPart(std::move(isPart)), builder(like),
        trial(func::FuncOp::create(builder, like.getLoc(), "images$trial", builder.getFunctionType({}, {}))) {
    trial.setPrivate();
    builder.setInsertionPointToStart(trial.addEntryBlock());
  }

  /// Makes a value an argument. `order` is that of its dims in memory.
  void receive(Value value, ArrayRef<int64_t> order) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = llvm::map_to_vector(order, [&](int64_t dim) { return type.getDimSize(dim); });
    Value argument = trial.front().addArgument(type.clone(shape), value.getLoc());
    copies.map(value, llvm::is_sorted(order) ? argument : transposed(builder, argument, inverse(order)));
  }

  /// Makes the copy of a value a result. `order` is that of its dims in memory.
  void give(Value value, ArrayRef<int64_t> order) {
    Value copy = copyOf(value);
    results.push_back(llvm::is_sorted(order) ? copy : transposed(builder, copy, order));
  }

  /// Returns the value in the trial. What is not part of it becomes an argument, except for weights.
  Value copyOf(Value value) {
    if (copies.contains(value))
      return copies.lookup(value);
    Operation *made = value.getDefiningOp();
    if (!made || !(isPart(made) || isConstant(made))) {
      copies.map(value, trial.front().addArgument(value.getType(), value.getLoc()));
      return copies.lookup(value);
    }
    llvm::SetVector<Value> read(made->operand_begin(), made->operand_end());
    getUsedValuesDefinedAbove(made->getRegions(), read);
    for (Value operand : read)
      copyOf(operand);
    builder.clone(*made, copies);
    return copies.lookup(value);
  }

  /// Returns the copy of an op, or null if there is none.
  Operation *copyOf(Operation *op) {
    Value copy = copies.lookupOrNull(op->getResult(0));
    return copy ? copy.getDefiningOp() : nullptr;
  }

  func::FuncOp finish() {
    func::ReturnOp::create(builder, trial.getLoc(), results);
    trial.setFunctionType(builder.getFunctionType(trial.front().getArgumentTypes(), ValueRange(results).getTypes()));
    return trial;
  }

private:
  /// Returns true if an op depends on no argument of the function: it is a weight, or a number.
  bool isConstant(Operation *op) {
    auto [known, isNew] = constants.try_emplace(op, false);
    if (!isNew)
      return known->second;
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    bool isOne = llvm::all_of(read, [&](Value value) {
      Operation *made = value.getDefiningOp();
      return made && isConstant(made);
    });
    return constants[op] = isOne;
  }

  std::function<bool(Operation *)> isPart;
  OpBuilder builder;
  func::FuncOp trial;
  IRMapping copies;
  llvm::DenseMap<Operation *, bool> constants;
  SmallVector<Value> results;
};

SmallVector<int64_t> ofModel(Value tensor) {
  return llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tensor.getType()).getRank()));
}

/// Returns the text of a function without the names of weights and kernels, which differ between equal layers.
std::string textOf(func::FuncOp function) {
  std::string named, text;
  llvm::raw_string_ostream os(named);
  function->print(os, OpPrintingFlags().elideLargeElementsAttrs().elideLargeResourceString());
  StringRef rest = named;
  while (!rest.empty()) {
    bool isName = rest.consume_front("@");
    if (isName)
      rest = rest.drop_while([](char c) { return llvm::isAlnum(c) || StringRef("_.$\"-").contains(c); });
    size_t next = rest.find('@');
    text += rest.take_front(next);
    rest = next == StringRef::npos ? StringRef() : rest.drop_front(next);
  }
  return text;
}
} // namespace

OrDeclined<double> ImageTrials::secondsOf(func::FuncOp trial) {
  std::string text = textOf(trial);
  auto found = known.find(text);
  if (found == known.end())
    found = known.emplace(text, predict(trial)).first;
  trial.erase();
  return found->second;
}

OrDeclined<double> ImageTrials::secondsOf(unsigned region, bool channelsLast) {
  llvm::SmallPtrSet<Operation *, 16> pads; // of the region's convolutions, although they lie as the image does
  for (const ImageRead &read : images.reads)
    if (read.into == region)
      pads.insert(read.behind.begin(), read.behind.end());
  auto regionOf = [&](Operation *op) {
    auto found = images.regionOf.find(op);
    return found == images.regionOf.end() ? std::nullopt : std::optional(found->second);
  };
  TrialBuilder builder(function, [&](Operation *op) { return regionOf(op) == region || pads.contains(op); });
  llvm::SmallDenseMap<Value, SmallVector<int64_t>> orders; // of images between regions
  llvm::SmallPtrSet<Operation *, 4> readers;
  for (const ImageRead &read : images.reads) {
    bool isOwn = read.from == region, isRead = read.into == region;
    SmallVector<int64_t> order = channelsLast ? read.channelsLast() : ofModel(read.image);
    if (isOwn && !isRead) {
      orders[read.image] = order;
      readers.insert(read.reader);
    } else if (isRead && !isOwn && read.from && orders.try_emplace(read.image, order).second) {
      builder.receive(read.image, order);
    }
  }
  for (Operation &op : *function.getBody().begin()) {
    if (regionOf(&op) != region)
      continue;
    for (Value result : op.getResults())
      if (auto order = orders.find(result); order != orders.end())
        builder.give(result, order->second);
      else if (llvm::any_of(result.getUsers(),
                            [&](Operation *user) { return regionOf(user) != region && !readers.contains(user); }))
        builder.give(result, ofModel(result));
  }
  for (linalg::LinalgOp convolution : images.regions[region].joined)
    if (Operation *copy = builder.copyOf(convolution))
      mark(copy, convolution, channelsLast);
  return secondsOf(builder.finish());
}

OrDeclined<double> ImageTrials::secondsOf(const ImageRead &read, bool imageLast, bool resultLast) {
  return secondsOf(trialOf(read, imageLast, resultLast,
                           [&](Operation *copy) { mark(copy, read.reader, resultLast); }));
}

OrDeclined<double> ImageTrials::secondsOfWinograd(const ImageRead &read, int64_t lines) {
  return secondsOf(trialOf(read, /*imageLast=*/true, /*resultLast=*/true,
                           [&](Operation *copy) { requestWinograd(copy, lines); }));
}

func::FuncOp ImageTrials::trialOf(const ImageRead &read, bool imageLast, bool resultLast,
                                  function_ref<void(Operation *)> mark) {
  linalg::LinalgOp reader = read.reader;
  TrialBuilder builder(function, [&](Operation *op) { return op == reader || llvm::is_contained(read.behind, op); });
  builder.receive(read.image, imageLast ? read.channelsLast() : ofModel(read.image));
  Value result = reader->getResult(0);
  builder.give(result, resultLast ? channelsLastInResult(reader) : ofModel(result));
  mark(builder.copyOf(reader));
  return builder.finish();
}

void ImageTrials::mark(Operation *op, linalg::LinalgOp convolution, bool channelsLast) const {
  auto lines = winograd.find(convolution);
  op->removeAttr(kTileLinesAttr);
  if (channelsLast && lines != winograd.end())
    requestWinograd(op, lines->second);
  else
    setForm(op, channelsLast ? tile::Form::channelsLast : tile::Form::asIs);
}
