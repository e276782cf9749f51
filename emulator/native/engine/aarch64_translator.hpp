// What the engine's translator makes of A64 instructions, put right where it differs from the hardware.
#pragma once

namespace perfemu::aarch64 {

// - LDAR, LDAPR, STLR and the like may access any address in the engine; a core without FEAT_LSE2 raises an alignment
//   fault where it is no multiple of the size (Arm ARM DDI 0487, B2.5.2).
// - Of less than 64 bits, LDSMAX and LDSMIN compare in the engine without regard to signs.
// - Of instructions that are not allocated some end the process in the engine (0x4ed42637, of FEAT_FP16's group): it is
//   shown UDF instead of all that we do not know, which nobody executes.
// - FCVTZS Hd, Hn, #fbits leaves bits above the half word in the engine.
//
// Before the first AArch64 engine is opened; throws std::runtime_error where the engine is not what we know.
void correct_translator();

}  // namespace perfemu::aarch64
