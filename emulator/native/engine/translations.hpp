// Who hears of what the engine translates, and of stores that may change what it has translated.
//
// It translates code that it has not seen, or whose translation it has thrown away, because a store of its own hit the
// bytes. Of stores that others make into the same memory it knows nothing: it has to be told (`forget_translations`).
#pragma once

#include <unicorn/unicorn.h>

#include <cstdint>

namespace perfemu {

class TranslationListener {
  public:
    virtual ~TranslationListener() = default;
    // The engine is about to translate the block there.
    virtual void on_translation(uint64_t address) = 0;
    // The guest stores into a frame that the engine watches, at that physical address.
    virtual void on_watched_store(uint64_t physical, uint32_t size) = 0;
};

// AArch64's engines tell their listeners from now on. Before the first of them is opened; throws std::runtime_error
// where the engine is not what we know.
void hear_translations();

// While one exists, what this thread's engine does is told to `listener`, which may be null.
class HeardTranslations {
  public:
    explicit HeardTranslations(TranslationListener* listener);
    ~HeardTranslations();
    HeardTranslations(const HeardTranslations&) = delete;
    HeardTranslations& operator=(const HeardTranslations&) = delete;
};

// Of code in those bytes of physical memory. While the engine does not run.
void forget_translations(uc_engine* engine, uint64_t physical, uint64_t size);

}  // namespace perfemu
