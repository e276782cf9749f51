// The Python faces of Core and CounterBank, as emulator/_native.pyi declares them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/bindings.hpp"
#include "bindings/state.hpp"
#include "core/core.hpp"
#include "core/model.hpp"
#include "core/register_state.hpp"

namespace nb = nanobind;

namespace perfemu {

static int run(Core& core, uint64_t until_cycle) {
    Exit exit;
    {
        nb::gil_scoped_release unlocked;
        exit = core.run(until_cycle, [&core] {
            nb::gil_scoped_acquire locked;
            return PyErr_CheckSignals() != 0 || core.take_return_request();
        });
    }
    if (exit == Exit::INTERRUPTED && PyErr_Occurred()) throw nb::python_error();
    return static_cast<int>(exit == Exit::INTERRUPTED ? Exit::DEADLINE : exit);
}

using ExceptionRow =
    std::tuple<uint64_t, unsigned, uint64_t, unsigned, std::optional<uint32_t>, std::optional<uint64_t>, bool>;

static ExceptionRow row_of(const x86_64::TakenException& taken) {
    return {taken.cycle, taken.cpl, taken.rip, taken.vector, taken.error, taken.address, taken.software};
}

static void hear_exceptions(const Core& core, nb::callable hear) {
    core.exceptions_taken().hear([hear](const x86_64::TakenException& taken) {
        nb::gil_scoped_acquire locked;
        hear(row_of(taken));
    });
}

using WatchpointRow = std::tuple<uint64_t, uint64_t, uint8_t, uint8_t, uint8_t, bool, int8_t>;

static void set_watchpoints(Core& core, const std::vector<WatchpointRow>& rows) {
    constexpr size_t MOST = 64;
    if (rows.size() > MOST) throw nb::value_error("more watchpoints than a core can have");
    std::vector<Watchpoint> watchpoints;
    for (const auto& [address, bytes, accesses, levels, taken_from, maskable, debug_register] : rows)
        watchpoints.push_back({address, bytes, accesses, levels, taken_from, maskable, debug_register});
    core.set_watchpoints(std::move(watchpoints));
}

static std::vector<uint64_t> registers(const Core& core) {
    std::vector<uint64_t> values;
    for (int number : core.isa().registers()) values.push_back(read_register(core.engine(), number));
    return values;
}

static nb::tuple syscall_arguments(const Core& core) {
    nb::list values;
    for (int number : core.isa().syscall_registers()) values.append(read_register(core.engine(), number));
    return nb::tuple(values);
}

static int vector_register(const Core& core, unsigned number) {
    if (number >= core.isa().vectors()) throw nb::index_error("no such vector register");
    return core.isa().first_vector() + static_cast<int>(number);
}

static constexpr size_t VECTOR_BYTES = 16;

static nb::bytes read_vector(const Core& core, unsigned number) {
    char value[VECTOR_BYTES] = {};
    uc_reg_read(core.engine(), vector_register(core, number), value);
    return nb::bytes(value, sizeof value);
}

static void write_vector(Core& core, unsigned number, nb::bytes value) {
    if (value.size() != VECTOR_BYTES) throw nb::value_error("a vector register has 16 bytes");
    uc_reg_write(core.engine(), vector_register(core, number), value.c_str());
}

static int x87_register(const Core& core, unsigned number) {
    if (core.isa().first_vector() != UC_X86_REG_XMM0 || number >= 8) throw nb::index_error("no such x87 register");
    return UC_X86_REG_FP0 + static_cast<int>(number);
}

static constexpr size_t X87_BYTES = 10;

static nb::bytes read_x87(const Core& core, unsigned number) {
    char value[VECTOR_BYTES] = {};
    uc_reg_read(core.engine(), x87_register(core, number), value);
    return nb::bytes(value, X87_BYTES);
}

static void write_x87(Core& core, unsigned number, nb::bytes value) {
    if (value.size() != X87_BYTES) throw nb::value_error("an x87 register has 10 bytes");
    char padded[VECTOR_BYTES] = {};
    std::memcpy(padded, value.c_str(), X87_BYTES);
    uc_reg_write(core.engine(), x87_register(core, number), padded);
}

// Above the probes that a counter adds stand, in Python's mask, those that it takes away.
static constexpr unsigned LESS_SHIFT = 128;

ProbeMask probe_mask(nb::int_ mask) {
    nb::int_ half(64);
    auto high = nb::cast<uint64_t>((mask >> half) & nb::int_(~uint64_t{0}));
    auto low = nb::cast<uint64_t>(mask & nb::int_(~uint64_t{0}));
    return ProbeMask{high} << 64 | low;
}

nb::object mask_int(ProbeMask mask) {
    nb::object high = nb::int_(static_cast<uint64_t>(mask >> 64));
    return (high << nb::int_(64)) | nb::int_(static_cast<uint64_t>(mask));
}

static void attribute(Core& core, nb::sequence masks) {
    std::vector<Ledger::Column> columns;
    for (nb::handle item : masks) {
        auto probes = nb::cast<nb::int_>(item);
        columns.push_back({probe_mask(probes), probe_mask(nb::int_(probes >> nb::int_(LESS_SHIFT)))});
    }
    core.attribute(std::move(columns));
}

static Level level_of(unsigned number) {
    if (number >= LEVELS) throw nb::index_error("no such privilege level");
    return static_cast<Level>(number);
}

static void bind_counters(nb::module_& module) {
    nb::class_<CounterBank>(module, "CounterBank")
        .def_prop_ro("size", &CounterBank::size)
        .def(
            "connect",
            [](CounterBank& bank, unsigned counter, nb::int_ probes) {
                bank.connect(counter, probe_mask(probes), probe_mask(nb::int_(probes >> nb::int_(LESS_SHIFT))));
            },
            nb::arg("counter"), nb::arg("probes"))
        .def(
            "connected",
            [](const CounterBank& bank, unsigned counter) {
                return mask_int(bank.connected(counter)) | (mask_int(bank.subtracted(counter)) << nb::int_(LESS_SHIFT));
            },
            nb::arg("counter"))
        .def(
            "filter",
            [](CounterBank& bank, unsigned counter, unsigned levels) {
                bank.filter(counter, static_cast<LevelMask>(std::min(levels, 255U)));
            },
            nb::arg("counter"), nb::arg("levels"))
        .def("set_width", &CounterBank::set_width, nb::arg("counter"), nb::arg("bits"), nb::arg("overflow_bits") = 0)
        .def("chain", &CounterBank::chain, nb::arg("counter"), nb::arg("on"))
        .def("arm", &CounterBank::arm, nb::arg("counters"))
        .def("read", &CounterBank::read, nb::arg("counter"))
        .def("write", &CounterBank::write, nb::arg("counter"), nb::arg("value"))
        .def(
            "read_each",
            [](CounterBank& bank, const std::vector<unsigned>& counters) { return bank.read_each(counters); },
            nb::arg("counters"))
        .def(
            "write_each",
            [](CounterBank& bank, const std::vector<unsigned>& counters, const std::vector<uint64_t>& values) {
                bank.write_each(counters, values);
            },
            nb::arg("counters"), nb::arg("values"))
        .def("add", &CounterBank::add, nb::arg("counter"), nb::arg("amount"))
        .def("overflowed", &CounterBank::overflowed)
        .def("set_overflowed", &CounterBank::set_overflowed, nb::arg("counters"))
        .def("clear_overflowed", &CounterBank::clear_overflowed, nb::arg("counters"));
}

// What decoding finds in code, for tests: (offset, length, probes, iteration probes, trap) of each instruction.
static nb::list decode(std::string_view isa, uint64_t address, nb::bytes code,
                       const std::vector<std::string>& features) {
    std::unique_ptr<Isa> decoder = Isa::make(isa, features);
    nb::list rows;
    for (const Op& op : decoder->decode(address, {reinterpret_cast<const uint8_t*>(code.c_str()), code.size()}))
        rows.append(nb::make_tuple(op.offset, op.length, mask_int(op.probes), mask_int(op.iteration_probes),
                                   static_cast<int>(op.trap)));
    return rows;
}

// What executes, and how it goes on.
static void bind_running(nb::class_<Core>& core) {
    core.def(
            "__init__",
            [](Core* core, std::string_view isa, std::shared_ptr<PhysicalMemory> memory, bool counting,
               std::optional<nb::dict> model, std::shared_ptr<SharedMemory> shared,
               const std::vector<std::string>& features) {
                Config config = model ? config_of(*model) : Config();
                new (core)
                    Core(isa, features, std::move(memory), counting, model ? &config : nullptr, std::move(shared));
            },
            nb::arg("isa"), nb::arg("memory"), nb::arg("counting") = true, nb::arg("model") = nb::none(),
            nb::arg("shared") = nb::none(), nb::arg("features") = std::vector<std::string>())
        .def("set_address_space", &Core::set_address_space, nb::arg("space"))
        .def("add_bank", &Core::add_bank, nb::arg("counters"), nb::rv_policy::reference_internal)
        .def(
            "set_gear", [](Core& core, int gear) { core.set_gear(static_cast<Gear>(gear)); }, nb::arg("gear"))
        .def_prop_ro("gear", [](const Core& core) { return static_cast<int>(core.gear()); })
        .def("run", &run, nb::arg("until_cycle"))
        .def("request_return", &Core::request_return)
        .def_prop_ro("owes_exit", &Core::owes_exit)
        .def("limit_iterations", &Core::limit_iterations, nb::arg("most"))
        .def_prop_ro("repeats_too_long", &Core::repeats_too_long)
        .def("save_state",
             [](const Core& core) {
                 auto state = std::make_unique<RegisterState>(core);
                 state->save(core);
                 return state;
             })
        .def(
            "save_state_into", [](const Core& core, RegisterState& state) { state.save(core); }, nb::arg("state"))
        .def(
            "restore_state", [](Core& core, const RegisterState& state) { state.restore(core); }, nb::arg("state"))
        .def("rest", &Core::rest)
        .def("saved_state", &saved_state<Core>)
        .def("load_state", &load_state<Core>, nb::arg("state"))
        .def_prop_ro("exclusive_open", &exclusive_open)
        .def("close_exclusive", &close_exclusive);
}

// Why it has stopped; and what tests want to know of blocks.
static void bind_exits(nb::class_<Core>& core) {
    core.def_prop_ro("decoded_blocks", &Core::decoded_blocks)
        .def_prop_ro("known_calls", &Core::known_calls)
        .def("keep_blocks", &Core::keep_blocks, nb::arg("most"))
        .def_prop_ro("elides_exit_checks", &Core::elides_exit_checks)
        .def_prop_ro("pc", &Core::pc)
        .def_prop_ro("last_retired_pc", &Core::last_retired_pc)
        .def_prop_ro("fault_address", &Core::fault_address)
        .def_prop_ro("fault_access", [](const Core& core) { return static_cast<int>(core.fault_access()); })
        .def_prop_ro("exception", [](const Core& core) { return static_cast<int>(core.exception()); })
        .def_prop_ro("trapped",
                     [](const Core& core) {
                         const Op& op = core.trapped();
                         return nb::make_tuple(static_cast<int>(op.trap), op.trap_encoding, op.trap_register);
                     })
        .def("complete_trapped", &Core::complete_trapped)
        .def_prop_ro("access",
                     [](const Core& core) -> nb::object {
                         const auto access = core.device_access();
                         if (!access) return nb::none();
                         return nb::make_tuple(access->physical, access->bytes, static_cast<int>(access->kind),
                                               access->value);
                     })
        .def("complete_access", &Core::complete_access, nb::arg("loaded") = 0)
        .def_prop_ro("exceptions_taken",
                     [](const Core& core) {
                         std::vector<ExceptionRow> rows;
                         for (const auto& each : core.exceptions_taken().rows()) rows.push_back(row_of(each));
                         return rows;
                     })
        .def("hear_exceptions", &hear_exceptions, nb::arg("hear"));
}

static void bind_registers(nb::class_<Core>& core) {
    core.def("read_register", &Core::read, nb::arg("number"))
        .def("write_register", &Core::write, nb::arg("number"), nb::arg("value"))
        .def(
            "read_registers",
            [](const Core& core, const std::vector<unsigned>& numbers) {
                std::vector<uint64_t> values;
                for (unsigned number : numbers) values.push_back(core.read(number));
                return values;
            },
            nb::arg("numbers"))
        .def("registers", &registers)
        .def("syscall_arguments", &syscall_arguments)
        .def("read_vector", &read_vector, nb::arg("number"))
        .def("write_vector", &write_vector, nb::arg("number"), nb::arg("value"))
        .def("read_x87", &read_x87, nb::arg("number"))
        .def("write_x87", &write_x87, nb::arg("number"), nb::arg("value"));
}

// Time, and what models are told.
static void bind_models(nb::class_<Core>& core) {
    core.def_prop_ro("cycles", &Core::cycles)
        .def("elapse", &Core::elapse, nb::arg("cycles"))
        .def("work", &Core::work, nb::arg("cycles"))
        .def("skip", &Core::skip, nb::arg("cycles"))
        .def("place_page", &Core::place_page, nb::arg("address"))
        .def_prop_ro("address_way", &Core::address_way)
        .def("start_trace", &Core::start_trace)
        .def("take_trace", [](Core& core) {
            nb::list rows;
            for (const TracedAccess& access : core.take_trace())
                rows.append(nb::make_tuple(access.pc, access.address, access.size, access.elements, access.store));
            return rows;
        });
}

// What has been counted, at which level, and by which instruction.
static void bind_totals(nb::class_<Core>& core) {
    core.def_prop_ro("progress", &Core::progress)
        .def(
            "total",
            [](Core& core, unsigned probe, std::optional<unsigned> level) {
                if (probe >= PROBE_COUNT) throw nb::index_error("no such probe");
                const Probe which = static_cast<Probe>(probe);
                return level ? core.total(which, level_of(*level)) : core.total(which);
            },
            nb::arg("probe"), nb::arg("level") = nb::none())
        .def(
            "set_level", [](Core& core, unsigned level) { core.set_level(level_of(level)); }, nb::arg("level"))
        .def(
            "enter_kernel_mode",
            [](Core& core, uint64_t ram_base, uint64_t first_frame, std::optional<uint64_t> frames) {
                return core.enter_kernel_mode({ram_base, first_frame, frames.value_or(GuestRam{}.frames)});
            },
            nb::arg("ram_base") = 0, nb::arg("first_frame") = 0, nb::arg("frames") = nb::none())
        .def("change_guest", &Core::change_guest, nb::arg("tables"))
        .def("reset", &Core::reset)
        .def("set_interrupt_line", &Core::set_interrupt_line, nb::arg("asserted"))
        .def("set_watchpoints", &set_watchpoints, nb::arg("watchpoints"))
        .def("set_breakpoints", &Core::set_breakpoints, nb::arg("addresses"))
        .def_prop_ro("passed_breakpoint", &Core::passed_breakpoint)
        .def("pass_breakpoint", &Core::pass_breakpoint, nb::arg("address"))
        .def("pass_access", &Core::pass_access, nb::arg("pc").none())
        .def_prop_ro("watchpoint_hits", &Core::watchpoint_hits)
        .def("set_counter", &Core::set_counter, nb::arg("registers"), nb::arg("user_registers"), nb::arg("numerator"),
             nb::arg("denominator"))
        .def("share_shown_cycles", &Core::share_shown_cycles, nb::arg("shown"))
        .def("set_steps", &Core::set_steps, nb::arg("on"))
        .def("set_guest_steps", &Core::set_guest_steps, nb::arg("levels"))
        .def_prop_ro("has_stepped_guest", &Core::has_stepped_guest)
        .def_prop_rw("guest_step_age", &Core::guest_step_age, &Core::set_guest_step_age, nb::arg("age") = nb::none())
        .def("take_interrupt", &Core::take_interrupt, nb::arg("vector"))
        .def("raise_nmi", &Core::raise_nmi)
        .def("take_exception", &Core::take_exception, nb::arg("kind"), nb::arg("syndrome") = nb::none(),
             nb::arg("address") = nb::none())
        .def("read_kernel_register", &Core::read_kernel_register, nb::arg("number"))
        .def_prop_rw("processor_state", &Core::processor_state, &Core::set_processor_state)
        .def("write_kernel_register", &Core::write_kernel_register, nb::arg("number"), nb::arg("value"))
        .def_prop_ro("level", [](const Core& core) { return static_cast<unsigned>(core.level()); })
        .def(
            "fire",
            [](Core& core, unsigned probe, uint64_t amount) {
                if (probe >= PROBE_COUNT) throw nb::index_error("no such probe");
                core.fire(static_cast<Probe>(probe), amount);
            },
            nb::arg("probe"), nb::arg("amount") = 1)
        .def("attribute", &attribute, nb::arg("columns"))
        .def("attribute_to", &Core::attribute_to, nb::arg("account"))
        .def(
            "take_attribution",
            [](Core& core, Ledger::Account account) {
                const std::vector<uint64_t> rows = core.take_attribution(account);
                return nb::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof rows[0]);
            },
            nb::arg("account"))
        .def("follow_branches", &Core::follow_branches)
        .def("add_ptwrite", &Core::add_ptwrite)
        .def("frame_chain", &Core::frame_chain, nb::arg("limit"));
}

