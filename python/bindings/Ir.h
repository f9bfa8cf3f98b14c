// Python's objects of IR: thin handles over MLIR's C API that cannot outlive what they refer to.
//
// A handle of an op shares an `OpState` with all other handles of that op. Whatever destroys ops (an erasure, a pass,
// the end of a callback) marks their states as invalid first, and a handle checks its state before each use. Handles of
// values, blocks and regions hold the state of the op that owns them. Types, attributes and locations live as long as
// their context, which they keep alive.
#ifndef TILEWRIGHT_PYTHON_IR_H
#define TILEWRIGHT_PYTHON_IR_H

#include "core/Ir.h"

#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/IR.h"
#include "mlir-c/IntegerSet.h"
#include "mlir-c/Rewrite.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

namespace tilewright::python {

namespace nb = nanobind;
using Context = std::shared_ptr<NativeContext>;

/// Raises `tilewright.errors.IrError`.
[[noreturn]] void raiseError(const std::string &message, const std::string &operation = "",
                             const std::string &location = "", const std::string &details = "");
/// Raises the first error of some diagnostics, or `otherwise` if there is none.
[[noreturn]] void raiseError(const Diagnostics &diagnostics, const std::string &otherwise);

inline MlirStringRef toRef(std::string_view text) { return mlirStringRefCreate(text.data(), text.size()); }
inline std::string str(MlirStringRef text) { return std::string(text.data, text.length); }

/// Returns what one of the C API's print functions prints.
template <typename F> std::string printed(F &&print) {
  std::string text;
  print([](MlirStringRef part, void *to) { static_cast<std::string *>(to)->append(part.data, part.length); },
        static_cast<void *>(&text));
  return text;
}

/// Raises an error if two objects that are to be combined belong to different contexts.
inline void requireSame(const Context &a, const Context &b) {
  if (a != b)
    raiseError("objects of different contexts do not mix; build both in one context, such as that of the module");
}

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

struct Session;

/// The state that all handles of one op share.
struct OpState {
  OpState(MlirOperation op, std::shared_ptr<Session> session) : op(op), session(std::move(session)) {}
  ~OpState();

  MlirOperation op;
  std::shared_ptr<Session> session;
  bool isValid = true;
  /// True if the op was built outside any block and Python owns it.
  bool isOwned = false;
  /// Increases when the blocks of the op may have gone. Handles of blocks remember the number.
  unsigned generation = 0;
};

/// The handles that are valid together: those of one module between two passes, or those of one call of a Python
/// function from a pass or pattern.
struct Session : std::enable_shared_from_this<Session> {
  explicit Session(Context context) : context(std::move(context)) {}

  std::shared_ptr<OpState> state(MlirOperation op);
  /// Marks the states of the ops inside an op as invalid, and with `itself` its own.
  void forgetInside(MlirOperation op, bool itself);
  /// Marks all states as invalid except those of `kept` and the ops around it.
  void forgetAll(MlirOperation kept);

  Context context;
  std::shared_ptr<NativeModule> module; ///< kept alive; null for callbacks and for ops outside any module
  MlirOperation root{nullptr};          ///< cannot be erased
  MlirRewriterBase rewriter{nullptr};   ///< performs all changes in a pattern
  bool hasChanged = false;              ///< true if something was changed by the handles
  int busy = 0;                         ///< more than zero while a pipeline or printer uses the ops
  std::unordered_map<void *, std::weak_ptr<OpState>> live;
};

struct Operation {
  std::shared_ptr<OpState> state;

  /// Returns the op. Raises an error if it is gone or in use.
  MlirOperation get() const;
  Session &session() const { return *state->session; }
  bool operator==(const Operation &other) const { return state == other.state; }
};

/// A handle of something inside an op.
struct Inside {
  std::shared_ptr<OpState> owner;
  unsigned generation;

