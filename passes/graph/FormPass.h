// Base class of passes that offer a form and rewrite the ops for which it is taken.
#ifndef TILEWRIGHT_GRAPH_FORMPASS_H
#define TILEWRIGHT_GRAPH_FORMPASS_H

#include "passes/graph/FormChoice.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/raw_ostream.h"

namespace tilewright {

/// `Base` is the generated class of a pass on a function, or on a module of them, with statistics `numTaken` and
/// `numDeclined`.
template <typename Base> class FormPass : public Base {
public:
  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registry.insert<tile::TileDialect>(); // has the attribute of the record
  }

protected:
  using Base::Base;

  /// Settles the choice for the next offer (settleForm) and says so in a remark at the first op. If the choice cannot be
  /// carried out, the pass fails.
  mlir::FailureOr<FormChoice> settle(FormChoice byRule, llvm::ArrayRef<mlir::Operation *> ops, WhyNotForm whyNot) {
    return settle(this->getOperation(), std::move(byRule), ops, whyNot);
  }

  /// Does so for a function of the module.
  mlir::FailureOr<FormChoice> settle(mlir::Operation *function, FormChoice byRule,
                                     llvm::ArrayRef<mlir::Operation *> ops, WhyNotForm whyNot) {
    mlir::FailureOr<FormChoice> choice = settleForm(function, std::move(byRule), ops, whyNot);
    if (mlir::failed(choice)) {
      this->signalPassFailure();
      return choice;
    }
    std::string text = "tile: ";
    llvm::raw_string_ostream os(text);
    choice->print(os);
    auto options = mlir::remark::RemarkOpts::name("form").category(this->getArgument());
    if (choice->taken) {
      mlir::remark::passed(ops.front()->getLoc(), options) << text;
      ++this->numTaken;
    } else {
      mlir::remark::missed(ops.front()->getLoc(), options) << text;
      ++this->numDeclined;
    }
    return choice;
  }

  /// Says why a form is not offered for an op that looks as if it could have it.
  void leave(mlir::Operation *op, llvm::StringRef reason) {
    mlir::remark::missed(op->getLoc(), mlir::remark::RemarkOpts::name("form").category(this->getArgument()))
        << ("tile: " + reason).str();
    ++this->numDeclined;
  }
};

} // namespace tilewright

#endif
