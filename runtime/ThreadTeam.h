// Threads that run a piece of work together and meet at barriers.
#ifndef TILEWRIGHT_RUNTIME_THREADTEAM_H
#define TILEWRIGHT_RUNTIME_THREADTEAM_H

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

namespace tilewright::runtime {

/// A count that threads wait for. A thread first waits in a loop, since what it waits for often follows at once, and
/// then sleeps, so that a core that has other work gets to it.
class AwaitedCount {
public:
  uint32_t now() const { return value; }
  void advance();
  /// Waits until the count is another one than `seen`.
  void waitBeyond(uint32_t seen);

private:
  std::atomic<uint32_t> value{0}, sleepers{0};
};

class ThreadTeam {
public:
  /// A team of `size` threads, of which the caller of `run` is one.
  explicit ThreadTeam(unsigned size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  /// Returns the team of this size that programs of this process share. After a fork it is a new one.
  static std::shared_ptr<ThreadTeam> shared(unsigned size);

  /// Calls `work` with 0 on the calling thread, and with a number of its own on every other thread of the team that
  /// arrives before that call returns. Returns when all these calls have. Calls of `run` take turns.
  void run(const std::function<void(unsigned)> &work);

  /// Waits until all threads of the team have called it, also those that arrive late. Only `work` may call it.
  void meet();

  unsigned size() const { return static_cast<unsigned>(threads.size()) + 1; }

private:
  void serve(unsigned number);
  bool join(uint32_t &last);
  void leave();
  void keepOff(int core);
  void close();

  std::mutex turn;                   ///< held during `run`
  AwaitedCount rounds;               ///< calls of `run`
  AwaitedCount meetings;             ///< barriers that all threads have reached
  AwaitedCount departures;           ///< calls of `work` on other threads that have returned
  std::atomic<uint64_t> helpers{0};  ///< number of the round, and of other threads that are in `work`
  std::atomic<unsigned> arrived{0};
  cpu_set_t allowed, used;           ///< cores that the other threads may use, and those that they were given
  int avoided = -1;                  ///< core of the last caller
  std::atomic<bool> isOver{false};
  const std::function<void(unsigned)> *work = nullptr;
  std::vector<std::thread> threads;
};

} // namespace tilewright::runtime

#endif
