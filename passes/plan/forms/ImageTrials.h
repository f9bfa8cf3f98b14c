// Predicts what a layout of images costs a part of a function: one region of images, or one convolution at a border.
#ifndef TILEWRIGHT_PLAN_FORMS_IMAGETRIALS_H
#define TILEWRIGHT_PLAN_FORMS_IMAGETRIALS_H

#include "dialects/tile/TileDialect.h"
#include "passes/normalize/ImageRegions.h"
#include "passes/plan/ir/Declined.h"

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

  /// Predicts a convolution alone, from an image with channels last to a result with channels last, in the given form.
  OrDeclined<double> secondsOf(const ImageRead &read, tile::Form form);

private:
  mlir::func::FuncOp trialOf(const ImageRead &read, bool imageLast, bool resultLast, tile::Form form);
  OrDeclined<double> secondsOf(mlir::func::FuncOp trial);

  mlir::func::FuncOp function;
  const ImageRegions &images;
  Predict predict;
  std::map<std::string, OrDeclined<double>> known; ///< by the text of the trial
};

} // namespace tilewright

#endif
