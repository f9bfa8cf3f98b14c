#include "runtime/ThreadTeam.h"

#include <chrono>
#include <climits>
#include <linux/futex.h>
#include <map>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tilewright::runtime;

/// Time after which a thread that waits sleeps. Waking one takes some 5 to 50 us, so a wait of that order costs less
/// than it saves.
static constexpr std::chrono::microseconds kLongestSpin(100);
/// Tests of a count between two looks at the clock.
static constexpr unsigned kTests = 64;
/// Most threads that are kept off the caller's core, which takes a system call of about 2 us for each when the caller
/// changes cores. This is a choice: in a larger team, one thread that comes late is a smaller part.
static constexpr size_t kMostKeptOff = 15;
/// The parts of `helpers`: the round, whether more threads may join it, and how many are in it.
static constexpr unsigned kRoundShift = 32;
static constexpr uint64_t kOpen = 1u << 31, kCount = kOpen - 1;

static void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

static void callFutex(std::atomic<uint32_t> &word, int operation, uint32_t argument) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), operation | FUTEX_PRIVATE_FLAG, argument, nullptr, nullptr, 0);
}

void AwaitedCount::advance() {
  ++value;
  if (sleepers > 0)
    callFutex(value, FUTEX_WAKE, INT_MAX);
}

void AwaitedCount::waitBeyond(uint32_t seen) {
  auto start = std::chrono::steady_clock::now();
  for (unsigned test = 0; value == seen; ++test) {
    relax();
    if (test % kTests == kTests - 1 && std::chrono::steady_clock::now() - start > kLongestSpin)
      break;
  }
  ++sleepers; // before the kernel compares the count, so that the thread that advances it wakes this one
  while (value == seen)
    callFutex(value, FUTEX_WAIT, seen);
  --sleepers;
}

namespace {
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
  CPU_ZERO(&used);
  for (unsigned number = 1; number < size; ++number)
    threads.emplace_back([this, number] { serve(number); });
}

ThreadTeam::~ThreadTeam() {
  isOver = true;
  rounds.advance();
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
  keepOff(sched_getcpu());
  helpers = (uint64_t(rounds.now() + 1) << kRoundShift) | kOpen;
  rounds.advance();
  given(0);
  close();
}

/// Keeps the other threads off the caller's core, which computes during the whole call, if there are enough others. A
/// virtual machine's scheduler takes a core that sleeps for one that its host has taken away, and wakes a thread beside
/// the caller instead; there it waits for milliseconds.
void ThreadTeam::keepOff(int core) {
  if (core == avoided || core < 0 || threads.size() > kMostKeptOff)
    return;
  avoided = core;
  cpu_set_t now;
  if (pthread_getaffinity_np(threads.front().native_handle(), sizeof now, &now) != 0)
    return;
  if (!CPU_EQUAL(&now, &used)) // someone else has set it
    allowed = now;
  used = allowed;
  CPU_CLR(core, &used);
  if (size_t(CPU_COUNT(&used)) < threads.size())
    used = allowed;
  for (std::thread &thread : threads)
    pthread_setaffinity_np(thread.native_handle(), sizeof used, &used);
}

void ThreadTeam::meet() {
  if (threads.empty())
    return;
  uint32_t meeting = meetings.now();
  if (++arrived == size()) {
    arrived = 0;
    meetings.advance();
  } else {
    meetings.waitBeyond(meeting);
  }
}

/// Lets no more threads join, and waits for those that have.
void ThreadTeam::close() {
  helpers &= ~kOpen;
  while (true) {
    uint32_t seen = departures.now();
    if ((helpers & kCount) == 0)
      return;
    departures.waitBeyond(seen);
  }
}

/// Joins the current round, unless it is `last`, which the thread joined before.
bool ThreadTeam::join(uint32_t &last) {
  uint64_t now = helpers;
  while ((now & kOpen) && uint32_t(now >> kRoundShift) != last)
    if (helpers.compare_exchange_weak(now, now + 1)) {
      last = uint32_t(now >> kRoundShift);
      return true;
    }
  return false;
}

void ThreadTeam::leave() {
  --helpers;
  departures.advance();
}

void ThreadTeam::serve(unsigned number) {
  SubnormalsAreZero mode;
  for (uint32_t served = 0, joined = 0;;) {
    rounds.waitBeyond(served);
    if (isOver)
      return;
    served = rounds.now();
    if (join(joined)) {
      (*work)(number);
      leave();
    }
  }
}
