#include <stdexcept>
#include <string>

#include "timing/timed_op.hpp"

namespace perfemu {

std::unique_ptr<TimedDecoder> TimedDecoder::make(std::string_view isa) {
    if (isa == "aarch64") return make_timed_aarch64();
    if (isa == "x86_64") return make_timed_x86_64();
    throw std::invalid_argument("isa " + std::string(isa) + " is not one of aarch64, x86_64");
}

}  // namespace perfemu
