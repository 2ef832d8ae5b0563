/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machine code on disk: a file for each key. Several processes may use a folder at once. */
#ifndef FMM_CUDA_KERNEL_CACHE_H
#define FMM_CUDA_KERNEL_CACHE_H

#include <cstdint>
#include <string>
#include <vector>

/* FNV-1a of what stands for a text so far, and of `size` more bytes; c_hashBegin is that of none. */
constexpr uint64_t c_hashBegin = 14695981039346656037u;
uint64_t           fmm_hash(uint64_t hash, const void* bytes, size_t size);

/* The code that was stored under the key, in `file`; false if there is none, or not all of it. */
bool fmm_cache_read(const std::string& file, uint64_t key, std::vector<char>* code);

/* Stores it, in place of what is there, all at once; folders above are made, for their owner alone. False if that
 * cannot be done. */
bool fmm_cache_write(const std::string& file, uint64_t key, const std::vector<char>& code);

#endif
