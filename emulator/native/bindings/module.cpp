// The native module: nothing here but its assembly.
#include "bindings/bindings.hpp"

NB_MODULE(_native, module) {
    perfemu::bind_memory(module);
    perfemu::bind_core(module);
    perfemu::bind_sampling(module);
    perfemu::bind_spe(module);
    perfemu::bind_pt(module);
    perfemu::bind_branch_trace_store(module);
    perfemu::bind_pebs(module);
    perfemu::bind_branch_records(module);
    perfemu::bind_cache(module);
    perfemu::bind_address(module);
    perfemu::bind_timed(module);
    perfemu::bind_predictor(module);
    perfemu::bind_timing(module);
}
