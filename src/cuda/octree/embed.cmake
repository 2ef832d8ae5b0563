# Writes OUTPUT, a source with SOURCES (paths from src, the working directory, separated by |; that is how they include
# each other) as text: cmake -DOUTPUT= -DSOURCES= -P embed.cmake
string(REPLACE "|" ";" paths "${SOURCES}")
set(text "/* Written by embed.cmake. */\n#include \"cuda/octree/runtime_compiler.h\"\n\nextern const SourceFile fmm_rotation_sources[];\nextern const int fmm_num_rotation_sources;\nconst SourceFile fmm_rotation_sources[] = {\n")
set(num 0)
foreach(path IN LISTS paths)
    file(READ "${path}" source)
    string(APPEND text "{\"${path}\", R\"fmm_source(${source})fmm_source\"},\n")
    math(EXPR num "${num} + 1")
endforeach()
string(APPEND text "};\nconst int fmm_num_rotation_sources = ${num};\n")
file(WRITE "${OUTPUT}" "${text}")
