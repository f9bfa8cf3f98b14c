#include "runtime/DirectProgram.h"

#include <algorithm>
#include <cstring>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdexcept>

using namespace tilewright::runtime;

DirectProgram::TrimMemory::~TrimMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

DirectProgram::DirectProgram(std::shared_ptr<Library> given, ProgramDescription description)
    : library(std::move(given)), described(std::move(description)), own(described.ownBytes),
      local(alignedSize(described.localBytes) * described.threads), addresses(described.slotAddresses(own.data())),
      units(std::make_unique<SharedUnits>(described.launches.size(), described.threads)),
      done(new std::atomic<uint32_t>[described.launches.size()]) {
  environment.processor[0] = described.processor;
  for (const Launch &launch : described.launches) {
    entries.push_back(launch.kernel.empty() ? nullptr : library->find(launch.kernel));
    if (!launch.kernel.empty() && !entries.back())
      throw std::runtime_error("the module has no kernel " + launch.kernel);
  }
}

/// Units that threads share: workgroups, or a copy as a whole.
static uint32_t unitsOf(const Launch &launch) {
  return launch.kernel.empty() ? 1 : std::max<uint32_t>(launch.workgroups, 1);
}

/// The work of one thread in a call. Launches follow each other when all units of one have ended, so that nothing waits
/// for a thread that comes late. In programs with loops all threads take part and meet after each launch, because a
/// thread has workgroups of its own in loops.
class DirectProgram::Worker {
public:
  Worker(DirectProgram &program, unsigned thread, ThreadTeam &team, uint32_t before, Span *spans)
      : program(program), described(program.described), team(team), spans(spans), thread(thread), before(before),
        meets(!program.described.loops.empty()), addresses(program.addresses) {
    workgroup.processor = thread;
    workgroup.localMemory =
        static_cast<char *>(program.local.data()) + thread * alignedSize(described.localBytes);
    workgroup.localBytes = static_cast<uint32_t>(described.localBytes);
  }

  void run() {
    LaunchOrder(described, addresses).run([&](uint32_t number, unsigned depth) { launch(number, depth > 0); });
    if (meets)
      team.meet();
  }

private:
  void launch(uint32_t number, bool isInLoop) {
    if (meets && hasBegun)
      team.meet();
    hasBegun = true;
    if (!spans) {
      share(number, isInLoop);
    } else {
      double start = now();
      if (share(number, isInLoop))
        spans[number * described.threads + thread] = {start, now()};
    }
    if (!meets)
      waitFor(number);
  }

  /// Runs this thread's part of a launch. Returns false if there was none.
  bool share(uint32_t number, bool isInLoop) {
    const Launch &launch = described.launches[number];
    bindings.clear();
    for (uint32_t slot : launch.slots)
      bindings.push_back(addresses[slot]);
    uint32_t units = unitsOf(launch), ended = 0;
    if (isInLoop) {
      // A thread has the same workgroups in every step, so it finds their weights in its own caches.
      uint64_t count = units, threads = described.threads;
      for (uint64_t unit = count * thread / threads; unit < count * (thread + 1) / threads; ++unit, ++ended)
        run(number, launch, static_cast<uint32_t>(unit));
      return ended > 0;
    }
    for (; std::optional<uint32_t> unit = program.units->take(number, thread); ++ended)
      run(number, launch, *unit);
    if (ended > 0 && program.done[number].fetch_add(ended) + ended == units)
      program.completed.advance();
    return ended > 0;
  }

  void run(uint32_t number, const Launch &launch, uint32_t unit) {
    if (launch.kernel.empty()) {
      if (bindings[0] != bindings[1])
        std::memmove(bindings[1], bindings[0], launch.bytes);
    } else if (unit < launch.workgroups) {
      DispatchState state;
      state.countX = launch.workgroups;
      state.bindingCount = static_cast<uint8_t>(bindings.size());
      state.bindings = bindings.data();
      workgroup.x = unit;
      if (program.entries[number](&program.environment, &state, &workgroup) != 0)
        program.failed = &launch;
    }
  }

  /// Waits until all units of a launch have ended. Launches end in their order.
  void waitFor(uint32_t number) {
    for (uint32_t ended; (ended = program.completed.now()) - before <= number;)
      program.completed.waitBeyond(ended);
  }

  DirectProgram &program;
  const ProgramDescription &described;
  ThreadTeam &team;
  Span *spans;
  unsigned thread;
  uint32_t before; ///< launches that had ended before this call
  bool meets, hasBegun = false;
  std::vector<char *> addresses;
  std::vector<void *> bindings;
  WorkgroupState workgroup;
};

void DirectProgram::run(const std::vector<const void *> &inputs, const std::vector<void *> &outputs, Span *spans) {
  std::lock_guard<std::mutex> lock(turn);
  for (size_t input = 0; input < inputs.size(); ++input)
    addresses[input] = static_cast<char *>(const_cast<void *>(inputs[input])); // kernels only read inputs
  for (size_t output = 0; output < outputs.size(); ++output)
    addresses[inputs.size() + output] = static_cast<char *>(outputs[output]);
  for (uint32_t launch = 0; launch < described.launches.size(); ++launch) {
    units->share(launch, unitsOf(described.launches[launch]));
    done[launch] = 0;
  }
  failed = nullptr;
  std::shared_ptr<ThreadTeam> team = ThreadTeam::shared(described.threads);
  uint32_t before = completed.now();
  team->run([&](unsigned thread) { Worker(*this, thread, *team, before, spans).run(); });
  if (const Launch *launch = failed)
    throw std::runtime_error("kernel " + launch->kernel + " failed");
}
