// The distribution of elements over registers is that of the PTX ISA, "Matrix fragments for mma.m16n8k16", m16n8k8 and
// m16n8k32.
#include "tools/simulator/MatrixElements.h"

#include <cstring>

using namespace tilewright::simulator;

static float asFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

static float halfToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits >> 15) << 31, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31)
    return asFloat(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) // zero or subnormal
    return (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
  return asFloat(sign | (exponent + 112) << 23 | fraction << 13);
}

float tilewright::simulator::toFloat(MatrixType type, uint16_t bits) {
  return type == MatrixType::f16 ? halfToFloat(bits) : asFloat(uint32_t(bits) << 16);
}

float tilewright::simulator::elementAt(MatrixType type, bool isLeft, const char *address) {
  if (isBytes(type)) {
    bool isSigned = (uint32_t(type) - uint32_t(MatrixType::u8u8)) >> (isLeft ? 1 : 0) & 1;
    auto byte = static_cast<uint8_t>(*address);
    return isSigned ? static_cast<float>(static_cast<int8_t>(byte)) : static_cast<float>(byte);
  }
  uint32_t bits = 0;
  std::memcpy(&bits, address, elementBytes(type));
  return type == MatrixType::tf32 ? asFloat(bits & 0xffffe000) : toFloat(type, bits);
}

uint32_t tilewright::simulator::addProducts(MatrixType type, uint32_t sum, const float *left, const float *right,
                                            uint32_t count) {
  double exact = isBytes(type) ? 0 : asFloat(sum);
  for (uint32_t term = 0; term < count; ++term)
    exact += double(left[term]) * double(right[term]);
  if (isBytes(type)) // the sum of products is exact in double; adding it to the accumulator wraps around
    return sum + static_cast<uint32_t>(static_cast<int32_t>(exact));
  float rounded = static_cast<float>(exact);
  std::memcpy(&sum, &rounded, sizeof(rounded));
  return sum;
}

void tilewright::simulator::multiplyMatrices(MatrixType type, MatrixRegisters *const (&lanes)[32]) {
  constexpr uint32_t registerBytes = 4;
  const uint32_t perRegister = registerBytes / elementBytes(type), depth = 8 * perRegister;
  float a[16][32], b[8][32];
  auto element = [&](bool isLeft, const uint32_t &word, uint32_t index) {
    return elementAt(type, isLeft, reinterpret_cast<const char *>(&word) + index * elementBytes(type));
  };
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t group = lane / 4, firstK = lane % 4 * perRegister;
    for (uint32_t index = 0; index < perRegister; ++index) {
      for (uint32_t i = 0; i < 4; ++i)
        a[group + i % 2 * 8][firstK + index + i / 2 * depth / 2] = element(true, lanes[lane]->a[i], index);
      for (uint32_t i = 0; i < 2; ++i)
        b[group][firstK + index + i * depth / 2] = element(false, lanes[lane]->b[i], index);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      uint32_t &result = lanes[lane]->c[i];
      result = addProducts(type, result, a[row], b[column], depth);
    }
}

void tilewright::simulator::loadMatrices(const char *const (&rows)[32], uint32_t count, bool transposed,
                                         uint32_t *const (&results)[32]) {
  for (uint32_t matrix = 0; matrix < count; ++matrix) {
    uint16_t elements[8][8];
    for (uint32_t row = 0; row < 8; ++row)
      std::memcpy(elements[row], rows[matrix * 8 + row], sizeof(elements[row]));
    for (uint32_t lane = 0; lane < 32; ++lane) {
      uint32_t row = lane / 4, column = lane % 4 * 2;
      uint16_t low = transposed ? elements[column][row] : elements[row][column];
      uint16_t high = transposed ? elements[column + 1][row] : elements[row][column + 1];
      results[lane][matrix] = low | uint32_t(high) << 16;
    }
  }
}
