// Python's dicts as Config.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace perfemu {

static void fill(Config& config, nb::dict tables) {
    for (auto [name, value] : tables) {
        auto key = nb::cast<std::string>(name);
        if (nb::isinstance<nb::dict>(value)) {
            fill(config.add_table(key), nb::cast<nb::dict>(value));
        } else if (nb::isinstance<nb::bool_>(value)) {
            config.set(key, nb::cast<bool>(value));
        } else if (nb::isinstance<nb::int_>(value)) {
            config.set(key, nb::cast<int64_t>(value));
        } else if (nb::isinstance<nb::float_>(value)) {
            config.set(key, nb::cast<double>(value));
        } else if (nb::isinstance<nb::str>(value)) {
            config.set(key, nb::cast<std::string>(value));
        } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
            std::vector<std::string> items;
            for (nb::handle item : value) {
                if (!nb::isinstance<nb::str>(item)) throw nb::type_error((key + ": a list of strings").c_str());
                items.push_back(nb::cast<std::string>(item));
            }
            config.set(key, items);
        } else {
            throw nb::type_error((key + ": is no bool, int, float, str, list of str or dict").c_str());
        }
    }
}

Config config_of(nb::dict tables) {
    Config config;
    fill(config, tables);
    return config;
}

}  // namespace perfemu
