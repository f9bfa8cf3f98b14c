// Modules: parsing, printing and pipelines. Passes can run for a long time, so they run without the GIL.
#include "python/bindings/Modules.h"

#include <mutex>

using namespace tilewright;
using namespace tilewright::python;
using namespace nb::literals;

namespace {
std::mutex contextMutex;
/// The contexts of all modules, because a pass is given only the address of the one that it runs in.
std::unordered_map<void *, std::weak_ptr<NativeContext>> &contexts() {
  static auto *all = new std::unordered_map<void *, std::weak_ptr<NativeContext>>;
  return *all;
}

struct Module {
  std::shared_ptr<NativeModule> native;
  std::shared_ptr<Session> session;

  explicit Module(std::shared_ptr<NativeModule> native)
      : native(std::move(native)), session(std::make_shared<Session>(this->native->context())) {
    session->module = this->native;
    std::lock_guard<std::mutex> lock(contextMutex);
    for (auto it = contexts().begin(); it != contexts().end();)
      it = it->second.expired() ? contexts().erase(it) : std::next(it);
    contexts()[session->context->get().ptr] = session->context;
    session->root = this->native->operation();
  }
};

/// Keeps handles from being used while the core works on a module without the GIL.
class Use {
public:
  explicit Use(Module &module) : session(*module.session) {
    if (isInCall(session.context->get()))
      raiseError("a pass cannot use the module that it runs on; it changes the operation it is given");
    ++session.busy;
  }
  ~Use() { --session.busy; }

private:
  Session &session;
};

template <typename F> auto withoutGil(Module &module, F &&work) {
  Use use(module);
  nb::gil_scoped_release released;
  return work(*module.native);
}

std::tuple<std::optional<Module>, Diagnostics> parse(const std::string &text, const std::string &name) {
  nb::gil_scoped_release released;
  auto [native, diagnostics] = NativeModule::parse(text, name);
  if (!native)
    return {std::nullopt, std::move(diagnostics)};
  return {Module(native), std::move(diagnostics)};
}

nb::tuple run(Module &self, const std::string &pipeline, const std::string &dumpDirectory, bool verifyEach) {
  if (self.session->busy == 0) {
    if (self.session->hasChanged) { // passes take valid IR for granted
      auto [ok, diagnostics] = withoutGil(self, [](NativeModule &native) { return native.verify(); });
      if (!ok)
        return nb::make_tuple(false, std::move(diagnostics), nb::none());
    }
    self.session->hasChanged = false;
    self.session->forgetAll(self.session->root);
  }
  auto [ok, diagnostics] =
      withoutGil(self, [&](NativeModule &native) { return native.run(pipeline, dumpDirectory, verifyEach); });
  return nb::make_tuple(ok, std::move(diagnostics), takeFailure(self.session->context->get()));
}
} // namespace

Context python::contextOf(MlirContext context) {
  std::lock_guard<std::mutex> lock(contextMutex);
  return contexts()[context.ptr].lock();
}

void python::bindModules(nb::module_ &m) {
  nb::class_<Module>(m, "NativeModule")
      .def_static("parse", &parse, "text"_a, "name"_a,
                  nb::sig("def parse(text: str, name: str) -> tuple[NativeModule | None, list[Diagnostic]]"))
      .def(
          "text",
          [](Module &self, bool generic, bool localScope, bool debugInfo) {
            return withoutGil(self, [&](NativeModule &native) { return native.text(generic, localScope, debugInfo); });
          },
          "generic"_a, "local_scope"_a, "debug_info"_a)
      .def("run", &run, "pipeline"_a, "dump_directory"_a, "verify_each"_a,
           nb::sig("def run(self, pipeline: str, dump_directory: str, verify_each: bool) -> tuple[bool, "
                   "list[Diagnostic], tuple[str, BaseException] | None]"),
           "Returns True or False, the diagnostics, and the Python pass and exception that ended the pipeline.")
      .def("verify",
           [](Module &self) { return withoutGil(self, [](NativeModule &native) { return native.verify(); }); })
      .def("clone",
           [](Module &self) { return Module(withoutGil(self, [](NativeModule &native) { return native.clone(); })); })
      .def(
          "check_plan",
          [](Module &self, const std::string &json) {
            return withoutGil(self, [&](NativeModule &native) { return native.checkPlan(json); });
          },
          "json"_a)
      .def_prop_ro("operation",
                   [](Module &self) {
                     if (isInCall(self.session->context->get()))
                       raiseError("a pass cannot use the module that it runs on; it changes the operation it is given");
                     return wrap(*self.session, self.session->root);
                   })
      .def_prop_ro("context", [](Module &self) { return self.session; });
}
