#include "config.hpp"

#include <stdexcept>

namespace perfemu {

template <typename Wanted>
const Wanted& Config::get(std::string_view key, const char* type) const {
    auto found = values_.find(std::string(key));
    if (found == values_.end()) throw std::invalid_argument(path_ + std::string(key) + ": missing");
    const Wanted* value = std::get_if<Wanted>(&found->second);
    if (!value) throw std::invalid_argument(path_ + std::string(key) + ": is not " + type);
    return *value;
}

int64_t Config::integer(std::string_view key) const { return get<int64_t>(key, "an integer"); }

double Config::real(std::string_view key) const {
    auto found = values_.find(std::string(key));
    if (found != values_.end())
        if (auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
    return get<double>(key, "a number");
}

bool Config::boolean(std::string_view key, bool otherwise) const {
    return has(key) ? get<bool>(key, "true or false") : otherwise;
}

const std::string& Config::text(std::string_view key) const { return get<std::string>(key, "a string"); }

std::vector<std::string> Config::texts(std::string_view key) const {
    return has(key) ? get<std::vector<std::string>>(key, "a list of strings") : std::vector<std::string>{};
}

const Config& Config::table(std::string_view key) const {
    auto found = tables_.find(std::string(key));
    if (found == tables_.end()) throw std::invalid_argument(path_ + std::string(key) + ": missing table");
    return found->second;
}

Config& Config::add_table(std::string key) {
    std::string path = path_ + key + ".";
    Config& table = tables_[std::move(key)];
    table.path_ = path;
    return table;
}

}  // namespace perfemu
