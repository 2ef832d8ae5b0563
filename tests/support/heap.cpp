/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* glibc's allocator under its own names, with counters in front of it. */
#include "support/heap.h"

#include <atomic>
#include <cerrno>

#include <malloc.h>

extern "C"
{
    void* __libc_malloc(std::size_t size);
    void* __libc_calloc(std::size_t count, std::size_t size);
    void* __libc_realloc(void* old, std::size_t size);
    void* __libc_memalign(std::size_t alignment, std::size_t size);
    void  __libc_free(void* block);

    extern const char __executable_start, etext; /* the program's own code, by the linker */
}

namespace
{

std::atomic<std::size_t> calls{0}, bytes{0}, peak{0};

thread_local long left = -1; /* calls of this thread that have memory, then one has none; negative: all have */

/* Whether this call is the one without memory. Libraries of others may end the program without it: those of the program
 * alone count. */
bool fails(const void* caller)
{
    const bool own = caller >= &__executable_start && caller < &etext;
    return own && left >= 0 && left-- == 0;
}

void* counted(void* block)
{
    calls++;
    if (block)
    {
        const std::size_t now  = bytes += malloc_usable_size(block);
        std::size_t       most = peak;
        while (now > most && !peak.compare_exchange_weak(most, now))
        {
        }
    }
    return block;
}

void forget(void* block)
{
    if (block)
    {
        bytes -= malloc_usable_size(block);
    }
}

} // namespace

extern "C"
{
    void* malloc(std::size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_malloc(size));
    }
    void* calloc(std::size_t count, std::size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_calloc(count, size));
    }
    void* realloc(void* old, std::size_t size)
    {
        if (fails(__builtin_return_address(0)))
        {
            return nullptr;
        }
        forget(old);
        return counted(__libc_realloc(old, size));
    }
    void* memalign(std::size_t alignment, std::size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, size));
    }
    void* aligned_alloc(std::size_t alignment, std::size_t size)
    {
        return fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, size));
    }
    int posix_memalign(void** block, std::size_t alignment, std::size_t size)
    {
        *block = fails(__builtin_return_address(0)) ? nullptr : counted(__libc_memalign(alignment, size));
        return *block ? 0 : ENOMEM;
    }
    void free(void* block)
    {
        forget(block);
        __libc_free(block);
    }
}

namespace fmmtest
{

std::size_t heapCalls()
{
    return calls;
}

std::size_t heapBytes()
{
    return bytes;
}

std::size_t heapPeak()
{
    return peak;
}

void heapResetPeak()
{
    peak = bytes.load();
}

void heapFailAfter(long number)
{
    left = number;
}

bool heapHasFailed()
{
    return left < 0;
}

} // namespace fmmtest
