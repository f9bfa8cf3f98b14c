// Random graphs that are small enough for the exhaustive search.
#ifndef TILEWRIGHT_TEST_UNIT_RANDOMGRAPH_H
#define TILEWRIGHT_TEST_UNIT_RANDOMGRAPH_H

#include "test/unit/PlanFixture.h"

#include "llvm/Support/FormatVariadic.h"
#include <random>

namespace tilewright {

/// Draws a function of at most nine ops: elementwise ones, row sums that divide, and products with a weight. Values
/// that nothing reads are returned.
class RandomGraph {
public:
  explicit RandomGraph(unsigned seed) : random(seed) {
    rows = pick({3, 37, 512});
    full = llvm::formatv("tensor<{0}x48xf32>", rows);
    row = llvm::formatv("tensor<{0}xf32>", rows);
    for (unsigned ops = 0; ops < 7;)
      ops += addOps();
  }

  std::string source() const {
    std::string results, types;
    for (size_t value = 2; value < read.size(); ++value)
      if (!read[value]) {
        results += (results.empty() ? "" : ", ") + name(value);
        types += (types.empty() ? "" : ", ") + full;
      }
    return llvm::formatv("func.func @f(%v0: {0}, %v1: {0}, %w: tensor<48x48xf32>) -> ({1}) {{\n"
                         "  %e = tensor.empty() : {0}\n  %z = arith.constant dense<0.0> : {0}\n"
                         "  %r = arith.constant dense<0.0> : {2}\n{3}  return {4} : {1}\n}",
                         full, types, row, body, results);
  }

private:
  unsigned pick(std::initializer_list<unsigned> choices) { return *(choices.begin() + random() % choices.size()); }
  static std::string name(size_t value) { return "%v" + std::to_string(value); }

  /// Returns a value to read, often a recent one.
  std::string use() {
    size_t value = random() % 2 ? read.size() - 1 : random() % read.size();
    read[value] = true;
    return name(value);
  }

  unsigned addOps() {
    std::string made = name(read.size()), id = std::to_string(read.size());
    unsigned kind = random() % 4;
    unsigned ops = 1;
    if (kind == 0) {
      body += llvm::formatv("  {0} = linalg.{1} ins({2} : {3}) outs(%e : {3}) -> {3}\n", made,
                            random() % 2 ? "exp" : "abs", use(), full);
    } else if (kind == 1) {
      std::string left = use(), right = use();
      body += llvm::formatv("  {0} = linalg.{1} ins({2}, {3} : {4}, {4}) outs(%e : {4}) -> {4}\n", made,
                            random() % 2 ? "add" : "mul", left, right, full);
    } else if (kind == 2) {
      std::string summed = use(), divided = use();
      body += llvm::formatv("  %s{0} = linalg.reduce {{ arith.addf } ins({1} : {2}) outs(%r : {3}) dimensions = [1]\n"
                            "  %b{0} = linalg.broadcast ins(%s{0} : {3}) outs(%e : {2}) dimensions = [1]\n"
                            "  {4} = linalg.div ins({5}, %b{0} : {2}, {2}) outs(%e : {2}) -> {2}\n",
                            id, summed, full, row, made, divided);
      ops = 3;
    } else {
      body += llvm::formatv("  {0} = linalg.matmul ins({1}, %w : {2}, tensor<48x48xf32>) outs(%z : {2}) -> {2}\n", made,
                            use(), full);
    }
    read.push_back(false);
    return ops;
  }

  std::mt19937 random;
  unsigned rows;
  std::string full, row, body;
  std::vector<bool> read = {true, true}; ///< by value: true if an op reads it
};

} // namespace tilewright

#endif
