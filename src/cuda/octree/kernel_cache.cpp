/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and writes files of machine code: a header with key and checksum, then the code. */
#include "cuda/octree/kernel_cache.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
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

/* Whether what stands behind a descriptor is the user's, and nobody else may write there. */
static bool is_own(int descriptor, struct stat* about)
{
    return fstat(descriptor, about) == 0 && about->st_uid == geteuid() && (about->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens a file that is the user's own in a folder that is: code from it will run on a device. */
static FILE* open_own(const std::string& file, struct stat* about)
{
    const size_t      slash  = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash + 1);
    const std::string name   = slash == std::string::npos ? file : file.substr(slash + 1);
    const int         in     = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0)
    {
        return nullptr;
    }
    const int number = is_own(in, about) ? openat(in, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    close(in);
    FILE* opened = number >= 0 && is_own(number, about) ? fdopen(number, "rb") : nullptr;
    if (opened == nullptr && number >= 0)
    {
        close(number);
    }
    return opened;
}

bool fmm_cache_read(const std::string& file, uint64_t key, std::vector<char>* code)
{
    code->clear();
    struct stat                        about;
    const std::unique_ptr<FILE, Close> in(open_own(file, &about));
    CacheHeader                        header;
    if (!in || !S_ISREG(about.st_mode) || fread(&header, sizeof(header), 1, in.get()) != 1 ||
        memcmp(header.magic, c_magic, sizeof(c_magic)) != 0 || header.key != key || header.size == 0 ||
        header.size != static_cast<uint64_t>(about.st_size) - sizeof(header))
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
