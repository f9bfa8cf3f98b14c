// Keeps a list of running passes over all threads, and writes a note whenever it changes.
#include "core/PassNotes.h"
#include "core/Core.h"
#include "passes/support/Locations.h"
#include "passes/support/WorkNotes.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace mlir;
using namespace tilewright;

namespace {
/// A range of a file that holds a text terminated by NUL.
struct Record {
  int file = -1;
  int64_t offset = 0;
  size_t bytes = 0;

  void write(std::string text) const {
    text.resize(bytes - 1);
    text.push_back('\0');
    // Failures to write are ignored, because notes only improve a message.
    (void)!pwrite(file, text.data(), text.size(), offset);
  }
};

Record record;

struct Running {
  std::thread::id thread;
  Pass *pass;
  std::string said, work; ///< description of the pass, and of the op that it is processing
};

std::mutex mutex;
std::vector<Running> running; ///< running passes in the order in which they started

/// Writes a note. Passes run on several threads; the note names the innermost pass that started first, because that one
/// is the most likely to hang.
void note() {
  for (auto it = running.begin(); it != running.end(); ++it)
    if (std::none_of(std::next(it), running.end(), [&](const Running &r) { return r.thread == it->thread; }))
      return record.write(it->said + it->work);
  record.write("");
}

std::string nameOf(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto symbol = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
    name += " '" + symbol.getValue().str() + "'";
  return name;
}

/// Returns the innermost running pass of this thread, or rend() if there is none.
std::vector<Running>::reverse_iterator innermost() {
  return std::find_if(running.rbegin(), running.rend(),
                      [](const Running &each) { return each.thread == std::this_thread::get_id(); });
}

void noteOp(Operation *op, KernelNumber kernel) {
  std::string place = describe(op->getLoc());
  std::lock_guard<std::mutex> lock(mutex);
  auto it = innermost();
  if (it == running.rend())
    return;
  it->work = ", at " + nameOf(op) + (place.empty() ? "" : " (" + place + ")");
  if (kernel.count)
    it->work += ", kernel " + std::to_string(kernel.number) + " of " + std::to_string(kernel.count);
  note();
}

class PassNotes : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty()) // internal pass of a pass manager
      return;
    std::string said = "pass '" + pass->getArgument().str() + "' on " + nameOf(op);
    std::lock_guard<std::mutex> lock(mutex);
    running.push_back({std::this_thread::get_id(), pass, std::move(said), ""});
    note();
  }
  void runAfterPass(Pass *pass, Operation *) override { end(pass); }
  void runAfterPassFailed(Pass *pass, Operation *) override { end(pass); }

private:
  void end(Pass *pass) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = innermost();
    if (it == running.rend() || it->pass != pass)
      return;
    running.erase(std::next(it).base());
    note();
  }
};
} // namespace

// No lock is needed: a worker answers one request at a time, and calls this before it runs the passes of a request.
void tilewright::notePassesIn(int file, int64_t offset, size_t bytes) {
  record = {file, offset, bytes};
  workHook = noteOp;
}

std::unique_ptr<PassInstrumentation> tilewright::createPassNotes() {
  return record.file < 0 ? nullptr : std::make_unique<PassNotes>();
}
