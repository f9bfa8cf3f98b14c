// Converts the plan to JSON and back. Reading checks types, required fields and unknown fields, and an error names the
// path of the field. verify() checks whether the plan is legal for a graph.
#include "passes/plan/ir/Plan.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
template <typename T, typename Convert> json::Array list(const std::vector<T> &values, Convert convert) {
  json::Array array;
  array.reserve(values.size()); // growing would copy values with everything in them
  for (const T &value : values)
    array.push_back(convert(value));
  return array;
}

json::Array integers(const std::vector<int64_t> &values) { return json::Array(values); }

json::Value write(const CostTerm &term) {
  return json::Object{{"name", term.name}, {"unit", term.unit}, {"value", term.value}};
}

json::Value write(const LevelTiling &tiling) {
  return json::Object{{"level", tile::stringifyScope(tiling.level)},
                      {"sizes", integers(tiling.sizes)},
                      {"order", integers(tiling.order)}};
}

json::Value write(const LayoutStep &step) {
  return json::Object{{"kind", step.kind}, {"arguments", integers(step.arguments)}};
}

json::Value write(const TensorPlan &tensor) {
  return json::Object{{"tensor", tensor.tensor},
                      {"space", tile::stringifySpace(tensor.space)},
                      {"lifetime", tensor.lifetime},
                      {"layout", list(tensor.layout, [](const LayoutStep &step) { return write(step); })}};
}

json::Value write(const LevelMovement &movement) {
  return json::Object{{"level", movement.level},
                      {"bytes", movement.bytes},
                      {"leastBytes", movement.leastBytes},
                      {"seconds", movement.seconds}};
}

json::Value write(const Numerics &numerics) {
  return json::Object{{"accumulation", numerics.accumulation},
                      {"reassociates", numerics.reassociates},
                      {"roundingsRemoved", numerics.roundingsRemoved}};
}

json::Value write(const GemmChoice &gemm) {
  return json::Object{{"m", gemm.m},
                      {"n", gemm.n},
                      {"kSlices", gemm.kSlices},
                      {"step", gemm.step},
                      {"stages", gemm.stages},
                      {"lhs", tile::stringifyResidency(gemm.lhs)},
                      {"prefetch", tile::stringifyOperands(gemm.prefetch)}};
}

json::Value write(const OpPlan &op) {
  return json::Object{{"id", op.id},
                      {"op", op.op},
                      {"form", op.form},
                      {"numerics", write(op.numerics)},
                      {"root", op.root},
                      {"dims", integers(op.dims)},
                      {"tilings", list(op.tilings, [](const LevelTiling &tiling) { return write(tiling); })},
                      {"microKernel", op.microKernel},
                      {"gemm", op.gemm ? write(*op.gemm) : json::Value(nullptr)},
                      {"copies", op.copies}};
}

json::Value write(const GroupPlan &part) {
  return json::Object{{"ops", list(part.ops, [](const OpPlan &op) { return write(op); })},
                      {"extents", integers(part.extents)},
                      {"tiles", integers(part.tiles)},
                      {"grid", integers(part.grid)},
                      {"vector", part.vector},
                      {"workgroups", part.workgroups},
                      {"threads", part.threads},
                      {"group", part.group},
                      {"steps", part.steps},
                      {"tensors", list(part.tensors, [](const TensorPlan &tensor) { return write(tensor); })},
                      {"movement", list(part.movement, [](const LevelMovement &level) { return write(level); })}};
}

json::Value write(const ResidentTile &resident) {
  return json::Object{{"writer", resident.writer},
                      {"writerInput", resident.writerInput},
                      {"reader", resident.reader},
                      {"readerInput", resident.readerInput},
                      {"bytes", resident.bytes}};
}

json::Value write(const KernelPlan &kernel) {
  return json::Object{
      {"name", kernel.name},
      {"groups", list(kernel.groups, [](const GroupPlan &part) { return write(part); })},
      {"residentTiles", list(kernel.residentTiles, [](const ResidentTile &resident) { return write(resident); })},
      {"predicted", list(kernel.predicted, [](const CostTerm &term) { return write(term); })},
      {"bound", kernel.bound}};
}

json::Value write(const EdgePlan &edge) {
  return json::Object{{"producer", edge.producer},
                      {"result", edge.result},
                      {"consumer", edge.consumer},
                      {"input", edge.input},
                      {"scope", tile::stringifyScope(edge.scope)},
                      {"recompute", edge.recompute},
                      {"unrounded", edge.unrounded},
                      {"reason", edge.reason},
                      {"bytes", edge.bytes},
                      {"seconds", edge.seconds},
                      {"wouldChange", edge.wouldChange}};
}

json::Value write(const LeftOp &op) { return json::Object{{"id", op.id}, {"op", op.op}, {"reason", op.reason}}; }
} // namespace