// The call stack of what executes, where it is kept.
static void bind_calls(nb::class_<Core>& core) {
    core.def("keep_calls", &Core::keep_calls)
        .def_prop_ro("keeps_calls", [](const Core& core) { return core.calls() != nullptr; })
        .def(
            "call_chain",
            [](const Core& core, unsigned limit) {
                return core.calls() ? core.calls()->chain(limit) : std::vector<uint64_t>();
            },
            nb::arg("limit"))
        .def("begin_calls",
             [](Core& core) {
                 if (core.calls()) core.calls()->begin();
             })
        .def(
            "fork_calls",
            [](Core& core, bool shares_memory, bool has_new_stack) {
                Calls* calls = core.calls();
                if (calls) calls->set_stack(calls->stack()->fork(shares_memory, has_new_stack));
            },
            nb::arg("shares_memory"), nb::arg("has_new_stack"))
        .def(
            "enter_handler",
            [](Core& core, uint64_t pc, uint64_t stack_pointer, uint64_t trampoline, uint64_t trampoline_stack) {
                if (core.calls())
                    core.calls()->stack()->enter_handler({pc, stack_pointer}, {trampoline, trampoline_stack});
            },
            nb::arg("pc"), nb::arg("stack_pointer"), nb::arg("trampoline"), nb::arg("trampoline_stack"))
        .def(
            "leave_handler",
            [](Core& core, uint64_t pc, uint64_t stack_pointer, uint64_t caller, uint64_t caller_stack) {
                if (core.calls()) core.calls()->stack()->leave_handler(pc, stack_pointer, {caller, caller_stack});
            },
            nb::arg("pc"), nb::arg("stack_pointer"), nb::arg("caller"), nb::arg("caller_stack"));
}

