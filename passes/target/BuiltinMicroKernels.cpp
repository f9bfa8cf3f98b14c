// The built-in micro kernels. All that take bf16, and all that take i8, have the same depth, so that variants for
// different processors can read a weight that was packed once.
//
// VPDPBUSD multiplies unsigned by signed bytes. An operand of the wrong signedness has its top bit inverted, which adds
// or subtracts 128. If that operand is lhs, the effect on the accumulators depends on rhs only and is subtracted at the
// end. VPMADDWD multiplies signed words: bytes at even and at odd positions are widened separately. Both are exact:
// integers wrap as they do in the graph.
#include "passes/target/BuiltinMicroKernels.h"
#include "passes/target/Warpgroups.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace tilewright;

namespace {
Value splat(ImplicitLocOpBuilder &builder, VectorType type, int64_t value) {
  return arith::ConstantOp::create(builder,
                                   DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), value)));
}

/// Casts the vector's bits to integers of another width.
Value asIntegers(ImplicitLocOpBuilder &builder, Value vector, unsigned bits) {
  auto type = cast<VectorType>(vector.getType());
  int64_t all = type.getNumElements() * type.getElementTypeBitWidth();
  return vector::BitCastOp::create(builder, VectorType::get({all / bits}, builder.getIntegerType(bits)), vector);
}

