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
}

namespace
{

std::atomic<std::size_t> calls{0}, bytes{0}, peak{0};

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
        return counted(__libc_malloc(size));
    }
    void* calloc(std::size_t count, std::size_t size)
    {
        return counted(__libc_calloc(count, size));
    }
    void* realloc(void* old, std::size_t size)
    {
        forget(old);
        return counted(__libc_realloc(old, size));
    }
    void* memalign(std::size_t alignment, std::size_t size)
    {
        return counted(__libc_memalign(alignment, size));
    }
    void* aligned_alloc(std::size_t alignment, std::size_t size)
    {
        return counted(__libc_memalign(alignment, size));
    }
    int posix_memalign(void** block, std::size_t alignment, std::size_t size)
    {
        *block = counted(__libc_memalign(alignment, size));
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

} // namespace fmmtest
