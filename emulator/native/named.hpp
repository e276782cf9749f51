// Models by name (policies, predictors, prefetchers, pipelines): each registers itself from its own file, so that
// adding one touches no other file.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace perfemu {

template <typename Maker>
class Named {
  public:
    // A static object of this type, in the model's file, is the registration.
    Named(const char* name, Maker maker) { all().emplace(name, maker); }

    // `key` is where the name was written; `kind` what it should be the name of.
    static Maker find(const std::string& name, const std::string& key, const char* kind) {
        auto found = all().find(name);
        if (found != all().end()) return found->second;
        std::string known;
        for (const auto& row : all()) known += (known.empty() ? "" : ", ") + row.first;
        throw std::invalid_argument(key + ": \"" + name + "\" is no " + kind + ": there are " + known);
    }

    static std::vector<std::string> names() {
        std::vector<std::string> sorted;
        for (const auto& row : all()) sorted.push_back(row.first);
        return sorted;
    }

  private:
    static std::map<std::string, Maker>& all() {  // in a function: registrations run before main, in any order
        static std::map<std::string, Maker> makers;
        return makers;
    }
};

}  // namespace perfemu
