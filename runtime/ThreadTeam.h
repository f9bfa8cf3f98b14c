// Threads that run a piece of work together and meet at barriers. They wait for work in a loop for a short time, since
// the next call of a program often follows at once, and then sleep.
#ifndef TILEWRIGHT_RUNTIME_THREADTEAM_H
#define TILEWRIGHT_RUNTIME_THREADTEAM_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tilewright::runtime {

class ThreadTeam {
public:
  /// A team of `size` threads, of which the caller of `run` is one.
  explicit ThreadTeam(unsigned size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  /// Returns the team of this size that programs of this process share. After a fork it is a new one.
  static std::shared_ptr<ThreadTeam> shared(unsigned size);

  /// Calls `work` with every number below the size, each on its own thread; the caller has number 0. Returns when all
  /// calls have. Calls of `run` take turns.
  void run(const std::function<void(unsigned)> &work);

  /// Waits until all threads of the team have called it. Only `work` may call it.
  void meet();

  unsigned size() const { return static_cast<unsigned>(threads.size()) + 1; }

private:
  void serve(unsigned number);

  std::mutex turn; ///< held during `run`
  std::mutex sleeping;
  std::condition_variable wake;
  std::atomic<uint64_t> round{0}; ///< numbers the calls of `run`
  std::atomic<unsigned> sleepers{0}, arrived{0};
  std::atomic<uint64_t> meetings{0}; ///< numbers the barriers
  std::atomic<bool> isOver{false};
  const std::function<void(unsigned)> *work = nullptr;
  std::vector<std::thread> threads;
};

} // namespace tilewright::runtime

#endif
