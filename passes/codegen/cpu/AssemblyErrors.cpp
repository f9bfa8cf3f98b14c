#include "passes/codegen/cpu/AssemblyErrors.h"

#include "dialects/tile/TileAttributeNames.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/target/MicroKernelBody.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace tilewright;

/// Returns the names of micro kernels by their assembly text, which is all that translation keeps of them.
static llvm::StringMap<std::string> kernelsByAssembly(mlir::Operation *kernels) {
  llvm::StringMap<std::string> names;
  kernels->walk([&](mlir::LLVM::InlineAsmOp op) {
    if (auto name = op->getAttrOfType<mlir::StringAttr>(kMicroKernelAttr))
      names[op.getAsmString()] = name.str();
  });
  return names;
}

AssemblyErrors::AssemblyErrors(mlir::Operation *kernels, llvm::Module &module) : context(module.getContext()) {
  llvm::StringMap<std::string> names = kernelsByAssembly(kernels);
  llvm::Type *number = llvm::Type::getInt64Ty(context);
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      auto *assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
      if (!assembly)
        continue;
      kernelOf.push_back(names.lookup(assembly->getAsmString()));
      auto *cookie = llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(number, kernelOf.size()));
      call->setMetadata("srcloc", llvm::MDNode::get(context, cookie));
      // The optimiser assumes that constraints are well formed.
      if (llvm::Error malformed = llvm::InlineAsm::verify(call->getFunctionType(), assembly->getConstraintString())) {
        std::string why = llvm::toString(std::move(malformed));
        if (message.empty())
          message = prefix(kernelOf.size()) + "constraints '" + assembly->getConstraintString().str() + "': " + why;
      }
    }
  context.setDiagnosticHandlerCallBack(listen, this);
}

AssemblyErrors::~AssemblyErrors() { context.setDiagnosticHandlerCallBack(nullptr); }

/// Returns the number of the inline assembly that an error is about, or nothing.
static std::optional<uint64_t> cookieOf(const llvm::DiagnosticInfo &info) {
  if (auto *refused = llvm::dyn_cast<llvm::DiagnosticInfoSrcMgr>(&info))
    return refused->getLocCookie();
  if (auto *refused = llvm::dyn_cast<llvm::DiagnosticInfoInlineAsm>(&info))
    return refused->getLocCookie();
  return std::nullopt;
}

std::string AssemblyErrors::prefix(uint64_t cookie) const {
  bool isNumbered = cookie > 0 && cookie <= kernelOf.size(); // zero means no number
  std::string name = isNumbered ? kernelOf[cookie - 1] : "";
  return "inline assembly" + (name.empty() ? "" : " of micro kernel '" + name + "'") + ": ";
}

void AssemblyErrors::listen(const llvm::DiagnosticInfo *info, void *self) {
  auto &errors = *static_cast<AssemblyErrors *>(self);
  if (info->getSeverity() != llvm::DS_Error || !errors.message.empty())
    return;
  if (std::optional<uint64_t> cookie = cookieOf(*info))
    errors.message = errors.prefix(*cookie);
  llvm::raw_string_ostream stream(errors.message);
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}
