# The kernels, as text and where nvcc is there as fat binaries, for the assembler
# to put into the library. -DTIDELOCK_NVCC=OFF builds without nvcc.
find_program(TIDELOCK_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin
  PATHS /usr/local/cuda/bin DOC "CUDA compiler; OFF: none")

# Embeds the files into the target through this source.
function(kernels_embed target source)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cu)
  set(embedded ${kernels} ${PROJECT_SOURCE_DIR}/kernels/philox.h)
  set(options "-Wa,-I${PROJECT_SOURCE_DIR}")
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
    message(STATUS "CUDA kernels: machine code by ${TIDELOCK_NVCC}")
  else()
    message(STATUS "CUDA kernels: compiled on the GPU's machine by NVRTC (no nvcc here)")
  endif()
  set_property(SOURCE ${source} APPEND PROPERTY OBJECT_DEPENDS "${embedded}")
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${options})
endfunction()
