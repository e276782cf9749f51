// A component's state as bytes. Each component lists its fields once, for saving and for loading alike:
//
//     void archive(Archive& state) { state(cycle_, tags_, *policy_); }
//
// What its constructor makes of the core file is no part of it: what is loaded meets a component that was made equal.
// Each field is preceded by how many bytes it has, so that bytes which belong to something else are refused.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace perfemu {

// The bytes are not what this component has saved.
struct WrongState : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Archive {
  public:
    Archive() = default;                                                                    // saves
    explicit Archive(std::span<const uint8_t> saved) : saved_(saved), is_loading_(true) {}  // loads
    Archive(const Archive&) = delete;
    Archive& operator=(const Archive&) = delete;

    bool is_loading() const { return is_loading_; }
    // What was saved.
    std::span<const uint8_t> bytes() const { return written_; }
    // After loading: there must be nothing left.
    void end() const {
        if (next_ != saved_.size()) throw WrongState("there are more bytes of a state than it has");
    }

    template <typename... Fields>
    void operator()(Fields&... fields) {
        (field(fields), ...);
    }
    // A vector whose size is state, too. The others' sizes are of the core file.
    template <typename T>
    void growing(std::vector<T>& items) {
        uint64_t size = items.size();
        field(size);
        if (is_loading_) {
            if (size > (saved_.size() - next_) / sizeof(T)) throw WrongState("a state is cut short");
            items.resize(size);
        }
        raw(items.data(), size * sizeof(T));
    }
    void raw(void* data, uint64_t size) {
        uint64_t there = size;
        copy(&there, sizeof there);
        if (there != size) throw WrongState("a part of a state has another size than here");
        copy(data, size);
    }

  private:
    template <typename T>
    void field(T& value) {
        if constexpr (requires { value.archive(*this); }) {
            value.archive(*this);
        } else {
            static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
            raw(&value, sizeof value);
        }
    }
    template <typename T>
    void field(std::vector<T>& items) {
        if constexpr (requires { items[0].archive(*this); }) {
            uint64_t size = items.size();
            same(size);
            for (T& item : items) field(item);
        } else {
            static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
            raw(items.data(), items.size() * sizeof(T));
        }
    }
    template <typename Key, typename Value>
    void field(std::map<Key, Value>& items) {
        entries<Key, Value>(items);
    }
    template <typename Key, typename Value>
    void field(std::unordered_map<Key, Value>& items) {
        entries<Key, Value>(items);
    }
    template <typename T>
    void field(std::optional<T>& value) {
        bool there = value.has_value();
        field(there);
        if (is_loading_) value = there ? std::optional<T>(T{}) : std::nullopt;
        if (there) field(*value);
    }
    template <typename Key, typename Value, typename Items>
    void entries(Items& items) {
        uint64_t size = items.size();
        field(size);
        if (!is_loading_) {
            for (auto& [key, value] : items) {
                Key its = key;
                (*this)(its, value);
            }
            return;
        }
        items.clear();
        for (; size; --size) {
            Key key{};
            Value value{};
            (*this)(key, value);
            items.emplace(key, std::move(value));
        }
    }
    // A size that both must have.
    void same(uint64_t here) {
        uint64_t there = here;
        field(there);
        if (there != here) throw WrongState("a part of a state has another size than here");
    }
    void copy(void* data, uint64_t size) {
        if (!is_loading_) {
            const auto* bytes = static_cast<const uint8_t*>(data);
            written_.insert(written_.end(), bytes, bytes + size);
            return;
        }
        if (size > saved_.size() - next_) throw WrongState("a state is cut short");
        if (size) std::memcpy(data, saved_.data() + next_, size);
        next_ += size;
    }

    std::vector<uint8_t> written_;
    std::span<const uint8_t> saved_;
    size_t next_ = 0;
    bool is_loading_ = false;
};

}  // namespace perfemu
