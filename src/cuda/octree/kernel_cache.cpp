/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and writes files of machine code: a header with key and checksum, then the code. */
#include "cuda/octree/kernel_cache.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <sys/stat.h>
#include <unistd.h>

/* The beginning of a file; `size` bytes of machine code follow. */
struct CacheHeader
{
    char     magic[8];
    uint64_t key, size, checksum;
};

static const char c_magic[8] = {'g', 'm', 'x', 'f', 'm', 'm', '0', '1'};

uint64_t fmm_hash(uint64_t hash, const void* bytes, size_t size)
{
    const unsigned char* byte = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < size; i++)
    {
        hash = (hash ^ byte[i]) * 1099511628211u;
    }
    return hash;
}

struct Close
{
    void operator()(FILE* file) const
    {
        fclose(file);
    }
};

bool fmm_cache_read(const std::string& file, uint64_t key, std::vector<char>* code)
{
    code->clear();
    const std::unique_ptr<FILE, Close> in(fopen(file.c_str(), "rb"));
    CacheHeader                        header;
    struct stat                        about;
    if (!in || fstat(fileno(in.get()), &about) != 0 || !S_ISREG(about.st_mode) ||
        fread(&header, sizeof(header), 1, in.get()) != 1 || memcmp(header.magic, c_magic, sizeof(c_magic)) != 0 ||
        header.key != key || header.size == 0 || header.size != static_cast<uint64_t>(about.st_size) - sizeof(header))
    {
        return false;
    }
    code->resize(header.size);
    if (fread(code->data(), 1, code->size(), in.get()) != code->size() ||
        fmm_hash(c_hashBegin, code->data(), code->size()) != header.checksum)
    {
        code->clear();
        return false;
    }
    return true;
}

static void make_folders(const std::string& file)
{
    for (size_t at = file.find('/', 1); at != std::string::npos; at = file.find('/', at + 1))
    {
        mkdir(file.substr(0, at).c_str(), 0700); /* on failure the folder exists, or opening the file fails */
    }
}

bool fmm_cache_write(const std::string& file, uint64_t key, const std::vector<char>& code)
{
    make_folders(file);
    std::string name   = file + ".XXXXXX";
    const int   number = mkstemp(&name[0]);
    if (number < 0)
    {
        return false;
    }
    FILE* out = fdopen(number, "wb");
    if (out == nullptr)
    {
        close(number);
        unlink(name.c_str());
        return false;
    }
    CacheHeader header;
    memcpy(header.magic, c_magic, sizeof(c_magic));
    header.key      = key;
    header.size     = code.size();
    header.checksum = fmm_hash(c_hashBegin, code.data(), code.size());
    const bool written =
        fwrite(&header, sizeof(header), 1, out) == 1 && fwrite(code.data(), 1, code.size(), out) == code.size();
    const bool closed = fclose(out) == 0;
    if (!written || !closed || rename(name.c_str(), file.c_str()) != 0)
    {
        unlink(name.c_str());
        return false;
    }
    return true;
}
