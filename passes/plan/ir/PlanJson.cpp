// Converts the plan to JSON and back. The fields of each record are listed once, for both directions. Reading checks
// types, required fields and unknown fields, and an error names the path of the field. verify() checks whether the plan
// is legal for a graph.
#include "passes/plan/ir/Plan.h"

#include "passes/support/ParseJson.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// The fields
//===----------------------------------------------------------------------===//

namespace tilewright {
template <typename Mapper> void mapFields(Mapper &map, CostTerm &record) {
  map.required("name", record.name).required("unit", record.unit).required("value", record.value);
}

template <typename Mapper> void mapFields(Mapper &map, LevelTiling &record) {
  map.required("level", record.level).required("sizes", record.sizes).required("order", record.order);
}

template <typename Mapper> void mapFields(Mapper &map, LevelMovement &record) {
  map.required("level", record.level)
      .required("bytes", record.bytes)
      .optional("leastBytes", record.leastBytes)
      .optional("seconds", record.seconds);
}

template <typename Mapper> void mapFields(Mapper &map, LayoutStep &record) {
  map.required("kind", record.kind).required("arguments", record.arguments);
}

template <typename Mapper> void mapFields(Mapper &map, TensorPlan &record) {
  map.required("tensor", record.tensor)
      .required("space", record.space)
      .required("lifetime", record.lifetime)
      .optional("layout", record.layout)
      .optional("access", record.access);
}

template <typename Mapper> void mapFields(Mapper &map, Numerics &record) {
  map.optional("accumulation", record.accumulation)
      .optional("reassociates", record.reassociates)
      .optional("roundingsRemoved", record.roundingsRemoved);
}

template <typename Mapper> void mapFields(Mapper &map, GemmChoice &record) {
  map.required("m", record.m)
      .required("n", record.n)
      .required("kSlices", record.kSlices)
      .required("step", record.step)
      .required("stages", record.stages)
      .required("lhs", record.lhs)
      .required("prefetch", record.prefetch)
      .required("lhsCopy", record.lhsCopy)
      .required("rhsCopy", record.rhsCopy);
}

template <typename Mapper> void mapFields(Mapper &map, BlockingChoice &record) {
  map.required("vectors", record.vectors)
      .required("unroll", record.unroll)
      .required("panelK", record.panelK)
      .required("prefetch", record.prefetch)
      .required("kOutermost", record.kOutermost)
      .required("evenRows", record.evenRows)
      .required("widerLast", record.widerLast);
}

template <typename Mapper> void mapFields(Mapper &map, OpPlan &record) {
  map.required("id", record.id)
      .optional("op", record.op)
      .optional("form", record.form)
      .optional("numerics", record.numerics)
      .required("root", record.root)
      .optional("dims", record.dims)
      .optional("tilings", record.tilings)
      .optional("microKernel", record.microKernel)
      .optional("gemm", record.gemm)
      .optional("blocking", record.blocking)
      .optional("copies", record.copies);
}

template <typename Mapper> void mapFields(Mapper &map, GroupPlan &record) {
  map.required("ops", record.ops)
      .required("extents", record.extents)
      .required("tiles", record.tiles)
      .required("grid", record.grid)
      .required("vector", record.vector)
      .required("workgroups", record.workgroups)
      .optional("threads", record.threads)
      .optional("group", record.group)
      .optional("steps", record.steps)
      .optional("cluster", record.cluster)
      .optional("tensors", record.tensors)
      .optional("movement", record.movement);
}

template <typename Mapper> void mapFields(Mapper &map, ResidentTile &record) {
  map.required("writer", record.writer)
      .required("writerInput", record.writerInput)
      .required("reader", record.reader)
      .required("readerInput", record.readerInput)
      .optional("bytes", record.bytes)
      .optional("writerResult", record.writerResult);
}

template <typename Mapper> void mapFields(Mapper &map, KernelPlan &record) {
  map.required("name", record.name)
      .required("groups", record.groups)
      .optional("residentTiles", record.residentTiles)
      .optional("residentBlocks", record.residentBlocks)
      .optional("predicted", record.predicted)
      .optional("bound", record.bound);
}

template <typename Mapper> void mapFields(Mapper &map, EdgePlan &record) {
  map.required("producer", record.producer)
      .required("result", record.result)
      .required("consumer", record.consumer)
      .required("input", record.input)
      .required("scope", record.scope)
      .optional("recompute", record.recompute)
      .optional("unrounded", record.unrounded)
      .optional("reason", record.reason)
      .optional("place", record.place)
      .optional("bytes", record.bytes)
      .optional("seconds", record.seconds)
      .optional("wouldChange", record.wouldChange);
}

template <typename Mapper> void mapFields(Mapper &map, LeftOp &record) {
  map.required("id", record.id).optional("op", record.op).optional("reason", record.reason);
}

template <typename Mapper> void mapFields(Mapper &map, FormChoice &record) {
  map.required("form", record.form)
      .required("number", record.number)
      .optional("ops", record.ops)
      .required("taken", record.taken)
      .optional("parameters", record.parameters)
      .optional("numerics", record.numerics)
      .optional("seconds", record.seconds)
      .optional("otherwiseSeconds", record.otherwiseSeconds)
      .optional("reason", record.reason)
      .optional("wouldChange", record.wouldChange);
}

template <typename Mapper> void mapFields(Mapper &map, LoopPlan &record) {
  map.optional("op", record.op)
      .required("firstOp", record.firstOp)
      .required("ops", record.ops)
      .optional("steps", record.steps)
      .optional("oneKernel", record.oneKernel)
      .optional("reason", record.reason);
}

template <typename Mapper> void mapFields(Mapper &map, Plan &record) {
  map.optional("target", record.target)
      .optional("policy", record.policy)
      .optional("numerics", record.numerics)
      .required("kernels", record.kernels)
      .optional("streams", record.streams)
      .required("edges", record.edges)
      .optional("left", record.left)
      .optional("forms", record.forms)
      .optional("loops", record.loops);
}
} // namespace tilewright

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {
json::Value write(NumericsMode mode) { return stringify(mode); }
template <typename T> json::Value write(const T &value);
template <typename T> json::Value write(const std::vector<T> &values);
json::Value write(const std::map<std::string, std::vector<int64_t>> &values);
template <typename T> json::Value write(const std::optional<T> &value);

/// Collects the fields of a record, whether they are required or not.
struct ObjectWriter {
  template <typename T> ObjectWriter &required(StringLiteral name, const T &value) {
    object[name] = write(value);
    return *this;
  }
  template <typename T> ObjectWriter &optional(StringLiteral name, const T &value) { return required(name, value); }

  json::Object object;
};

template <typename T> json::Value write(const T &value) {
  if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return tile::stringifyEnum(value);
  } else {
    ObjectWriter writer;
    mapFields(writer, const_cast<T &>(value)); // which the writer does not change
    return std::move(writer.object);
  }
}

