# Builds the octree's operators on the device as object libraries gmxfmm_octree*; included by ../CMakeLists.txt.
set(objects "")
set(instances "")
# Orders can be compiled when a plan asks for them, which needs the library interface of the CUDA runtime, from 12.8 on.
if(CUDAToolkit_VERSION VERSION_LESS 12.8)
    set(all_orders ON)
else()
    set(all_orders OFF)
endif()
option(GMXFMM_CUDA_ALL_ORDERS
    "Compile rotation on the device for orders to 24 (a quarter of an hour); OFF: to 8, others at run time by NVRTC" ${all_orders})
if(GMXFMM_CUDA_ALL_ORDERS)
    set(last_order 24)
elseif(all_orders)
    message(FATAL_ERROR "GMXFMM_CUDA_ALL_ORDERS=OFF needs CUDA 12.8 or later, this is ${CUDAToolkit_VERSION}")
else()
    set(last_order 8)
endif()
foreach(order RANGE ${last_order}) # FMM_ROTATION_ORDERS of rotation_orders.h
    foreach(real float double)
        foreach(kernel rotate_sources translate)
            set(instance ${CMAKE_CURRENT_BINARY_DIR}/m2l_rotation_${kernel}_${real}_${order}.cu)
            file(CONFIGURE OUTPUT ${instance} CONTENT
"#define FMM_ORDER ${order}
#define FMM_REAL ${real}
#define FMM_KERNEL ${kernel}
#include \"cuda/octree/m2l_rotation_order.cu\"
" @ONLY)
            list(APPEND instances ${instance})
        endforeach()
    endforeach()
endforeach()
add_library(gmxfmm_octree OBJECT
    octree/lists.cu octree/tables.cu octree/m2m.cu octree/l2l.cu octree/m2l_naive.cu octree/m2l_symmetric.cu
    octree/m2l_rotation.cu octree/strain.cu ${instances})
# Launches from the device need device linking, which is done here, so that programs need not do it.
add_library(gmxfmm_octree_dynamic OBJECT octree/m2l_dynamic.cu)
set_target_properties(gmxfmm_octree_dynamic PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
# Compiles the other orders at run time, from the same sources, which are embedded as text.
set(sources cuda/octree/m2l_rotation_order.cu cuda/octree/rotation_kernels.h cuda/octree/rotation_arguments.h
    cuda/octree/rotation_rows.h cuda/octree/rotation_orders.h fmm/math/host_device.h fmm/math/harmonics.h fmm/math/rotation.h)
list(JOIN sources "|" joined)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE paths)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/rotation_sources.cpp)
add_custom_command(OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${embedded} -DSOURCES=${joined} -P ${CMAKE_CURRENT_SOURCE_DIR}/octree/embed.cmake
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/src
    DEPENDS ${paths} octree/embed.cmake
    VERBATIM)
add_library(gmxfmm_octree_load OBJECT octree/rotation_load.cpp)
if(NOT GMXFMM_CUDA_ALL_ORDERS)
    target_sources(gmxfmm_octree_load PRIVATE
        octree/runtime_compiler.cpp octree/kernel_cache.cpp octree/rotation_compile.cpp ${embedded})
endif()
target_include_directories(gmxfmm_octree_load SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_features(gmxfmm_octree_load PRIVATE cxx_std_17)
target_compile_options(gmxfmm_octree_load PRIVATE ${GMXFMM_WARNINGS})
target_compile_definitions(gmxfmm_octree_load PRIVATE FMM_NVRTC_FOLDER="${CUDAToolkit_LIBRARY_DIR}")
foreach(target gmxfmm_octree gmxfmm_octree_dynamic)
    target_compile_features(${target} PRIVATE cuda_std_17)
    target_compile_options(${target} PRIVATE
        -O3 -Xcompiler=-Wall,-Wextra ${GMXFMM_CUDA_WERROR} -Wno-deprecated-gpu-targets -diag-suppress=177)
endforeach()
foreach(target gmxfmm_octree gmxfmm_octree_dynamic gmxfmm_octree_load)
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    if(NOT GMXFMM_CUDA_ALL_ORDERS)
        target_compile_definitions(${target} PRIVATE FMM_FEW_ORDERS)
    endif()
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
    gmxfmm_add_objects(${target})
endforeach()
set(linked ${CMAKE_CURRENT_BINARY_DIR}/m2l_dynamic_link.o)
gmxfmm_gencode(gencode)
add_custom_command(OUTPUT ${linked}
    COMMAND ${CMAKE_CUDA_COMPILER} ${gencode} -Xcompiler=-fPIC -dlink
            $<TARGET_OBJECTS:gmxfmm_octree_dynamic> -o ${linked} -lcudadevrt
    DEPENDS gmxfmm_octree_dynamic $<TARGET_OBJECTS:gmxfmm_octree_dynamic>
    COMMAND_EXPAND_LISTS)
set_source_files_properties(${linked} TARGET_DIRECTORY gmxfmm PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
add_custom_target(gmxfmm_octree_linked DEPENDS ${linked})
foreach(library ${GMXFMM_LIBRARIES})
    add_dependencies(${library} gmxfmm_octree_linked)
    target_sources(${library} PRIVATE ${linked})
endforeach()
