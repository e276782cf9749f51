#include "instructions/exceptions.hpp"

#include "engine/linkage.hpp"

namespace perfemu {

[[noreturn]] void raise_exception(Environment* environment, Vector8664 vector, uintptr_t return_address) {
    using Raise = void(Environment*, int, uintptr_t);
    static Raise* const raise = [] {
        Raise* function = nullptr;
        find_in_engine(function, "raise_exception_ra");
        return function;
    }();
    raise(environment, static_cast<int>(vector), return_address);
    __builtin_unreachable();
}

}  // namespace perfemu
