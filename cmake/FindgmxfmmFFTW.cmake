# FFTW in both precisions with its thread-safe planner: target gmxfmm::fftw.
find_path(GMXFMM_FFTW_INCLUDE_DIR fftw3.h)
set(_gmxfmm_fftw_libraries)
foreach(_name fftw3f_threads fftw3_threads fftw3f fftw3)
    find_library(GMXFMM_${_name}_LIBRARY ${_name})
    list(APPEND _gmxfmm_fftw_variables GMXFMM_${_name}_LIBRARY)
    list(APPEND _gmxfmm_fftw_libraries ${GMXFMM_${_name}_LIBRARY})
endforeach()
find_package(Threads QUIET)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(gmxfmmFFTW
    REASON_FAILURE_MESSAGE "install FFTW 3.3.5 or later in both precisions (Debian: libfftw3-dev)"
    REQUIRED_VARS GMXFMM_FFTW_INCLUDE_DIR ${_gmxfmm_fftw_variables} Threads_FOUND)
if(gmxfmmFFTW_FOUND AND NOT TARGET gmxfmm::fftw)
    add_library(gmxfmm::fftw INTERFACE IMPORTED)
    target_include_directories(gmxfmm::fftw INTERFACE ${GMXFMM_FFTW_INCLUDE_DIR})
    target_link_libraries(gmxfmm::fftw INTERFACE ${_gmxfmm_fftw_libraries} Threads::Threads)
endif()
