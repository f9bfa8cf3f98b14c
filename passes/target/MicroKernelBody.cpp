// A body is parsed in a context of its own when it is verified, and in the builder's context whenever it is emitted.
// Only ops on registers are accepted, so that it can be inlined anywhere.
#include "passes/target/MicroKernelBody.h"

#include "dialects/tile/TileAttributeNames.h"
#include "passes/support/SpellType.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <array>

using namespace mlir;
using namespace tilewright;

namespace {
Type typeOf(MLIRContext *context, StringRef name) {
  Builder builder(context);
  if (name == "bf16")
    return builder.getBF16Type();
  if (name == "f16")
    return builder.getF16Type();
  if (name == "f32")
    return builder.getF32Type();
  if (name == "f64")
    return builder.getF64Type();
  return builder.getIntegerType(name == "i32" ? 32 : 8);
}

FunctionType signatureOf(const MicroKernel &kernel, MLIRContext *context) {
  Type element = typeOf(context, kernel.types.accumulator);
  int64_t lanes = kernel.vectorBytes * 8 / element.getIntOrFloatBitWidth();
  Type accumulators = VectorType::get({lanes}, element);
  auto operand = [&](StringRef type) { return VectorType::get({lanes * kernel.depth}, typeOf(context, type)); };
  return FunctionType::get(context, {accumulators, operand(kernel.types.lhs), operand(kernel.types.rhs)},
                           {accumulators});
}

/// Returns why an op may not be inlined into a kernel. Allowed are arithmetic on registers, intrinsics and inline
/// assembly.
std::string whyNotInStep(Operation &op) {
  StringRef dialect = op.getName().getDialectNamespace();
  bool isRegister = dialect == "arith" || dialect == "math" || dialect == "vector" || isa<func::ReturnOp>(op) ||
                    isa<LLVM::CallIntrinsicOp, LLVM::InlineAsmOp, LLVM::BitcastOp>(op);
  if (!isRegister || op.getNumRegions() > 0)
    return "body: " + op.getName().getStringRef().str() + " is not an operation on registers";
  return "";
}

OwningOpRef<ModuleOp> parseBody(const MicroKernel &kernel, MLIRContext *context) {
  return parseSourceString<ModuleOp>(kernel.body, context, "micro kernel " + kernel.name);
}

std::string whyNoStep(const MicroKernel &kernel, ModuleOp module) {
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  if (functions.size() != 1 || functions[0].isExternal() || !functions[0].getBody().hasOneBlock())
    return "body: expected one func.func of one block";
  FunctionType wanted = signatureOf(kernel, module.getContext());
  if (functions[0].getFunctionType() != wanted)
    return "body: expected a function of type " + spell(wanted) + ", not " + spell(functions[0].getFunctionType());
  for (Operation &op : functions[0].getBody().front())
    if (std::string why = whyNotInStep(op); !why.empty())
      return why;
  return "";
}
} // namespace

std::string tilewright::verifyMicroKernelBody(const MicroKernel &kernel) {
  for (const std::string &type : {kernel.types.lhs, kernel.types.rhs, kernel.types.accumulator})
    if (type == "float" || type == "integer")
      return "types: a body is written for one type, not for '" + type + "'";
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                      vector::VectorDialect>();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      message = diagnostic.str();
  });
  OwningOpRef<ModuleOp> module = parseBody(kernel, &context);
  if (!module)
    return "body: " + (message.empty() ? "cannot be parsed as MLIR" : message);
  return whyNoStep(kernel, *module);
}

Value tilewright::emitStep(const MicroKernel &kernel, ImplicitLocOpBuilder &builder, Value accumulators, Value lhs,
                           Value rhs) {
  if (kernel.step)
    return kernel.step(builder, accumulators, lhs, rhs);
  OwningOpRef<ModuleOp> module = parseBody(kernel, builder.getContext());
  assert(module && "a verified micro kernel");
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  IRMapping values;
  for (auto [argument, value] : llvm::zip(function.getArguments(), std::array{accumulators, lhs, rhs}))
    values.map(argument, value);
  for (Operation &op : function.getBody().front().without_terminator()) {
    Operation *inlined = builder.clone(op, values);
    if (isa<LLVM::InlineAsmOp>(inlined))
      inlined->setAttr(kMicroKernelAttr, builder.getStringAttr(kernel.name));
  }
  return values.lookup(function.getBody().front().getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Value tilewright::toJson(const MicroKernel &kernel) {
  return llvm::json::Object{{"name", kernel.name},
                            {"lhs", kernel.types.lhs},
                            {"rhs", kernel.types.rhs},
                            {"accumulator", kernel.types.accumulator},
                            {"depth", kernel.depth},
                            {"vectorBytes", kernel.vectorBytes},
                            {"features", llvm::json::Array(kernel.features)},
                            {"speed", kernel.speed},
                            {"strict", kernel.strict},
                            {"hasOffset", kernel.hasOffset},
                            {"blockRows", kernel.block.rows},
                            {"blockVectors", kernel.block.vectors},
                            {"body", kernel.body}};
}

llvm::Expected<MicroKernel> tilewright::microKernelFromJson(const llvm::json::Value &value) {
  constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kRenamed[] = {
      {"rows", "lhs"}, {"lanes", "rhs"}, {"sums", "accumulator"}};
  for (auto [oldName, newName] : kRenamed)
    if (const llvm::json::Object *object = value.getAsObject(); object && object->get(oldName))
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     oldName.str() + ": this field is called '" + newName.str() + "'");
  MicroKernel kernel;
  llvm::json::Path::Root root("micro kernel");
  llvm::json::ObjectMapper fields(value, root);
  bool read = fields && fields.map("name", kernel.name) && fields.map("lhs", kernel.types.lhs) &&
              fields.map("rhs", kernel.types.rhs) && fields.map("accumulator", kernel.types.accumulator) &&
              fields.map("depth", kernel.depth) && fields.map("vectorBytes", kernel.vectorBytes) &&
              fields.map("body", kernel.body) && fields.mapOptional("features", kernel.features) &&
              fields.mapOptional("speed", kernel.speed) && fields.mapOptional("strict", kernel.strict) &&
              fields.mapOptional("hasOffset", kernel.hasOffset) && fields.mapOptional("blockRows", kernel.block.rows) &&
              fields.mapOptional("blockVectors", kernel.block.vectors);
  if (!read)
    return root.getError();
  if (std::string wrong = kernel.verify(); !wrong.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "micro kernel '" + kernel.name + "': " + wrong);
  return kernel;
}
