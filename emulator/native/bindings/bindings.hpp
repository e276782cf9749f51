// The seam's parts; each fills in its part of the module.
#pragma once

#include <nanobind/nanobind.h>

#include "config.hpp"
#include "core/block.hpp"

namespace perfemu {

void bind_memory(nanobind::module_& module);
class Core;
void bind_core(nanobind::module_& module);
void bind_retirement(nanobind::module_& module, nanobind::class_<Core>& core);
void bind_sampling(nanobind::module_& module);
void bind_spe(nanobind::module_& module);
void bind_pt(nanobind::module_& module);
void bind_branch_trace_store(nanobind::module_& module);
void bind_pebs(nanobind::module_& module);
void bind_branch_records(nanobind::module_& module);
void bind_cache(nanobind::module_& module);
void bind_address(nanobind::module_& module);
void bind_timed(nanobind::module_& module);
void bind_predictor(nanobind::module_& module);
void bind_timing(nanobind::module_& module);

// A nested dict of str, int, float, bool, lists of str and dicts. TypeError names what it cannot take.
Config config_of(nanobind::dict tables);

// Python's int of bits and ours.
ProbeMask probe_mask(nanobind::int_ mask);
nanobind::object mask_int(ProbeMask mask);

}  // namespace perfemu