void bind_core(nb::module_& module) {
    module.attr("PROBE_COUNT") = PROBE_COUNT;
    module.def("decode", &decode, nb::arg("isa"), nb::arg("address"), nb::arg("code"),
               nb::arg("features") = std::vector<std::string>());
    bind_counters(module);

    nb::class_<RegisterState>(module, "RegisterState");
    nb::class_<ShownCycles>(module, "ShownCycles")
        .def(nb::init<>())
        .def_rw("latest", &ShownCycles::latest)
        .def("show", &ShownCycles::show, nb::arg("now"))
        .def("reference", &ShownCycles::reference, nb::arg("cycles"))
        .def(
            "set_steps",
            [](ShownCycles& shown, uint64_t hz, const std::vector<std::tuple<uint64_t, uint64_t, uint64_t>>& rows,
               uint64_t lap_cycles, uint64_t lap_reference) {
                std::vector<ShownCycles::Step> steps;
                for (const auto& [cycle, reference, step_hz] : rows) steps.push_back({cycle, reference, step_hz});
                shown.set_steps(hz, std::move(steps), lap_cycles, lap_reference);
            },
            nb::arg("reference_hz"), nb::arg("steps"), nb::arg("lap_cycles"), nb::arg("lap_reference"));
    nb::class_<SharedMemory>(module, "SharedCaches")
        .def(
            "__init__",
            [](SharedMemory* shared, nb::dict model, unsigned cores) {
                new (shared) SharedMemory(config_of(model), cores);
            },
            nb::arg("model"), nb::arg("cores"))
        .def_prop_ro("returns", &SharedMemory::returns)
        .def_prop_ro("coherence_latency", &SharedMemory::coherence_latency);

    nb::class_<Core> core(module, "Core");
    bind_running(core);
    bind_exits(core);
    bind_registers(core);
    bind_models(core);
    bind_totals(core);
    bind_calls(core);
    bind_retirement(module, core);
}

}  // namespace perfemu
