# What is installed: libraries, headers, program with its manual page, and what CMake and pkg-config find them by.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gmxfmm)

# A set for each library, so that who links the shared one need not have what the static one is linked with.
install(TARGETS gmxfmm EXPORT gmxfmm-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gmxfmm-static NAMESPACE gmxfmm:: DESTINATION ${package_dir})
if(TARGET gmxfmm_shared)
    install(TARGETS gmxfmm_shared EXPORT gmxfmm-shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT gmxfmm-shared NAMESPACE gmxfmm:: DESTINATION ${package_dir})
endif()
install(FILES src/fmm/gmxfmm.h src/fmm/gmxfmm_measure.h src/fmm/gmxfmm_parallel.h src/fmm/gmxfmm_mpi.h src/fmm/gmxfmm_sites.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file(cmake/gmxfmm-config.cmake.in ${PROJECT_BINARY_DIR}/gmxfmm-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gmxfmm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gmxfmm-config.cmake ${PROJECT_BINARY_DIR}/gmxfmm-config-version.cmake
    cmake/FindgmxfmmDeviceRuntime.cmake DESTINATION ${package_dir})

# pkg-config: Libs.private is what the static library is linked with (pkg-config --static)
set(static_libs -lm)
list(TRANSFORM OpenMP_C_FLAGS STRIP OUTPUT_VARIABLE openmp)
if(APPLE)
    set(openmp ${OpenMP_C_LIBRARIES}) # the flags are of its compiler alone
endif()
list(APPEND static_libs ${openmp})
if(GMXFMM_CUDA)
    list(APPEND static_libs -L${CUDAToolkit_LIBRARY_DIR} -lcufft -lcudadevrt -lcudart_static -lrt -ldl -lstdc++)
endif()
list(JOIN static_libs " " GMXFMM_STATIC_LIBS)
file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/gmxfmm.pc.in ${PROJECT_BINARY_DIR}/gmxfmm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gmxfmm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET gmxfmm-program)
    install(TARGETS gmxfmm-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    if(TARGET gmxfmm-mpi)
        install(TARGETS gmxfmm-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
    install(FILES src/program/gmxfmm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES src/program/completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME gmxfmm)
    install(FILES src/program/completion.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _gmxfmm)
endif()
