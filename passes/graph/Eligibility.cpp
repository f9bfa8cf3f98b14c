// The checks go from the domain to the body: number of points, micro kernel of a contraction, windows of a reduction,
// element types, ops of the body. The first failure is the reason.
#include "passes/graph/Eligibility.h"

#include "dialects/tile/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/ConstantOperand.h"
#include "passes/graph/Contraction.h"
#include "passes/graph/DescribeMovement.h"
#include "passes/support/SpellType.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Operations that code generation supports
//===----------------------------------------------------------------------===//

namespace {
/// Returns true for functions that are expanded into polynomials in f32. There are no such polynomials in f64.
bool isTranscendental(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log1pOp, math::Log10Op,
             math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, math::TanOp, math::AsinOp, math::AcosOp, math::AtanOp,
             math::Atan2Op, math::SinhOp, math::CoshOp, math::AsinhOp, math::AcoshOp, math::AtanhOp, math::PowFOp,
             math::FPowIOp, math::CbrtOp>(op);
}

bool isSupportedMath(Operation *op) {
  return isTranscendental(op) ||
         isa<math::AbsFOp, math::AbsIOp, math::SqrtOp, math::RsqrtOp, math::IPowIOp, math::CeilOp, math::FloorOp,
             math::RoundOp, math::RoundEvenOp, math::TruncOp, math::CopySignOp, math::FmaOp>(op);
}

/// Returns true if code generation has elements of the type. Of the integers, it has bools and those of 1, 2, 4 and 8
/// bytes.
bool hasCodeGeneration(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return isKnownElement(type) && (!integer || llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth()));
}

std::string whyNotInBody(Operation &op) {
  if (op.getNumRegions() != 0)
    return "the body holds " + op.getName().getStringRef().str() + ", which has a region";
  for (Type type : llvm::concat<Type>(SmallVector<Type>(op.getOperandTypes()), SmallVector<Type>(op.getResultTypes())))
    if (!hasCodeGeneration(isa<tensor::ExtractOp, tile::GatherOp>(op) ? getElementTypeOrSelf(type) : type))
      return "elements of type " + spell(type) + " have no code generation";
  if (isa<linalg::IndexOp, linalg::YieldOp, tile::IndexOp, tile::WithinOp, tile::YieldOp, tile::GatherOp,
          tensor::ExtractOp>(op))
    return "";
  StringRef dialect = op.getName().getDialectNamespace();
  if (dialect != "arith" && !isSupportedMath(&op))
    return "the body holds " + op.getName().getStringRef().str() + ", which has no code generation";
  if (isa<arith::RemFOp>(op))
    return "the body holds arith.remf, which calls a function";
  if (auto power = dyn_cast<math::IPowIOp>(op); power && !matchPattern(power.getRhs(), m_Constant()))
    return "math.ipowi calls a function, unless its exponent is a constant";
  if (isTranscendental(&op) && op.getResult(0).getType().isF64())
    return op.getName().getStringRef().str() + " in f64 has no code generation";
  return "";
}

/// Returns true for projections, including dims that are split into blocks.
bool isProjectionOrPacked(AffineMap map) {
  return llvm::all_of(map.getResults(), [](AffineExpr expr) {
    auto cut = dyn_cast<AffineBinaryOpExpr>(expr);
    bool isCut = cut && (expr.getKind() == AffineExprKind::FloorDiv || expr.getKind() == AffineExprKind::Mod) &&
                 isa<AffineDimExpr>(cut.getLHS()) && isa<AffineConstantExpr>(cut.getRHS());
    return isCut || isa<AffineDimExpr, AffineConstantExpr>(expr);
  });
}

/// Returns why a contraction has no micro kernel. Register blocks take matmuls only; `tile-convolution-to-matmul` has
/// left alone any contraction that still sums over windows.
std::string whyNoMicroKernel(const TensorExpr &expr) {
  if (std::string why = whyNoSumOfProducts(expr); !why.empty())
    return why;
  if (llvm::any_of(expr.inputs, [](const TensorAccess &access) { return !isProjectionOrPacked(access.map); }))
    return "it reads windows";
  if (!contractionRoles(expr, expr.inputs[0].map, expr.inputs[1].map))
    return "both inputs, or neither, vary along the innermost dim of its result";
  return "";
}
} // namespace

/// Later stages count points, and the operations at each of them, in 64 bits.
static bool hasTooManyPoints(const TensorExpr &expr) {
  constexpr int64_t most = int64_t(1) << 56;
  int64_t points = 1;
  return llvm::any_of(expr.domain,
                      [&](int64_t size) { return llvm::MulOverflow(points, size, points) || points > most; });
}

std::string tilewright::whyNotEligible(const TensorExpr &expr) {
  if (hasTooManyPoints(expr))
    return "it has more than 2^56 points";
  if (expr.kind == ExprKind::contraction)
    if (std::string why = whyNoMicroKernel(expr); !why.empty())
      return "a contraction without a micro kernel: " + why;
  // Pooling windows read each element many times; IREE tiles them as it does convolutions.
  if (expr.kind == ExprKind::reduction && !isa<tile::ExprOp>(expr.op) &&
      llvm::any_of(expr.inputs, [](const TensorAccess &access) { return !isProjection(access.map); }))
    return "a reduction over windows, as in pooling";
  for (Type type :
       llvm::concat<Type>(SmallVector<Type>(expr.op->getOperandTypes()), SmallVector<Type>(expr.op->getResultTypes())))
    if (!hasCodeGeneration(getElementTypeOrSelf(type)))
      return "elements of type " + spell(getElementTypeOrSelf(type)) + " have no code generation";
  if (Block *body = expr.body())
    for (Operation &op : *body)
      if (std::string why = whyNotInBody(op); !why.empty())
        return why;
  return "";
}

bool tilewright::isSpecial(Operation &op) {
  bool integerPower = isa<math::FPowIOp>(op); // an integer power is a few multiplications
  return (isTranscendental(&op) && !integerPower) ||
         isa<math::SqrtOp, math::RsqrtOp, arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp, arith::RemSIOp,
             arith::RemUIOp>(op);
}

int64_t tilewright::specialOps(const TensorExpr &expr) {
  Block *body = expr.body();
  auto isPlain = [](Operation &op) { // a division by a constant becomes a multiplication by its reciprocal
    return isa<arith::DivFOp>(op) && matchPattern(op.getOperand(1), m_Constant());
  };
  return body ? llvm::count_if(*body, [&](Operation &op) { return isSpecial(op) && !isPlain(op); }) : 0;
}

int64_t tilewright::polynomials(const TensorExpr &expr) {
  Block *body = expr.body();
  auto isPolynomial = [](Operation &op) { return isTranscendental(&op) && !isa<math::ExpOp, math::Exp2Op>(op); };
  return body ? llvm::count_if(*body, isPolynomial) : 0;
}

bool tilewright::isView(const TensorExpr &expr) { return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(expr.op); }
