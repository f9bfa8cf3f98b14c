// Switches between stacks: in assembly on x86-64, and with ucontext elsewhere.
#include "tools/simulator/Fiber.h"

#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

using namespace tilewright::simulator;

#ifdef __x86_64__
// Saves the callee-saved registers of the System V ABI, swaps the stack pointers and returns on the other stack.
asm(R"(
.text
.local tilewright_switch_stack
.type tilewright_switch_stack, @function
tilewright_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tilewright_switch_stack, .-tilewright_switch_stack
)");
extern "C" void tilewright_switch_stack(void **saved, void *next);

void tilewright::simulator::switchContext(Context &from, Context &to) {
  tilewright_switch_stack(&from.state, to.state);
}

/// Prepares a stack as the switch leaves it: six registers below a return address, aligned as on entry to a function.
static Context startOn(char *top, size_t, void (*entry)()) {
  void **pointer = reinterpret_cast<void **>(top) - 2; // owner and padding
  *--pointer = nullptr;                                // return address of `entry`, which never returns
  *--pointer = reinterpret_cast<void *>(entry);
  for (int index = 0; index < 6; ++index)
    *--pointer = nullptr;
  return {pointer};
}
#else
void tilewright::simulator::switchContext(Context &from, Context &to) {
  ucontext_t here;
  from.state = &here; // `here` is on the stack that we leave, so it stays alive
  swapcontext(&here, static_cast<ucontext_t *>(to.state));
}

static Context startOn(char *top, size_t bytes, void (*entry)()) {
  char *bottom = top - bytes;
  auto *context = reinterpret_cast<ucontext_t *>(bottom); // kept at the bottom of the stack
  getcontext(context);
  context->uc_stack.ss_sp = bottom + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t) - 16;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return {context};
}
#endif

Stacks::Stacks(size_t count) : bytes((count + 1) * stackBytes) {
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return;
  memory = static_cast<char *>(mapped);
  uintptr_t aligned = (reinterpret_cast<uintptr_t>(memory) + stackBytes - 1) & ~uintptr_t(stackBytes - 1);
  base = reinterpret_cast<char *>(aligned);
}

Stacks::~Stacks() {
  if (memory)
    munmap(memory, bytes);
}

Context Stacks::start(size_t index, void *owner, void (*entry)()) {
  char *top = base + (index + 1) * stackBytes;
  reinterpret_cast<void **>(top)[-1] = owner;
  return startOn(top, stackBytes, entry);
}
