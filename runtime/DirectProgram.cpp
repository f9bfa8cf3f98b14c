#include "runtime/DirectProgram.h"

#include <chrono>
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
      local(alignedSize(described.localBytes) * described.threads),
      taken(new std::atomic<uint32_t>[described.launches.size()]) {
  environment.processor[0] = described.processor;
  size_t outside = described.inputBytes.size() + described.outputBytes.size();
  size_t fixed = outside + described.constants.size();
  uses.resize(outside);
  steps.reserve(described.launches.size());
  for (const Launch &launch : described.launches) {
    Step &step = steps.emplace_back();
    step.entry = library->find(launch.kernel);
    if (!step.entry)
      throw std::runtime_error("the module has no kernel " + launch.kernel);
    step.bindings.resize(launch.slots.size());
    step.state.countX = launch.workgroups;
    step.state.bindingCount = static_cast<uint8_t>(launch.slots.size());
    step.state.bindings = step.bindings.data();
    for (size_t binding = 0; binding < launch.slots.size(); ++binding) {
      size_t slot = launch.slots[binding];
      if (slot < outside)
        uses[slot].push_back(&step.bindings[binding]);
      else if (slot < fixed)
        step.bindings[binding] = reinterpret_cast<void *>(described.constants[slot - outside]);
      else if (slot - fixed < described.offsets.size())
        step.bindings[binding] = own.data() + described.offsets[slot - fixed];
      else
        throw std::runtime_error("kernel " + launch.kernel + " uses tensor " + std::to_string(slot) +
                                 ", which does not exist");
    }
  }
}

void DirectProgram::place(uint32_t slot, void *address) {
  for (void **binding : uses[slot])
    *binding = address;
}

void DirectProgram::run(const std::vector<const void *> &inputs, const std::vector<void *> &outputs, Span *spans) {
  std::lock_guard<std::mutex> lock(turn);
  for (size_t input = 0; input < inputs.size(); ++input)
    place(input, const_cast<void *>(inputs[input])); // kernels only read inputs
  for (size_t output = 0; output < outputs.size(); ++output)
    place(inputs.size() + output, outputs[output]);
  for (size_t step = 0; step < steps.size(); ++step)
    taken[step].store(0, std::memory_order_relaxed);
  failed = nullptr;
  std::shared_ptr<ThreadTeam> team = ThreadTeam::shared(described.threads);
  team->run([&](unsigned thread) { work(thread, *team, spans); });
  if (const Launch *launch = failed)
    throw std::runtime_error("kernel " + launch->kernel + " failed");
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void DirectProgram::work(unsigned thread, ThreadTeam &team, Span *spans) {
  WorkgroupState workgroup;
  workgroup.processor = thread;
  workgroup.localMemory = local.data() + thread * alignedSize(described.localBytes);
  workgroup.localBytes = static_cast<uint32_t>(described.localBytes);
  for (size_t number = 0; number < steps.size(); ++number) {
    const Step &step = steps[number];
    Span *span = spans ? &spans[number * described.threads + thread] : nullptr;
    if (span)
      span->start = now();
    for (uint32_t next; (next = taken[number]++) < step.state.countX;) {
      workgroup.x = next;
      if (step.entry(&environment, &step.state, &workgroup) != 0)
        failed = &described.launches[number];
    }
    if (span)
      span->end = now();
    if (number + 1 < steps.size())
      team.meet();
  }
}
