// Predicts what a layout of images costs a part of a function: one region of images, or one convolution at a border.
#ifndef TILEWRIGHT_PLAN_FORMS_IMAGETRIALS_H
#define TILEWRIGHT_PLAN_FORMS_IMAGETRIALS_H

#include "passes/normalize/ImageRegions.h"
#include "passes/support/Declined.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <functional>
#include <map>
#include <string>

namespace tilewright {

/// Each part becomes a function of its own, whose images from other regions are arguments in a given layout. Parts that
/// are equal are predicted once.
class ImageTrials {
public:
  /// `predict` returns the seconds of the plan of a function, which it may rewrite.
  using Predict = std::function<OrDeclined<double>(mlir::func::FuncOp)>;

  ImageTrials(mlir::func::FuncOp function, const ImageRegions &images, Predict predict)
      : function(function), images(images), predict(std::move(predict)) {}

  /// Predicts everything that computes a region whose images and operands from other regions have channels last, or lie
  /// as the model says.
  OrDeclined<double> secondsOf(unsigned region, bool channelsLast);

  /// Predicts a convolution alone, from an image in one layout to a result in another.
  OrDeclined<double> secondsOf(const ImageRead &read, bool imageLast, bool resultLast);

  /// Predicts a convolution alone, from an image with channels last to a result with channels last, in the form
  /// `winograd` with sums of `lines` lines together (normalize/Winograd.h).
  OrDeclined<double> secondsOfWinograd(const ImageRead &read, int64_t lines);

  /// Gives a convolution the form `winograd` wherever its result has channels last, in all trials that follow.
  void takeWinograd(mlir::linalg::LinalgOp convolution, int64_t lines) { winograd[convolution] = lines; }

  /// Gives `op`, a convolution or its copy, a layout, and the form that the convolution has with it.
  void mark(mlir::Operation *op, mlir::linalg::LinalgOp convolution, bool channelsLast) const;

private:
  /// `mark` gives the copy of the convolution its form.
  mlir::func::FuncOp trialOf(const ImageRead &read, bool imageLast, bool resultLast,
                             llvm::function_ref<void(mlir::Operation *)> mark);
  OrDeclined<double> secondsOf(mlir::func::FuncOp trial);

  mlir::func::FuncOp function;
  const ImageRegions &images;
  Predict predict;
  llvm::DenseMap<mlir::Operation *, int64_t> winograd; ///< lines of the convolutions that have the form
  std::map<std::string, OrDeclined<double>> known; ///< by the text of the trial
};

} // namespace tilewright

#endif
