// Instructions of our own, in the place of the engine's.
#pragma once

#include <span>

#include "engine/linkage.hpp"
#include "instructions/environment.hpp"

namespace perfemu {

// A family has a file here. Where the engine executes an instruction by calling a helper, a function of ours with the
// helper's arguments (Environment*, then what QEMU's target/i386/helper.h says) takes its place: at the same cost, and
// the translation knows no difference. It may raise an exception (exceptions.hpp), and then leaves by longjmp: no
// destructors.
struct InstructionFamily {
    std::span<const EngineReplacement> helpers;
    // Finds what it uses besides EnvironmentLayout, and checks what it assumes of the host; null if nothing.
    void (*calibrate)(const Calibration&) = nullptr;
};

// Before the first x86 engine is opened. Throws std::runtime_error where the engine is not what we know.
void install_instructions();

}  // namespace perfemu
