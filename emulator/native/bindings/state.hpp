// What is saved by an Archive, as Python's bytes.
#pragma once

#include <nanobind/nanobind.h>

#include "archive.hpp"

namespace perfemu {

template <typename Component>
nanobind::bytes saved_state(Component& component) {
    Archive state;
    component.archive(state);
    const std::span<const uint8_t> bytes = state.bytes();
    return nanobind::bytes(bytes.data(), bytes.size());
}

// WrongState becomes ValueError.
template <typename Component>
void load_state(Component& component, nanobind::bytes saved) {
    Archive state(std::span(static_cast<const uint8_t*>(saved.data()), saved.size()));
    try {
        component.archive(state);
        state.end();
    } catch (const WrongState& problem) {
        throw nanobind::value_error(problem.what());
    }
}

}  // namespace perfemu
