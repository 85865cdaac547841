# The kernels, as text and where nvcc works as fat binaries, for the assembler to
# put into the library. -DTIDELOCK_NVCC= names an nvcc that must work; OFF: none.
find_program(TIDELOCK_NVCC_FOUND nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin
  PATHS /usr/local/cuda/bin)
mark_as_advanced(TIDELOCK_NVCC_FOUND)
set(TIDELOCK_NVCC "${TIDELOCK_NVCC_FOUND}" CACHE STRING "CUDA compiler; OFF: none")

# Whether this nvcc compiles a kernel: it may lack a host compiler that it takes.
function(nvcc_check)
  if(TIDELOCK_NVCC_WORKS STREQUAL "${TIDELOCK_NVCC}")
    return()
  endif()
  execute_process(COMMAND ${TIDELOCK_NVCC} -ptx -o ${PROJECT_BINARY_DIR}/nvcc_check.ptx
    ${PROJECT_SOURCE_DIR}/kernels/time.cu
    RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT failed)
    set(TIDELOCK_NVCC_WORKS "${TIDELOCK_NVCC}" CACHE INTERNAL "the nvcc that has been tried")
  elseif(NOT TIDELOCK_NVCC STREQUAL TIDELOCK_NVCC_FOUND)
    message(FATAL_ERROR "${TIDELOCK_NVCC} does not compile (-DTIDELOCK_NVCC=OFF builds "
      "without it):\n${said}")
  else()
    string(REGEX REPLACE "\n.*" "" reason "${said}")
    message(STATUS "CUDA kernels: ${TIDELOCK_NVCC} does not compile: ${reason}")
    set(TIDELOCK_NVCC OFF PARENT_SCOPE) # tried again the next time
  endif()
endfunction()

# Embeds the files into the target through this source.
function(kernels_embed source)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cu)
  set(embedded ${kernels} ${PROJECT_SOURCE_DIR}/kernels/philox.h)
  set(options "-Wa,-I${PROJECT_SOURCE_DIR}")
  if(TIDELOCK_NVCC)
    nvcc_check()
  endif()
  if(TIDELOCK_NVCC)
    set(folder ${PROJECT_BINARY_DIR}/kernels)
    file(MAKE_DIRECTORY ${folder})
    foreach(kernel ${kernels})
      get_filename_component(name ${kernel} NAME_WE)
      set(fatbin ${folder}/${name}.fatbin)
      add_custom_command(OUTPUT ${fatbin}
        COMMAND sh ${PROJECT_SOURCE_DIR}/kernels/fatbin.sh ${TIDELOCK_NVCC} ${kernel} ${fatbin}
        DEPENDS ${kernel} ${PROJECT_SOURCE_DIR}/kernels/philox.h
          ${PROJECT_SOURCE_DIR}/kernels/fatbin.sh
        COMMENT "kernels/${name}.cu for every GPU" VERBATIM)
      list(APPEND embedded ${fatbin})
    endforeach()
    list(APPEND options "-Wa,-I${folder}")
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS TL_CUDA_FATBINS)
    message(STATUS "CUDA kernels: machine code by ${TIDELOCK_NVCC}, which takes a minute or two")
  else()
    message(STATUS "CUDA kernels: as text, for NVRTC to compile at their first use (no nvcc)")
  endif()
  set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS "${embedded}")
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
endfunction()
