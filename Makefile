# make demo    both questions, answered on this machine
# make test    everything that has a right answer; ends in "N passed, N failed"
# make bench   speed, beside what it is compared with: DEVICE=cuda:0, plain C, PyTorch,
#              CuPy and numba (ARGS="--quick", examples/peers/run.py)
# make run SCRIPT=experiment.lua [ARGS="n=1000"]
# make clean
#
# Each sets up what it needs: with apt as root, else it says what to type.
BUILD ?= build
export BUILD
export LUA_PATH_5_4 := $(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;$(CURDIR)/?.lua;$(or $(LUA_PATH_5_4),$(LUA_PATH),;)
export LUA_CPATH_5_4 := $(abspath $(BUILD))/?.so;$(or $(LUA_CPATH_5_4),$(LUA_CPATH),;)

.PHONY: demo test bench run clean

demo:
	@sh .ci/install build
	@sh .ci/build
	@lua5.4 examples/launch_queue.lua
	@echo
	@lua5.4 examples/instant_matmul.lua

test:
	@sh .ci/install build test
	@sh .ci/build -DTIDELOCK_TESTS=ON
	@sh .ci/test

bench:
ifeq ($(findstring cuda,$(DEVICE)),cuda)
	@sh .ci/install build
	@sh .ci/build
	@python3 examples/peers/run.py --device $(DEVICE) --tidelock $(BUILD) $(ARGS)
else
	@sh .ci/install build bench
	@sh .ci/build -DTIDELOCK_BENCH=ON
	@cmake --build $(BUILD) --target bench
endif

run:
	@test -n "$(SCRIPT)" || { echo "make run SCRIPT=experiment.lua"; exit 2; }
	@sh .ci/install build
	@sh .ci/build
	@LUA_PATH_5_4="$(dir $(SCRIPT))?.lua;$$LUA_PATH_5_4" lua5.4 "$(SCRIPT)" $(ARGS)

clean:
	rm -rf $(BUILD)