json::Value tilewright::toJson(const Plan &plan) {
  return json::Object{
      {"target", plan.target},
      {"policy", plan.policy},
      {"numerics", stringify(plan.numerics)},
      {"kernels", list(plan.kernels, [](const KernelPlan &kernel) { return write(kernel); })},
      {"streams", list(plan.streams, [](const std::vector<unsigned> &stream) { return json::Array(stream); })},
      {"edges", list(plan.edges, [](const EdgePlan &edge) { return write(edge); })},
      {"left", list(plan.left, [](const LeftOp &op) { return write(op); })}};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
/// Reads an object field by field. A field is required unless optional() reads it. A field that nobody reads is an
/// error, so a misspelt field is not silently ignored.
class ObjectReader {
public:
  ObjectReader(const json::Value &value, json::Path path) : path(path), object(value.getAsObject()) {
    if (!object)
      path.report("expected object");
    ok = object;
  }
  template <typename T> ObjectReader &required(StringLiteral name, T &out) {
    refuseOldSpelling(name);
    if (ok && !object->get(name)) {
      path.field(name).report("missing value");
      ok = false;
    }
    return optional(name, out);
  }
  template <typename T> ObjectReader &optional(StringLiteral name, T &out) {
    refuseOldSpelling(name);
    known.push_back(name);
    const json::Value *value = ok ? object->get(name) : nullptr;
    if (value)
      ok = read(*value, out, path.field(name));
    return *this;
  }
  bool finish() {
    if (!ok)
      return false;
    for (const auto &entry : *object)
      if (!is_contained(known, StringRef(entry.first))) {
        path.field(StringRef(entry.first)).report("unknown field");
        return false;
      }
    return true;
  }

private:
  /// A field that was renamed, and the message that says so.
  struct Renamed {
    StringLiteral oldName, newName, message;
  };
  static constexpr Renamed kRenamed[] = {
      {"parts", "groups", "this field is called 'groups'"},
      {"kept", "residentTiles", "this field is called 'residentTiles'"},
  };

  /// Reports a field that has the old spelling of `name`.
  void refuseOldSpelling(StringRef name) {
    for (const Renamed &renamed : kRenamed)
      if (ok && renamed.newName == name && object->get(renamed.oldName)) {
        path.field(renamed.oldName).report(renamed.message);
        ok = false;
      }
  }

  template <typename T> static bool read(const json::Value &value, T &out, json::Path path) {
    return fromJSON(value, out, path);
  }
  /// LLVM's conversion accepts any integer and silently truncates those that do not fit.
  static bool read(const json::Value &value, unsigned &out, json::Path path) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || !isUInt<32>(*number)) {
      path.report("expected unsigned integer");
      return false;
    }
    out = static_cast<unsigned>(*number);
    return true;
  }
  template <typename T> static bool read(const json::Value &value, std::vector<std::vector<T>> &out, json::Path path) {
    const json::Array *lists = value.getAsArray();
    if (!lists) {
      path.report("expected array");
      return false;
    }
    for (auto [i, entries] : enumerate(*lists)) {
      const json::Array *entryArray = entries.getAsArray();
      if (!entryArray) {
        path.index(i).report("expected array");
        return false;
      }
      std::vector<T> &list = out.emplace_back();
      for (auto [k, entry] : enumerate(*entryArray))
        if (!read(entry, list.emplace_back(), path.index(i).index(k)))
          return false;
    }
    return true;
  }

  json::Path path;
  const json::Object *object;
  bool ok;
  SmallVector<StringRef> known;
};
} // namespace

// llvm::json finds these functions by argument-dependent lookup, so each one is in the namespace of its type. LLVM
// defines those for scalars and std::vector.
namespace tilewright::tile {
static bool fromJSON(const json::Value &value, Scope &out, json::Path path) {
  auto text = value.getAsString();
  auto scope = text ? symbolizeScope(*text) : std::nullopt;
  if (!scope) {
    path.report("expected one of thread, warp, block, cluster, grid, launch, host");
    return false;
  }
  out = *scope;
  return true;
}

static bool fromJSON(const json::Value &value, Space &out, json::Path path) {
  auto text = value.getAsString();
  auto space = text ? symbolizeSpace(*text) : std::nullopt;
  if (!space) {
    path.report("expected one of register, block, cluster, global, host");
    return false;
  }
  out = *space;
  return true;
}

static bool fromJSON(const json::Value &value, Residency &out, json::Path path) {
  auto text = value.getAsString();
  auto residency = text ? symbolizeResidency(*text) : std::nullopt;
  if (!residency) {
    path.report("expected step or walk");
    return false;
  }
  out = *residency;
  return true;
}

static bool fromJSON(const json::Value &value, Operands &out, json::Path path) {
  auto text = value.getAsString();
  auto operands = text ? symbolizeOperands(*text) : std::nullopt;
  if (!operands) {
    path.report("expected one of none, lhs, rhs, both");
    return false;
  }
  out = *operands;
  return true;
}
} // namespace tilewright::tile