  explicit Inside(std::shared_ptr<OpState> owner) : owner(std::move(owner)), generation(this->owner->generation) {}
  /// Raises an error if the owner or its blocks are gone, or in use.
  void check() const;
  Session &session() const { return *owner->session; }
};

struct Region : Inside {
  Region(std::shared_ptr<OpState> owner, MlirRegion region) : Inside(std::move(owner)), region(region) {}
  MlirRegion get() const { return check(), region; }
  MlirRegion region;
};

struct Block : Inside {
  Block(std::shared_ptr<OpState> owner, MlirBlock block) : Inside(std::move(owner)), block(block) {}
  MlirBlock get() const { return check(), block; }
  MlirBlock block;
};

struct Value : Inside {
  Value(std::shared_ptr<OpState> owner, MlirValue value) : Inside(std::move(owner)), value(value) {}
  MlirValue get() const { return check(), value; }
  MlirValue value;
};
struct OpResult : Value {
  using Value::Value;
};
struct BlockArgument : Value {
  using Value::Value;
};

/// The place of new ops: before an op, or at the end of a block.
struct InsertionPoint {
  Block block;
  std::optional<Operation> before;
};

template <typename T> struct Uniqued {
  Context context;
  T value;
};
struct Location : Uniqued<MlirLocation> {};
struct Type : Uniqued<MlirType> {};
struct Attribute : Uniqued<MlirAttribute> {};
struct AffineExpr : Uniqued<MlirAffineExpr> {};
struct AffineMap : Uniqued<MlirAffineMap> {};
struct IntegerSet : Uniqued<MlirIntegerSet> {};

/// Returns the most derived Python object.
nb::object wrap(const Context &context, MlirType type);
nb::object wrap(const Context &context, MlirAttribute attribute);
nb::object wrap(Session &session, MlirValue value);
inline Operation wrap(Session &session, MlirOperation op) { return {session.state(op)}; }
Block wrap(Session &session, MlirBlock block);

/// Has `tilewright.dialects.tile` make one of its classes from the fields of an attribute or type.
nb::object tileValue(const Context &context, const std::pair<std::string, TileFields> &described);

/// Returns the op that a Python object is or views; raises an error for any other object.
Operation asOperation(const nb::handle &object);
/// Appends the values that a Python object is or has as results.
void appendValues(const nb::handle &object, std::vector<Value> &values);

inline std::string nameOf(MlirOperation op) { return str(mlirIdentifierStr(mlirOperationGetName(op))); }
/// Returns an op as text.
std::string print(const Operation &op, bool generic, bool localScope, bool debugInfo, bool skipRegions);
/// True if a value that is defined inside an op, and is none of its results, is used outside of the op.
bool isInsideUsedOutside(MlirOperation op);
/// True if what is outside of an op uses a value of it, so that it cannot be destroyed.
bool isUsed(MlirOperation op);
/// Erases an op. Raises an error for the outermost one, and for one whose results are used.
void erase(const Operation &op);

//===----------------------------------------------------------------------===//
// Defaults that `with` blocks set
//===----------------------------------------------------------------------===//

/// Defaults for what is built in a `with` block of a context, location or insertion point.
struct Defaults {
  std::shared_ptr<Session> session;
  std::optional<Location> location;
  std::optional<InsertionPoint> point;
};

/// Returns the innermost defaults of this thread; null outside any `with` block.
const Defaults *defaults();
void push(Defaults entered);
void pop();

/// Returns the context that an argument or the innermost `with` block names; raises an error if neither does.
Context contextOr(const std::optional<std::shared_ptr<Session>> &given);

//===----------------------------------------------------------------------===//
// Parts of the module
//===----------------------------------------------------------------------===//

void bindContext(nb::module_ &m);
void bindTypes(nb::module_ &m);
void bindAttributes(nb::module_ &m);
void bindAffine(nb::module_ &m);
void bindOperations(nb::module_ &m);
void bindBuilding(nb::class_<Operation> &operation);
void bindBlocks(nb::module_ &m);
void bindRewrites(nb::module_ &m);
void bindModules(nb::module_ &m);

} // namespace tilewright::python

#endif
