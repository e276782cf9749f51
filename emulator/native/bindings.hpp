// The seam's two halves; each fills in a part of the module.
#pragma once

#include <nanobind/nanobind.h>

namespace perfemu {

void bind_memory(nanobind::module_& module);
void bind_core(nanobind::module_& module);

}  // namespace perfemu