namespace tilewright {
static bool fromJSON(const json::Value &value, CostTerm &out, json::Path path) {
  return ObjectReader(value, path)
      .required("name", out.name)
      .required("unit", out.unit)
      .required("value", out.value)
      .finish();
}

static bool fromJSON(const json::Value &value, LevelTiling &out, json::Path path) {
  return ObjectReader(value, path)
      .required("level", out.level)
      .required("sizes", out.sizes)
      .required("order", out.order)
      .finish();
}

static bool fromJSON(const json::Value &value, LevelMovement &out, json::Path path) {
  return ObjectReader(value, path)
      .required("level", out.level)
      .required("bytes", out.bytes)
      .optional("leastBytes", out.leastBytes)
      .optional("seconds", out.seconds)
      .finish();
}

static bool fromJSON(const json::Value &value, LayoutStep &out, json::Path path) {
  return ObjectReader(value, path).required("kind", out.kind).required("arguments", out.arguments).finish();
}

static bool fromJSON(const json::Value &value, TensorPlan &out, json::Path path) {
  return ObjectReader(value, path)
      .required("tensor", out.tensor)
      .required("space", out.space)
      .required("lifetime", out.lifetime)
      .optional("layout", out.layout)
      .finish();
}

static bool fromJSON(const json::Value &value, NumericsMode &out, json::Path path) {
  auto text = value.getAsString();
  auto mode = text ? symbolizeNumericsMode(*text) : std::nullopt;
  if (!mode) {
    path.report("expected one of default, strict, tf32");
    return false;
  }
  out = *mode;
  return true;
}

static bool fromJSON(const json::Value &value, Numerics &out, json::Path path) {
  return ObjectReader(value, path)
      .optional("accumulation", out.accumulation)
      .optional("reassociates", out.reassociates)
      .optional("roundingsRemoved", out.roundingsRemoved)
      .finish();
}

static bool fromJSON(const json::Value &value, GemmChoice &out, json::Path path) {
  return ObjectReader(value, path)
      .required("m", out.m)
      .required("n", out.n)
      .required("kSlices", out.kSlices)
      .required("step", out.step)
      .required("stages", out.stages)
      .required("lhs", out.lhs)
      .required("prefetch", out.prefetch)
      .finish();
}

static bool fromJSON(const json::Value &value, OpPlan &out, json::Path path) {
  return ObjectReader(value, path)
      .required("id", out.id)
      .optional("op", out.op)
      .optional("form", out.form)
      .optional("numerics", out.numerics)
      .required("root", out.root)
      .optional("dims", out.dims)
      .optional("tilings", out.tilings)
      .optional("microKernel", out.microKernel)
      .optional("gemm", out.gemm)
      .optional("copies", out.copies)
      .finish();
}

static bool fromJSON(const json::Value &value, GroupPlan &out, json::Path path) {
  return ObjectReader(value, path)
      .required("ops", out.ops)
      .required("extents", out.extents)
      .required("tiles", out.tiles)
      .required("grid", out.grid)
      .required("vector", out.vector)
      .required("workgroups", out.workgroups)
      .optional("threads", out.threads)
      .optional("group", out.group)
      .optional("steps", out.steps)
      .optional("tensors", out.tensors)
      .optional("movement", out.movement)
      .finish();
}

static bool fromJSON(const json::Value &value, ResidentTile &out, json::Path path) {
  return ObjectReader(value, path)
      .required("writer", out.writer)
      .required("writerInput", out.writerInput)
      .required("reader", out.reader)
      .required("readerInput", out.readerInput)
      .optional("bytes", out.bytes)
      .finish();
}

static bool fromJSON(const json::Value &value, KernelPlan &out, json::Path path) {
  return ObjectReader(value, path)
      .required("name", out.name)
      .required("groups", out.groups)
      .optional("residentTiles", out.residentTiles)
      .optional("predicted", out.predicted)
      .optional("bound", out.bound)
      .finish();
}

static bool fromJSON(const json::Value &value, EdgePlan &out, json::Path path) {
  return ObjectReader(value, path)
      .required("producer", out.producer)
      .required("result", out.result)
      .required("consumer", out.consumer)
      .required("input", out.input)
      .required("scope", out.scope)
      .optional("recompute", out.recompute)
      .optional("unrounded", out.unrounded)
      .optional("reason", out.reason)
      .optional("bytes", out.bytes)
      .optional("seconds", out.seconds)
      .optional("wouldChange", out.wouldChange)
      .finish();
}

static bool fromJSON(const json::Value &value, LeftOp &out, json::Path path) {
  return ObjectReader(value, path)
      .required("id", out.id)
      .optional("op", out.op)
      .optional("reason", out.reason)
      .finish();
}

static bool fromJSON(const json::Value &value, Plan &out, json::Path path) {
  return ObjectReader(value, path)
      .optional("target", out.target)
      .optional("policy", out.policy)
      .optional("numerics", out.numerics)
      .required("kernels", out.kernels)
      .optional("streams", out.streams)
      .required("edges", out.edges)
      .optional("left", out.left)
      .finish();
}
} // namespace tilewright

Expected<Plan> tilewright::planFromJson(const json::Value &value) {
  json::Path::Root root("plan");
  Plan plan;
  if (!fromJSON(value, plan, root))
    return root.getError();
  return plan;
}
