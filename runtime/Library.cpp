#include "runtime/Library.h"

#include <dlfcn.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

using namespace tilewright::runtime;

namespace {
constexpr uint32_t kNewestVersion = 6; ///< of the interface, in IREE 3.13

/// End of the names by which IREE's libraries export our kernels (passes/iree/ExportName.h). A library of nothing but
/// our object has the kernels themselves.
constexpr char kShimSuffix[] = "_dispatch";

struct Header {
  uint32_t version;
  const char *name;
  uint32_t features, sanitizer;
};

struct Table {
  uint32_t count;
  const void *const *entries;
};

/// Exported functions, and their names in the same order.
struct Exports {
  uint32_t count;
  const KernelEntry *entries;
  const void *attributes, *parameters, *occupancy;
  const char *const *names;
};

struct LibraryV0 {
  const Header *header;
  Table imports;
  Exports exports;
};

using Query = const LibraryV0 *(*)(uint32_t newest, const Environment *environment);

} // namespace

/// A file in memory, which has a path as long as it is open.
class Library::MemoryFile {
public:
  MemoryFile(const void *data, size_t bytes) : descriptor(memfd_create("tilewright-kernels", MFD_CLOEXEC)) {
    const char *next = static_cast<const char *>(data);
    while (descriptor >= 0 && bytes > 0) {
      ssize_t written = write(descriptor, next, bytes);
      if (written <= 0)
        throw std::runtime_error("there is no memory for the code of the kernels");
      next += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

private:
  int descriptor;
};

Library::Library(const void *elf, size_t bytes) : file(std::make_unique<MemoryFile>(elf, bytes)) {
  handle = dlopen(file->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error(std::string("the code of the kernels cannot be loaded: ") + dlerror());
  auto query = reinterpret_cast<Query>(dlsym(handle, "iree_hal_executable_library_query"));
  isOfIree = query != nullptr;
  Environment environment;
  const LibraryV0 *library = query ? query(kNewestVersion, &environment) : nullptr;
  if (!library || library->imports.count > 0)
    return; // of another version, or with functions of IREE: it has no kernels for this runtime
  for (uint32_t i = 0; library->exports.names && i < library->exports.count; ++i)
    kernels[library->exports.names[i]] = library->exports.entries[i];
}

Library::~Library() {
  if (handle)
    dlclose(handle);
}

KernelEntry Library::find(const std::string &name) const {
  auto found = kernels.find(name);
  if (found != kernels.end())
    return found->second;
  if (isOfIree || !handle)
    return nullptr;
  std::string entry = name.substr(0, name.rfind(kShimSuffix));
  return reinterpret_cast<KernelEntry>(dlsym(handle, entry.c_str()));
}
