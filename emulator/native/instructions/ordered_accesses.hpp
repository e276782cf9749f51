// AArch64's loads and stores with an order: LDAR, STLR and their narrow forms.
#pragma once

namespace perfemu {

// The engine lets these access any address; a Cortex-A72 raises an alignment fault where it is no multiple of the size
// (Arm ARM DDI 0487, B2.5.2; without FEAT_LSE2). Exclusives are the engine's own matter. Before the first AArch64
// engine is opened; throws std::runtime_error where the engine is not what we know.
void align_ordered_accesses();

}  // namespace perfemu
