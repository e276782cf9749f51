#include "isa/isa.hpp"

#include <stdexcept>
#include <string>

namespace perfemu {

std::unique_ptr<Isa> Isa::make(std::string_view name, std::span<const std::string> features) {
    if (name == "aarch64") return make_aarch64(features);
    if (!features.empty()) throw std::invalid_argument("features are AArch64's");
    if (name == "x86_64") return make_x86_64();
    throw std::invalid_argument("isa " + std::string(name) + " is not one of aarch64, x86_64");
}

}  // namespace perfemu
