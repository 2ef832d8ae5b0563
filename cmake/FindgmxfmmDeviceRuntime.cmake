# The runtime for launches from the device, which FindCUDAToolkit does not offer: target gmxfmm::device_runtime.
find_library(GMXFMM_cudadevrt_LIBRARY cudadevrt HINTS ${CUDAToolkit_LIBRARY_DIR})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(gmxfmmDeviceRuntime
    REASON_FAILURE_MESSAGE "libcudadevrt is part of the CUDA Toolkit" REQUIRED_VARS GMXFMM_cudadevrt_LIBRARY)
if(gmxfmmDeviceRuntime_FOUND AND NOT TARGET gmxfmm::device_runtime)
    add_library(gmxfmm::device_runtime INTERFACE IMPORTED)
    target_link_libraries(gmxfmm::device_runtime INTERFACE ${GMXFMM_cudadevrt_LIBRARY})
endif()
