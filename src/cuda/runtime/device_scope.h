/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The device that is current while a function of the library runs. */
#ifndef FMM_CUDA_DEVICE_SCOPE_H
#define FMM_CUDA_DEVICE_SCOPE_H

#include <cuda_runtime.h>

/* Makes a device the current one of the thread until the end of a scope. */
class DeviceScope
{
  public:
    explicit DeviceScope(int id)
    {
        if (cudaGetDevice(&before_) != cudaSuccess)
        {
            before_ = -1;
        }
        if (before_ != id)
        {
            cudaSetDevice(id);
        }
        changed_ = before_ != id && before_ >= 0;
    }
    ~DeviceScope()
    {
        if (changed_)
        {
            cudaSetDevice(before_);
        }
    }
    DeviceScope(const DeviceScope&)            = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

  private:
    int  before_  = -1;
    bool changed_ = false;
};

#endif
