#include "core/PassNotes.h"
#include "core/Core.h"

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/STLExtras.h"

#include <mutex>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace tilewright;

namespace {
/// A record of a file: NUL ends its text.
struct Record {
  int file = -1;
  int64_t offset = 0;
  size_t bytes = 0;

  void write(std::string text) const {
    text.resize(bytes - 1);
    text.push_back('\0');
    // A note that cannot be written is missed by nobody but a message.
    (void)!pwrite(file, text.data(), text.size(), offset);
  }
};

Record record;

/// Passes run on several threads: the note is of the one whose innermost pass began first, since what hangs is that.
class PassNotes : public PassInstrumentation {
public:
  void runBeforePass(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty()) // a manager's own
      return;
    std::string text = "pass '" + pass->getArgument().str() + "' on " + op->getName().getStringRef().str();
    if (auto name = op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      text += " '" + name.getValue().str() + "'";
    std::lock_guard<std::mutex> lock(mutex);
    running.push_back({std::this_thread::get_id(), pass, std::move(text)});
    note();
  }
  void runAfterPass(Pass *pass, Operation *) override { end(pass); }
  void runAfterPassFailed(Pass *pass, Operation *) override { end(pass); }

private:
  struct Running {
    std::thread::id thread;
    Pass *pass;
    std::string text;
  };

  void end(Pass *pass) {
    std::lock_guard<std::mutex> lock(mutex);
    auto isIt = [&](const Running &each) { return each.thread == std::this_thread::get_id() && each.pass == pass; };
    auto it = llvm::find_if(llvm::reverse(running), isIt);
    if (it == running.rend())
      return;
    running.erase(std::next(it).base());
    note();
  }

  void note() const {
    for (auto it = running.begin(); it != running.end(); ++it)
      if (std::none_of(std::next(it), running.end(), [&](const Running &r) { return r.thread == it->thread; }))
        return record.write(it->text);
    record.write("");
  }

  std::mutex mutex;
  std::vector<Running> running; ///< in the order in which they began
};
} // namespace

void tilewright::notePassesIn(int file, int64_t offset, size_t bytes) { record = {file, offset, bytes}; }

std::unique_ptr<PassInstrumentation> tilewright::createPassNotes() {
  return record.file < 0 ? nullptr : std::make_unique<PassNotes>();
}
