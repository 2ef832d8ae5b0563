/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machine code on disk: a file for each key. Several processes may use a folder at once. */
#ifndef FMM_CUDA_KERNEL_CACHE_H
#define FMM_CUDA_KERNEL_CACHE_H

#include <cstdint>
#include <string>
#include <vector>

/* FNV-1a hash of `size` more bytes, given that of the bytes before; c_hashBegin is the hash of none. */
constexpr uint64_t c_hashBegin = 14695981039346656037u;
uint64_t           fmm_hash(uint64_t hash, const void* bytes, size_t size);

/* Reads the code stored in `file` under the key; false if there is none, if it is incomplete, or if the file or its
 * folder is not the user's own or may be written by others. */
bool fmm_cache_read(const std::string& file, uint64_t key, std::vector<char>* code);

/* Stores the code, replacing the file in one step; missing folders are created, accessible to their owner only. False
 * on failure. */
bool fmm_cache_write(const std::string& file, uint64_t key, const std::vector<char>& code);

#endif
