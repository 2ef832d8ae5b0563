# The octree's operators on the device, into gmxfmm_octree (objects): included by CMakeLists.txt.
set(objects "")
set(instances "")
option(GMXFMM_CUDA_ALL_ORDERS "Compile rotation on the device for orders to 24, not 8 (a quarter of an hour)" ON)
if(GMXFMM_CUDA_ALL_ORDERS)
    set(last_order 24)
else()
    set(last_order 8)
endif()
foreach(order RANGE ${last_order}) # FMM_ROTATION_ORDERS of rotation_orders.h
    foreach(real float double)
        foreach(kernel turn translate)
            set(instance ${CMAKE_CURRENT_BINARY_DIR}/m2l_rotation_${kernel}_${real}_${order}.cu)
            file(CONFIGURE OUTPUT ${instance} CONTENT
"#define FMM_ORDER ${order}
#define FMM_REAL ${real}
#define FMM_KERNEL ${kernel}
#include \"m2l_rotation_order.cu\"
" @ONLY)
            list(APPEND instances ${instance})
        endforeach()
    endforeach()
endforeach()
add_library(gmxfmm_octree OBJECT
    octree_lists.cu octree_tables.cu m2m.cu l2l.cu m2l_naive.cu m2l_symmetric.cu m2l_rotation.cu octree_strain.cu
    ${instances})
# Launches from the device need device code that is linked: here, so that nobody else has to.
add_library(gmxfmm_octree_dynamic OBJECT m2l_dynamic.cu)
set_target_properties(gmxfmm_octree_dynamic PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
foreach(target gmxfmm_octree gmxfmm_octree_dynamic)
    target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src/fmm)
    target_compile_features(${target} PRIVATE cuda_std_17)
    target_compile_options(${target} PRIVATE
        -O3 -Xcompiler=-Wall,-Wextra -Werror=all-warnings -Wno-deprecated-gpu-targets -diag-suppress=177)
    if(NOT GMXFMM_CUDA_ALL_ORDERS)
        target_compile_definitions(${target} PRIVATE FMM_FEW_ORDERS)
    endif()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_VISIBILITY_PRESET hidden)
    target_sources(gmxfmm PRIVATE $<TARGET_OBJECTS:${target}>)
endforeach()
set(linked ${CMAKE_CURRENT_BINARY_DIR}/m2l_dynamic_link.o)
add_custom_command(OUTPUT ${linked}
    COMMAND ${CMAKE_CUDA_COMPILER} -arch=sm_${CMAKE_CUDA_ARCHITECTURES} -Xcompiler=-fPIC -dlink
            $<TARGET_OBJECTS:gmxfmm_octree_dynamic> -o ${linked} -lcudadevrt
    DEPENDS gmxfmm_octree_dynamic $<TARGET_OBJECTS:gmxfmm_octree_dynamic>
    COMMAND_EXPAND_LISTS)
set_source_files_properties(${linked} TARGET_DIRECTORY gmxfmm PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
add_custom_target(gmxfmm_octree_linked DEPENDS ${linked})
add_dependencies(gmxfmm gmxfmm_octree_linked)
target_sources(gmxfmm PRIVATE ${linked})
