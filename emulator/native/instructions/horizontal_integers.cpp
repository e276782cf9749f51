#include "instructions/horizontal_integers.hpp"

namespace perfemu {
namespace {

// The engine's are right but where both operands are one register: they write what they have still to read.
enum Operation {
    ADD_WORDS,
    ADD_DOUBLEWORDS,
    ADD_SATURATED,
    SUBTRACT_WORDS,
    SUBTRACT_DOUBLEWORDS,
    SUBTRACT_SATURATED,
    OPERATIONS
};
using Helper = void(Environment*, Vector* destination, const Vector* source);
Helper* engine_vector[OPERATIONS];
Helper* engine_mmx[OPERATIONS];

template <Operation OPERATION>
void of_vector(Environment* environment, Vector* destination, const Vector* source) {
    const Vector copy = *source;
    engine_vector[OPERATION](environment, destination, &copy);
}
template <Operation OPERATION>
void of_mmx(Environment* environment, Vector* destination, const Vector* source) {
    const Vector copy = {.quadwords = {source->quadwords[0], 0}};
    engine_mmx[OPERATION](environment, destination, &copy);
}

#define OF_BOTH(name, OPERATION)                                                         \
    in_place_of("helper_" name "_xmm", of_vector<OPERATION>, &engine_vector[OPERATION]), \
        in_place_of("helper_" name "_mmx", of_mmx<OPERATION>, &engine_mmx[OPERATION])

}  // namespace

InstructionFamily horizontal_integer_family() {
    static const EngineReplacement HELPERS[] = {
        OF_BOTH("phaddw", ADD_WORDS),
        OF_BOTH("phaddd", ADD_DOUBLEWORDS),
        OF_BOTH("phaddsw", ADD_SATURATED),
        OF_BOTH("phsubw", SUBTRACT_WORDS),
        OF_BOTH("phsubd", SUBTRACT_DOUBLEWORDS),
        OF_BOTH("phsubsw", SUBTRACT_SATURATED),
    };
    return {HELPERS};
}

}  // namespace perfemu
