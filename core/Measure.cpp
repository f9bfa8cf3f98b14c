// Each loop is compiled once for each width of registers, in a function with the features that it needs; the module
// itself runs on every x86-64 processor. All threads start together and count the rounds that they finish before a
// deadline, so that a thread that starts late does not count as a slow one.
#include "core/Measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

using namespace tilewright;

namespace {
using Clock = std::chrono::steady_clock;

template <int bytes> struct Register {
  typedef float Type __attribute__((vector_size(bytes)));
};

/// Accumulators that are independent of each other: more than the latency of a multiply-add times the units of a core.
constexpr int kChains = 10;
constexpr int kRoundsTogether = 4096; ///< rounds between two looks at the clock, a few microseconds

/// The factor, which the compiler must not know, or it would compute the results itself.
volatile float readFactor = 0.9999f;

/// Multiplies and adds in all chains, kRoundsTogether times.
template <int bytes, bool fused> inline __attribute__((always_inline)) void multiplyAdds() {
  using Vector = typename Register<bytes>::Type;
  Vector accumulators[kChains];
  Vector factor = Vector{} + readFactor, addend = Vector{} + 1e-4f;
  for (int chain = 0; chain < kChains; ++chain)
    accumulators[chain] = Vector{} + static_cast<float>(chain);
  for (int round = 0; round < kRoundsTogether; ++round)
#pragma clang loop unroll(full)
    for (int chain = 0; chain < kChains; ++chain)
      if constexpr (fused)
        accumulators[chain] = __builtin_elementwise_fma(accumulators[chain], factor, addend);
      else
        accumulators[chain] = accumulators[chain] * factor + addend;
  asm volatile("" : : "r"(accumulators) : "memory"); // they are results
}

template <int bytes> inline __attribute__((always_inline)) void copy(const char *from, char *to, uint64_t size) {
  using Vector = typename Register<bytes>::Type;
  auto *source = reinterpret_cast<const Vector *>(from);
  auto *destination = reinterpret_cast<Vector *>(to);
  constexpr int kTogether = 4;
  for (uint64_t i = 0; i < size / sizeof(Vector); i += kTogether) {
#pragma clang loop unroll(full)
    for (int own = 0; own < kTogether; ++own)
      destination[i + own] = source[i + own];
    asm volatile("" : : : "memory"); // or the loop would become a call of memcpy
  }
}

/// Reads `size` bytes and stores what they are combined to.
template <int bytes> inline __attribute__((always_inline)) void read(const char *from, char *to, uint64_t size) {
  typedef int Vector __attribute__((vector_size(bytes)));
  constexpr int kTogether = 8; // more than the latency of a combination times the loads in a cycle
  auto *source = reinterpret_cast<const Vector *>(from);
  Vector combined[kTogether] = {};
  for (uint64_t i = 0; i < size / sizeof(Vector); i += kTogether)
#pragma clang loop unroll(full)
    for (int own = 0; own < kTogether; ++own)
      combined[own] ^= source[i + own];
  for (int own = 1; own < kTogether; ++own)
    combined[0] ^= combined[own];
  *reinterpret_cast<Vector *>(to) = combined[0];
}

/// Moves data within `size` bytes from the first address, and perhaps to the second.
using Move = void (*)(const char *from, char *to, uint64_t size);

/// The loops for one width of registers; null where this processor has none.
struct Loops {
  void (*multiplyAdds)() = nullptr;
  Move copy = nullptr, read = nullptr;
};

#if defined(__x86_64__)
void multiplyAddsSse() { multiplyAdds<16, false>(); }
__attribute__((target("avx2,fma"))) void multiplyAddsAvx() { multiplyAdds<32, true>(); }
__attribute__((target("avx512f"))) void multiplyAddsAvx512() { multiplyAdds<64, true>(); }
void copySse(const char *from, char *to, uint64_t size) { copy<16>(from, to, size); }
__attribute__((target("avx2"))) void copyAvx(const char *from, char *to, uint64_t size) { copy<32>(from, to, size); }
__attribute__((target("avx512f"))) void copyAvx512(const char *from, char *to, uint64_t size) {
  copy<64>(from, to, size);
}

void readSse(const char *from, char *to, uint64_t size) { read<16>(from, to, size); }
__attribute__((target("avx2"))) void readAvx(const char *from, char *to, uint64_t size) { read<32>(from, to, size); }
__attribute__((target("avx512f"))) void readAvx512(const char *from, char *to, uint64_t size) {
  read<64>(from, to, size);
}

Loops loopsFor(int64_t vectorBytes) {
  __builtin_cpu_init();
  if (vectorBytes == 16)
    return {multiplyAddsSse, copySse, readSse};
  if (vectorBytes == 32 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {multiplyAddsAvx, copyAvx, readAvx};
  if (vectorBytes == 64 && __builtin_cpu_supports("avx512f"))
    return {multiplyAddsAvx512, copyAvx512, readAvx512};
  return {};
}
#else
Loops loopsFor(int64_t) { return {}; }
#endif

/// Runs `round` in all threads until a common deadline. Returns the rounds per second of all threads together. A thread
/// first runs one round that does not count, which fills its caches.
double roundsPerSecond(unsigned threads, double seconds, const std::function<void(unsigned thread)> &round) {
  std::atomic<unsigned> ready{0};
  std::atomic<bool> go{false};
  std::vector<double> rates(threads);
  auto run = [&](unsigned thread) {
    round(thread);
    ++ready;
    while (!go)
      std::this_thread::yield();
    uint64_t rounds = 0;
    Clock::time_point begun = Clock::now();
    std::chrono::duration<double> passed{0};
    do {
      round(thread);
      ++rounds;
      passed = Clock::now() - begun;
    } while (passed.count() < seconds);
    rates[thread] = static_cast<double>(rounds) / passed.count();
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread)
    others.emplace_back(run, thread);
  std::thread starter([&] {
    while (ready < threads)
      std::this_thread::yield();
    go = true;
  });
  run(0);
  starter.join();
  double sum = rates[0];
  for (unsigned thread = 1; thread < threads; ++thread) {
    others[thread - 1].join();
    sum += rates[thread];
  }
  return sum;
}

/// Returns the bytes per second that all threads together move, each from `bytes` bytes of its own, in whole pages, to
/// as many behind these.
double bytesPerSecond(Move move, uint64_t bytes, unsigned threads, double seconds) {
  constexpr uint64_t kPage = 4096, kLeastTogether = 1 << 20;
  uint64_t size = std::max<uint64_t>(bytes / kPage, 1) * kPage;
  if (!move || threads == 0)
    return 0;
  std::vector<std::unique_ptr<char, void (*)(void *)>> memory;
  for (unsigned thread = 0; thread < threads; ++thread) {
    memory.emplace_back(static_cast<char *>(std::aligned_alloc(kPage, 2 * size)), std::free);
    if (!memory.back())
      return 0;
    std::memset(memory.back().get(), 1, 2 * size);
  }
  uint64_t times = std::max<uint64_t>(1, kLeastTogether / size); // between two looks at the clock
  double rounds = roundsPerSecond(threads, seconds, [&](unsigned thread) {
    for (uint64_t i = 0; i < times; ++i)
      move(memory[thread].get(), memory[thread].get() + size, size);
  });
  return static_cast<double>(size * times) * rounds;
}
} // namespace

double tilewright::measureMultiplyAdds(int64_t vectorBytes, unsigned threads, double seconds) {
  Loops loops = loopsFor(vectorBytes);
  if (!loops.multiplyAdds || threads == 0)
    return 0;
  double lanes = static_cast<double>(vectorBytes) / sizeof(float);
  return 2 * lanes * kChains * kRoundsTogether *
         roundsPerSecond(threads, seconds, [&](unsigned) { loops.multiplyAdds(); });
}

double tilewright::measureCopies(int64_t vectorBytes, uint64_t bytes, unsigned threads, double seconds) {
  return 2 * bytesPerSecond(loopsFor(vectorBytes).copy, bytes / 2, threads, seconds);
}

double tilewright::measureReads(int64_t vectorBytes, uint64_t bytes, unsigned threads, double seconds) {
  return bytesPerSecond(loopsFor(vectorBytes).read, bytes, threads, seconds);
}
