#include "runtime/Processor.h"

#include <fstream>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

std::set<std::string> tilewright::runtime::processorFeatures() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0)
      continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    std::set<std::string> features;
    for (std::string word; words >> word;) {
      std::string plain;
      for (char c : word)
        if (c != '_' && c != '-' && c != '.')
          plain += c;
      features.insert(plain);
    }
    return features;
  }
  return {};
}

void tilewright::runtime::requestTileRegisters() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM of arch_prctl
  constexpr long kTileData = 18;              // XTILEDATA
  syscall(SYS_arch_prctl, kRequestPermission, kTileData);
#endif
}
