#include "engine/function.hpp"

#include <dlfcn.h>

namespace perfemu {

const void* engine_function(const char* name) {
    void* library = dlopen("libunicorn.so.2", RTLD_NOLOAD | RTLD_LAZY);
    if (!library) return nullptr;
    const void* function = dlsym(library, name);
    dlclose(library);
    return function;
}

}  // namespace perfemu