template <typename T> json::Value write(const std::vector<T> &values) {
  json::Array array;
  array.reserve(values.size()); // growing would copy values with everything in them
  for (const T &value : values)
    array.push_back(write(value));
  return array;
}

json::Value write(const std::map<std::string, std::vector<int64_t>> &values) {
  json::Object object;
  for (const auto &[name, list] : values)
    object[name] = write(list);
  return object;
}

template <typename T> json::Value write(const std::optional<T> &value) {
  return value ? write(*value) : json::Value(nullptr);
}
} // namespace

json::Value tilewright::toJson(const FormChoice &form) { return write(form); }
json::Value tilewright::toJson(const Plan &plan) { return write(plan); }

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

template <typename Enum>
bool readEnum(const json::Value &value, Enum &out, json::Path path, std::optional<Enum> (*symbolize)(StringRef),
              StringLiteral expected) {
  auto text = value.getAsString();
  std::optional<Enum> known = text ? symbolize(*text) : std::nullopt;
  if (known)
    out = *known;
  else
    path.report(expected);
  return known.has_value();
}

/// The message if a value is none of an enum's.
template <typename Enum> constexpr StringLiteral kExpected = "";
template <>
constexpr StringLiteral kExpected<tile::Scope> = "expected one of thread, warp, block, cluster, grid, launch, host";
template <>
constexpr StringLiteral kExpected<tile::Space> = "expected one of register, block, cluster, global, host";
template <> constexpr StringLiteral kExpected<tile::Lifetime> = "expected one of tile, workgroup, kernel, stream";
template <> constexpr StringLiteral kExpected<tile::Access> = "expected one of derived, whole, direct";
template <> constexpr StringLiteral kExpected<tile::Unit> = "expected one of s, B, 1";
template <> constexpr StringLiteral kExpected<tile::LayoutKind> = "expected one of pad, permute, split, swizzle";
template <> constexpr StringLiteral kExpected<tile::Residency> = "expected step or walk";
template <> constexpr StringLiteral kExpected<tile::Operands> = "expected one of none, lhs, rhs, both";
template <>
constexpr StringLiteral kExpected<tile::Form> = "expected the name of a form, such as 'as-is' or 'online softmax'";
} // namespace

// llvm::json finds these functions by argument-dependent lookup, so each one is in the namespace of its type. LLVM
// defines those for scalars, std::vector, std::map and std::optional.
namespace tilewright::tile {
template <typename Enum, typename = std::enable_if_t<std::is_enum_v<Enum>>>
static bool fromJSON(const json::Value &value, Enum &out, json::Path path) {
  return readEnum<Enum>(value, out, path, symbolizeEnum<Enum>, kExpected<Enum>);
}
} // namespace tilewright::tile

namespace tilewright {
static bool fromJSON(const json::Value &value, NumericsMode &out, json::Path path) {
  return readEnum(value, out, path, symbolizeNumericsMode, "expected one of default, strict, tf32");
}

template <typename Record> static bool fromJSON(const json::Value &value, Record &out, json::Path path) {
  ObjectReader reader(value, path);
  mapFields(reader, out);
  return reader.finish();
}
} // namespace tilewright

Expected<Plan> tilewright::planFromJson(const json::Value &value) {
  json::Path::Root root("plan");
  Plan plan;
  if (!fromJSON(value, plan, root))
    return root.getError();
  llvm::stable_sort(plan.edges, [](const EdgePlan &a, const EdgePlan &b) {
    return std::pair(a.consumer, a.input) < std::pair(b.consumer, b.input);
  });
  return plan;
}

Expected<Plan> tilewright::readPlan(StringRef path) {
  std::string message;
  std::unique_ptr<MemoryBuffer> buffer = mlir::openInputFile(path, &message);
  if (!buffer)
    return createStringError(message);
  Expected<json::Value> value = parseJson(buffer->getBuffer());
  Expected<Plan> plan = value ? planFromJson(*value) : value.takeError();
  if (!plan)
    return createStringError("plan '" + path + "': " + toString(plan.takeError()));
  return plan;
}
