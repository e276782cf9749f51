// A component's state as bytes. Each component lists its fields once, for saving and for loading alike:
//
//     void archive(Archive& state) { state(cycle_, tags_, *policy_); }
//
// What its constructor makes of the core file is no part of it: what is loaded meets a component that was made equal.
// Each field is preceded by how many bytes it has, so that bytes which belong to something else are refused.
#pragma once

#include <algorithm>
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
    // What has been loaded is something that a component can have: no index beyond its tables.
    void expect(bool possible) const {
        if (is_loading_ && !possible) throw WrongState("a part of a state has a value that it cannot have");
    }
    // An enumeration, or a number, of at most that value.
    template <typename T>
    void up_to(T& value, T last) {
        field(value);
        expect(value <= last);
    }
    // A vector whose size is state, too. The others' sizes are of the core file.
    template <typename T>
    void growing(std::vector<T>& items) {
        uint64_t size = items.size();
        field(size);
        if (is_loading_) {
            if (size > (saved_.size() - next_) / sizeof size) throw WrongState("a state is cut short");
            items.resize(size);
        }
        field(items);
    }
    void raw(void* data, uint64_t size) {
        uint64_t there = size;
        copy(&there, sizeof there);
        if (there != size) throw WrongState("a part of a state has another size than here");
        copy(data, size);
    }

  private:
    // Without padding, of which nobody knows what it says; a struct that has some lists its fields.
    template <typename T>
    static constexpr bool IS_PLAIN = std::has_unique_object_representations_v<T> && !std::is_pointer_v<T>;

    template <typename T>
    void field(T& value) {
        if constexpr (requires { value.archive(*this); }) {
            value.archive(*this);
        } else if constexpr (std::is_same_v<T, bool>) {
            uint8_t byte = value;
            up_to(byte, uint8_t{1});
            value = byte;
        } else {
            static_assert(IS_PLAIN<T>);
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
            static_assert(IS_PLAIN<T>);
            raw(items.data(), items.size() * sizeof(T));
        }
    }
    template <typename T>
    void field(std::optional<T>& value) {
        bool there = value.has_value();
        field(there);
        if (is_loading_) value = there ? std::optional<T>(T{}) : std::nullopt;
        if (there) field(*value);
    }
    void field(std::vector<bool>& bits) {
        std::vector<uint8_t> bytes(bits.begin(), bits.end());
        field(bytes);
        if (is_loading_) bits.assign(bytes.begin(), bytes.end());
    }
    template <typename Key, typename Value>
    void field(std::map<Key, Value>& items) {
        std::vector<Key> keys;
        for (const auto& [key, value] : items) keys.push_back(key);
        entries(items, keys);
    }
    template <typename Key, typename Value>
    void field(std::unordered_map<Key, Value>& items) {
        std::vector<Key> keys;
        for (const auto& [key, value] : items) keys.push_back(key);
        std::ranges::sort(keys);
        entries(items, keys);
    }
    template <typename Items, typename Key>
    void entries(Items& items, std::vector<Key>& keys) {
        uint64_t size = keys.size();
        field(size);
        if (!is_loading_) {
            for (Key& key : keys) (*this)(key, items.at(key));
            return;
        }
        items.clear();
        for (; size; --size) {
            Key key{};
            typename Items::mapped_type value{};
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
