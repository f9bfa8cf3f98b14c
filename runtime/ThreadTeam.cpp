#include "runtime/ThreadTeam.h"

#include <chrono>
#include <map>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tilewright::runtime;

namespace {
/// Time after which a thread without work sleeps. Waking one takes some 5 to 50 us, so a wait of that order costs less
/// than it saves.
constexpr std::chrono::microseconds kLongestSpin(50);
/// Tests of a condition between two looks at the clock, and before a thread that waits lets others run: with fewer
/// cores than threads, the thread that it waits for may be one of them.
constexpr unsigned kTests = 256;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

/// Waits until `isTrue` is; gives the core to others now and then.
template <typename Condition> void spinUntil(Condition isTrue) {
  for (unsigned test = 0; !isTrue(); ++test) {
    relax();
    if (test % kTests == kTests - 1)
      std::this_thread::yield();
  }
}

/// Sets how the thread treats subnormals as IREE's workers do, so that both give the same numbers.
class SubnormalsAreZero {
public:
#if defined(__x86_64__)
  SubnormalsAreZero() : before(_mm_getcsr()) { _mm_setcsr(before | kFlushToZero | kDenormalsAreZero); }
  ~SubnormalsAreZero() { _mm_setcsr(before); }

private:
  static constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;
  unsigned before;
#endif
};
} // namespace

ThreadTeam::ThreadTeam(unsigned size) {
  for (unsigned number = 1; number < size; ++number)
    threads.emplace_back([this, number] { serve(number); });
}

ThreadTeam::~ThreadTeam() {
  {
    std::lock_guard<std::mutex> lock(sleeping);
    isOver = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

std::shared_ptr<ThreadTeam> ThreadTeam::shared(unsigned size) {
  // Leaked: threads of a process that ends are not waited for, and those of a parent are not in a forked process.
  static auto &teams = *new std::map<std::pair<pid_t, unsigned>, std::shared_ptr<ThreadTeam>>();
  static std::mutex &lock = *new std::mutex();
  std::lock_guard<std::mutex> locked(lock);
  std::shared_ptr<ThreadTeam> &team = teams[{getpid(), size}];
  if (!team)
    team = std::make_shared<ThreadTeam>(size);
  return team;
}

void ThreadTeam::run(const std::function<void(unsigned)> &given) {
  std::lock_guard<std::mutex> lock(turn);
  SubnormalsAreZero mode;
  if (threads.empty()) {
    given(0);
    return;
  }
  work = &given;
  arrived = 0;
  ++round;
  if (sleepers > 0) {
    std::lock_guard<std::mutex> held(sleeping);
    wake.notify_all();
  }
  given(0);
  meet();
}

void ThreadTeam::meet() {
  if (threads.empty())
    return;
  uint64_t meeting = meetings;
  if (++arrived == size()) {
    arrived = 0;
    ++meetings;
    return;
  }
  spinUntil([&] { return meetings != meeting; });
}

void ThreadTeam::serve(unsigned number) {
  SubnormalsAreZero mode;
  uint64_t served = 0;
  while (true) {
    auto hasWork = [&] { return round != served || isOver; };
    auto start = std::chrono::steady_clock::now();
    for (unsigned test = 0; !hasWork(); ++test) {
      relax();
      if (test % kTests == kTests - 1 && std::chrono::steady_clock::now() - start > kLongestSpin)
        break;
    }
    if (!hasWork()) {
      std::unique_lock<std::mutex> lock(sleeping);
      ++sleepers;
      wake.wait(lock, hasWork);
      --sleepers;
    }
    if (isOver)
      return;
    ++served;
    (*work)(number);
    meet();
  }
}
