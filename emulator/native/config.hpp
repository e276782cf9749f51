// A core file's tables as C++ sees them: names, numbers and lists, already checked by emulator/core_file.py.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace perfemu {

class Config {
  public:
    using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

    bool has(std::string_view key) const { return values_.contains(std::string(key)); }
    bool has_table(std::string_view key) const { return tables_.contains(std::string(key)); }
    // Each of these throws std::invalid_argument with the path of a key that is missing or of another type.
    int64_t integer(std::string_view key) const;
    int64_t integer(std::string_view key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
    double real(std::string_view key) const;  // an integer will do
    bool boolean(std::string_view key, bool otherwise) const;
    const std::string& text(std::string_view key) const;
    std::vector<std::string> texts(std::string_view key) const;  // empty if it is missing
    const Config& table(std::string_view key) const;
    const std::map<std::string, Config>& tables() const { return tables_; }
    const std::map<std::string, Value>& values() const { return values_; }
    // The key's full name in the file, for messages.
    std::string path(std::string_view key) const { return path_ + std::string(key); }

    void set(std::string key, Value value) { values_[std::move(key)] = std::move(value); }
    Config& add_table(std::string key);

  private:
    template <typename Wanted>
    const Wanted& get(std::string_view key, const char* type) const;

    std::string path_;  // of this table, with a dot at its end; empty for the file
    std::map<std::string, Value> values_;
    std::map<std::string, Config> tables_;
};

}  // namespace perfemu
