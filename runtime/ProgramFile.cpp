#include "runtime/ProgramFile.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tilewright::runtime;

namespace {
constexpr char kMagic[8] = {'t', 'i', 'l', 'e', 'w', 'r', 't', 1}; ///< the last byte is the version of the format
constexpr size_t kHeaderBytes = 32;

std::runtime_error damaged(const char *what) {
  return std::runtime_error(std::string("it is damaged or truncated: ") + what);
}

/// Reads numbers, texts and lists one after another. Throws instead of reading behind the end.
class Reader {
public:
  Reader(const char *data, size_t begin, size_t end) : data(data), position(begin), end(end) {}

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int64_t i64() { return number<int64_t>(); }
  std::string text() {
    uint32_t length = u32();
    return std::string(take(length), length);
  }
  /// Reads a list whose elements `read` returns.
  template <typename Read>
  auto list(Read read) -> std::vector<decltype(read())> {
    std::vector<decltype(read())> made;
    for (uint32_t left = u32(); left > 0; --left)
      made.push_back(read());
    return made;
  }

private:
  const char *take(size_t bytes) {
    if (bytes > end - position)
      throw damaged("the description ends too early");
    const char *taken = data + position;
    position += bytes;
    return taken;
  }

  const char *data;
  size_t position, end;
};

/// The checksum of zlib and of Ethernet.
uint32_t crc32(const char *data, size_t bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit)
        value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
      made[byte] = value;
    }
    return made;
  }();
  uint32_t sum = ~0u;
  for (size_t i = 0; i < bytes; ++i)
    sum = table[(sum ^ static_cast<unsigned char>(data[i])) & 255] ^ (sum >> 8);
  return ~sum;
}

TensorDescription readTensor(Reader &reader) {
  TensorDescription made;
  made.name = reader.text();
  made.dtype = reader.text();
  made.shape = reader.list([&] { return reader.i64(); });
  made.bytes = reader.u64();
  made.alignment = reader.u32();
  if (made.alignment == 0)
    throw damaged("a tensor without alignment");
  return made;
}

Launch readLaunch(Reader &reader) {
  Launch made;
  made.kernel = reader.text();
  made.workgroups = reader.u32();
  made.slots = reader.list([&] { return reader.u32(); });
  made.bytes = reader.u64();
  return made;
}

Loop readLoop(Reader &reader) {
  Loop made;
  made.begin = reader.u32();
  made.end = reader.u32();
  made.steps = reader.u32();
  made.slots = reader.list([&] {
    MovingSlot slot;
    slot.slot = reader.u32();
    slot.first = reader.u32();
    slot.even = reader.u32();
    slot.odd = reader.u32();
    slot.firstOffset = reader.i64();
    slot.offset = reader.i64();
    slot.stride = reader.i64();
    return slot;
  });
  return made;
}
} // namespace

ProgramFile::ProgramFile(const std::string &path) {
  map(path);
  try {
    readHeader();
    readDescription();
  } catch (...) {
    munmap(const_cast<char *>(data), bytes);
    throw;
  }
}

ProgramFile::~ProgramFile() { munmap(const_cast<char *>(data), bytes); }

void ProgramFile::map(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    int reason = errno;
    if (descriptor >= 0)
      close(descriptor);
    throw std::runtime_error(std::string("it cannot be read: ") + std::strerror(reason));
  }
  bytes = static_cast<size_t>(status.st_size);
  void *mapped = bytes < kHeaderBytes ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED)
    throw std::runtime_error("it is no program that `tilewright export` wrote");
  data = static_cast<const char *>(mapped);
}

void ProgramFile::readHeader() {
  if (std::memcmp(data, kMagic, sizeof kMagic - 1) != 0)
    throw std::runtime_error("it is no program that `tilewright export` wrote");
  if (data[sizeof kMagic - 1] != kMagic[sizeof kMagic - 1])
    throw std::runtime_error("another version of Tilewright wrote it; export the model again");
  Reader reader(data, sizeof kMagic, kHeaderBytes);
  uint32_t checksum = reader.u32();
  reader.u32();
  described = reader.u64();
  if (reader.u64() != bytes || described < kHeaderBytes || described > bytes)
    throw damaged("its size is wrong");
  if (crc32(data + kHeaderBytes, described - kHeaderBytes) != checksum)
    throw damaged("its checksum is wrong");
}

void ProgramFile::readDescription() {
  Reader reader(data, kHeaderBytes, described);
  target = reader.text();
  features = reader.list([&] { return reader.text(); });
  processorBits = reader.list([&] {
    std::string feature = reader.text();
    return std::make_pair(feature, reader.u32());
  });
  inputs = reader.list([&] { return readTensor(reader); });
  outputs = reader.list([&] { return readTensor(reader); });
  for (const TensorDescription &input : inputs)
    program.inputBytes.push_back(input.bytes);
  for (const TensorDescription &output : outputs)
    program.outputBytes.push_back(output.bytes);
  program.launches = reader.list([&] { return readLaunch(reader); });
  program.loops = reader.list([&] { return readLoop(reader); });
  program.constants = reader.list([&] {
    uint64_t offset = reader.u64(), size = reader.u64();
    if (offset % kTensorAlignment != 0 || offset > bytes || size > bytes - offset)
      throw damaged("a weight lies outside the file");
    return reinterpret_cast<uintptr_t>(data + offset);
  });
  program.ownBytes = reader.u64();
  program.offsets = reader.list([&] {
    size_t offset = reader.u64();
    if (offset > program.ownBytes)
      throw damaged("a tensor lies outside the program's memory");
    return offset;
  });
  program.localBytes = reader.u64();
  program.threads = reader.u32();
  codeBytes = reader.u64();
  if (program.threads == 0 || codeBytes > described - kHeaderBytes)
    throw damaged("it has no threads, or no code");
  code = data + described - codeBytes;
}