Value intrinsic(ImplicitLocOpBuilder &builder, Type result, StringRef name, ValueRange arguments) {
  return LLVM::CallIntrinsicOp::create(builder, result, builder.getStringAttr(name), arguments).getResult(0);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Value multiplyAddFloats(ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
  return math::FmaOp::create(builder, lhs, rhs, accumulators);
}

Value multiplyAddIntegers(ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
  return arith::AddIOp::create(builder, accumulators, arith::MulIOp::create(builder, lhs, rhs));
}

/// A bf16 is the upper half of an f32: the first of a pair is shifted there, the second is there already.
Value multiplyAddPairs(ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
  auto wide = cast<VectorType>(accumulators.getType());
  auto first = [&](Value pairs) -> Value {
    Value bits = asIntegers(builder, pairs, 32);
    Value upper = arith::ShLIOp::create(builder, bits, splat(builder, cast<VectorType>(bits.getType()), 16));
    return vector::BitCastOp::create(builder, wide, upper);
  };
  auto second = [&](Value pairs) -> Value {
    Value bits = asIntegers(builder, pairs, 32);
    Value upper = arith::AndIOp::create(builder, bits, splat(builder, cast<VectorType>(bits.getType()), -65536));
    return vector::BitCastOp::create(builder, wide, upper);
  };
  Value sum = math::FmaOp::create(builder, first(lhs), first(rhs), accumulators);
  return math::FmaOp::create(builder, second(lhs), second(rhs), sum);
}

Value dotBf16(ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
  bool wide = cast<VectorType>(accumulators.getType()).getNumElements() == 16;
  return intrinsic(builder, accumulators.getType(),
                   wide ? "llvm.x86.avx512bf16.dpbf16ps.512" : "llvm.x86.avx512bf16.dpbf16ps.256",
                   {accumulators, lhs, rhs});
}

/// Returns every other byte of the quads, widened to words, beginning with the first or the second byte.
Value words(ImplicitLocOpBuilder &builder, Value quads, bool isSigned, bool second) {
  Value bits = asIntegers(builder, quads, 16);
  auto type = cast<VectorType>(bits.getType());
  Value eight = splat(builder, type, 8);
  if (!second)
    bits = arith::ShLIOp::create(builder, bits, eight);
  return isSigned ? arith::ShRSIOp::create(builder, bits, eight).getResult()
                  : arith::ShRUIOp::create(builder, bits, eight).getResult();
}

MicroKernelStep multiplyWords(StringRef name, bool signedLhs, bool signedRhs) {
  return [=](ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
    for (bool second : {false, true}) {
      Value products = intrinsic(builder, accumulators.getType(), name,
                                 {words(builder, lhs, signedLhs, second), words(builder, rhs, signedRhs, second)});
      accumulators = arith::AddIOp::create(builder, accumulators, products);
    }
    return accumulators;
  };
}

/// Inverts the top bit of every byte: unsigned x becomes x - 128 signed, signed x becomes x + 128 unsigned.
Value otherSign(ImplicitLocOpBuilder &builder, Value bytes) {
  Value bits = asIntegers(builder, bytes, 32);
  bits = arith::XOrIOp::create(builder, bits, splat(builder, cast<VectorType>(bits.getType()), int32_t(0x80808080)));
  return vector::BitCastOp::create(builder, bytes.getType(), bits);
}

MicroKernelStep dotBytes(StringRef name, bool signedLhs, bool signedRhs) {
  return [=](ImplicitLocOpBuilder &builder, Value accumulators, Value lhs, Value rhs) {
    if (signedLhs == signedRhs)
      lhs = otherSign(builder, lhs);
    Value isUnsigned = signedRhs ? lhs : rhs, isSigned = signedRhs ? rhs : lhs;
    return intrinsic(builder, accumulators.getType(), name, {accumulators, isUnsigned, isSigned});
  };
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

void addFloats(std::vector<MicroKernel> &kernels) {
  MicroKernel fma;
  fma.name = "fma";
  fma.types = {"float", "float", "float"};
  fma.step = multiplyAddFloats;
  kernels.push_back(fma);

  MicroKernel pairs;
  pairs.name = "fma_pairs";
  pairs.types = {"bf16", "bf16", "f32"};
  pairs.depth = 2;
  pairs.step = multiplyAddPairs;
  kernels.push_back(pairs);

  MicroKernel dot;
  dot.name = "dpbf16";
  dot.types = {"bf16", "bf16", "f32"};
  dot.depth = 2;
  dot.speed = 2;
  dot.strict = false; // it flushes subnormal numbers
  dot.step = dotBf16;
  dot.vectorBytes = 32;
  dot.features = {"avx512bf16", "avx512vl"};
  kernels.push_back(dot);
  dot.vectorBytes = 64;
  dot.features = {"avx512bf16", "avx512bw"};
  kernels.push_back(dot);
}

struct ByteKernel {
  const char *name, *intrinsic;
  int64_t vectorBytes;
  std::vector<std::string> features;
  double speed;
  bool isDot;
};

void addBytes(std::vector<MicroKernel> &kernels) {
  MicroKernel plain;
  plain.name = "mul_add";
  plain.types = {"integer", "integer", "integer"};
  plain.speed = 0.5;
  plain.step = multiplyAddIntegers;
  kernels.push_back(plain);

  const ByteKernel table[] = {
      {"pmaddwd", "llvm.x86.sse2.pmadd.wd", 16, {}, 1.5, false},
      {"pmaddwd", "llvm.x86.avx2.pmadd.wd", 32, {"avx2"}, 1.5, false},
      {"pmaddwd", "llvm.x86.avx512.pmaddw.d.512", 64, {"avx512bw"}, 1.5, false},
      {"vpdpbusd", "llvm.x86.avx512.vpdpbusd.256", 32, {"avxvnni"}, 4, true},
      {"vpdpbusd", "llvm.x86.avx512.vpdpbusd.512", 64, {"avx512vnni", "avx512bw"}, 4, true},
  };
  for (const ByteKernel &entry : table)
    for (bool signedLhs : {false, true})
      for (bool signedRhs : {false, true}) {
        MicroKernel kernel;
        kernel.name = entry.name;
        kernel.types = {signedLhs ? "si8" : "ui8", signedRhs ? "si8" : "ui8", "i32"};
        kernel.depth = 4;
        kernel.vectorBytes = entry.vectorBytes;
        kernel.features = entry.features;
        kernel.speed = entry.speed;
        kernel.hasOffset = entry.isDot && signedLhs == signedRhs;
        kernel.besides = {kernel.hasOffset || !entry.isDot ? 2 : 1, 2};
        kernel.step = entry.isDot ? dotBytes(entry.intrinsic, signedLhs, signedRhs)
                                  : multiplyWords(entry.intrinsic, signedLhs, signedRhs);
        kernels.push_back(kernel);
      }
}

/// Tile registers (AMX): 16 rows by 16 lanes by 16 pairs or quads in 16 cycles, in which a core of the table does 16
/// times 32 multiply-adds in f32 (Intel's optimization manual, throughput of TDPBF16PS and TDPBSSD). Code generation
/// emits them (TileRegisters.cpp).
void addTiles(std::vector<MicroKernel> &kernels) {
  MicroKernel tiles;
  tiles.unit = StepUnit::tiles;
  tiles.strict = false; // it adds up even and odd K separately, and flushes subnormal numbers
  tiles.name = "amx_bf16";
  tiles.types = {"bf16", "bf16", "f32"};
  tiles.depth = 2;
  tiles.speed = 16;
  tiles.features = {"amx-tile", "amx-bf16"};
  kernels.push_back(tiles);
  tiles.strict = true; // integers are exact in any order
  tiles.name = "amx_int8";
  tiles.depth = 4;
  tiles.speed = 32;
  tiles.features = {"amx-tile", "amx-int8"};
  for (const char *lhs : {"ui8", "si8"})
    for (const char *rhs : {"ui8", "si8"}) {
      tiles.types = {lhs, rhs, "i32"};
      kernels.push_back(tiles);
    }
}

/// The block of a thread's micro kernel is the largest that its registers hold. In the targets of the table, tensor
/// cores run f16 at 16 times the rate of f32, bytes at twice and tf32 at half of that. They truncate the floats that
/// they align for an addition, so products are not rounded separately.
void addGpu(std::vector<MicroKernel> &kernels) {
  MicroKernel thread;
  thread.unit = StepUnit::thread;
  thread.block = {8, 8};
  thread.name = "fma";
  thread.types = {"float", "float", "float"};
  thread.step = multiplyAddFloats;
  kernels.push_back(thread);
  thread.name = "mul_add";
  thread.types = {"integer", "integer", "integer"};
  thread.speed = 0.5;
  thread.step = multiplyAddIntegers;
  kernels.push_back(thread);

  MicroKernel warp, group;
  warp.unit = group.unit = StepUnit::warp;
  warp.block = {16, 8};
  group.block = kWarpgroupBlock;
  group.features = {kWarpgroupFeature.str()};
  warp.name = "mma_sync";
  group.name = kWarpgroupKernel.str();
  auto add = [&](const ProductTypes &types, int64_t depth, double speed) {
    for (MicroKernel *kernel : {&warp, &group}) {
      if (kernel == &group && types.lhs != types.rhs)
        continue; // bytes of different signedness need PTX ISA 8.4 and a CUDA 12.4 driver
      kernel->types = types;
      kernel->depth = depth;
      kernel->speed = speed;
      kernels.push_back(*kernel);
    }
  };
  for (const char *lhs : {"si8", "ui8"})
    for (const char *rhs : {"si8", "ui8"})
      add({lhs, rhs, "i32"}, /*depth=*/32, /*speed=*/32);
  warp.strict = group.strict = false;
  for (const char *type : {"f16", "bf16"})
    add({type, type, "f32"}, /*depth=*/16, /*speed=*/16);
  warp.name = "mma_tf32";
  group.name = "wgmma_tf32";
  warp.roundsToTf32 = group.roundsToTf32 = true;
  add({"f32", "f32", "f32"}, /*depth=*/8, /*speed=*/8);
}
} // namespace

std::vector<MicroKernel> tilewright::builtinMicroKernels() {
  std::vector<MicroKernel> kernels;
  addFloats(kernels);
  addBytes(kernels);
  addTiles(kernels);
  addGpu(kernels);
  return kernels;
}
