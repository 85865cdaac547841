---@meta tidelock.core

-- The C module. `require "tidelock"` returns its functions, and `await`, which is written in Lua.
--
-- Units: seconds, bytes, launches. Indices count from 1. The last argument of what enqueues is a
-- stream, or a table of options; without one, the device's default stream is used. What enqueues
-- returns at once, except into a full queue, where it waits for a free slot. What reads back waits
-- for all recorded uses of the buffer, on every stream.
--
-- Errors: a wrong argument, shape or state and a closed object raise a string, before anything is
-- queued. An operation that failed raises a `tidelock.failure`. A wait can be interrupted: a
-- hook (Ctrl-C in the standalone interpreter) runs about every 50 ms meanwhile.

---@class tidelock.core
---@field version string "major.minor.patch"
local core = {}

---@alias tidelock.dtype "float32" | "float64" | "float16" | "bfloat16" | "int32" | "int8"

--- 1 to 3 dimensions of at least 0 elements; an integer is one dimension.
---@alias tidelock.shape integer | integer[]

--- Numbers in row order: nested as the shape is, or flat.
---@alias tidelock.data number[] | number[][] | number[][][]

---@alias tidelock.code
---| "out_of_memory" # with asked, live, free, limit, buffers
---| "device_lost" # the device has faulted; every call repeats why
---| "timed_out" # a time limit that is the device's own ran out
---| "limit" # a limit set at open was reached
---| "unsupported" # this device or this build cannot do it
---| "driver" # a driver, a library or the system failed
---| "io" # a file could not be read or written
---| "would_block" # it would wait, and waiting is forbidden
---| "race" # on "sim": nothing orders two uses of the same elements; "E-RACE: ..." names both

--- What a failed operation raises; `tostring` gives the message.
---@class tidelock.failure
---@field code tidelock.code
---@field message string one line, cause last
---@field where string "script.lua:12: ", or empty; tostring puts it in front
---@field asked integer? out of memory: bytes that were wanted
---@field live integer? out of memory: bytes held by open buffers
---@field free integer? out of memory: bytes that may still be allocated
---@field limit integer? out of memory: the device's limit in bytes
---@field buffers integer? out of memory: open buffers

---@class tidelock.device_options
---@field memory_limit integer? bytes that buffers may hold; default: what the device has
---@field queue_depth integer? launches that a stream holds, 1 to 1048576; default 1024 on host
---and sim, the driver's own number, which it does not tell, on CUDA
---@field wait "block"|"spin"? how a thread waits: asleep (default), or polling on a busy core
---@field blocking_launches boolean? each launch waits for its own end, for debugging; default false
---@field faults tidelock.faults? failures to inject, for tests
---@field sim tidelock.simulation? what "sim", the device of virtual time, is made of; no other's

--- The model of "sim", a discrete-event one in virtual time, which starts at 0 and has a step of
--- 1 ns. On the host each call takes its cost, and nothing else takes any time: a script's own
--- work is `device:sleep`. A call that needs slots of a full queue waits for them first. On the
--- device an operation starts when its stream has done what was before it, when `launch_latency`
--- has passed since the call returned, and when the events that the stream waits for are done. A
--- launch then takes `kernel_gap` and its work: the larger of operations / rate and bytes /
--- bandwidth, after the fixed time of a product by "blas"; a spin takes its own length. What is
--- absent is the preset's: one H200, as measured (README). Seconds, operations and bytes per
--- second; at least 0, and rates above 0.
---@class tidelock.simulation
---@field launch_cost number? host: a launch of any kind, or a gate; 3.1e-6
---@field launch_latency number? from the call's return to the earliest start; 2e-6
---@field kernel_gap number? device: before the work of each launch; 1.3e-6
---@field event_cost number? host: a record with timing; 1.2e-6
---@field event_time number? device: the same; the event's time is its end; 1.28e-6
---@field untimed_event_cost number? host: a record without timing, which takes no time on the
---device; 0.161e-6
---@field wait_event_cost number? host: stream:wait_event; 0.161e-6
---@field sync_cost number? host: every wait, also for what is done; 0.355e-6
---@field sync_latency number? from the end of the work until a waiter wakes; 2e-6
---@field query_cost number? host: done, inflight, and what subtracting events asks; 0.208e-6
---@field clock_cost number? host: device:now, stamp:elapsed, device:memory; 25e-9. With 0 a loop
---that only reads the clock does not end
---@field allocate_cost number? host: memory of a buffer; 0.71e-6
---@field first_call number? host: more for the first matmul of each kernel; 0
---@field launch_slots integer? of the queue that a launch takes until it is done; 1
---@field event_slots integer? a record with timing; 1
---@field untimed_event_slots integer? a record without; 0
---@field wait_event_slots integer? a wait for an event; 0
---@field gate_slots integer? a gate; 3
---@field float32_rate number? of matmul by kernel "blas"; 51.5e12
---@field float64_rate number? 56e12
---@field float16_rate number? 776e12
---@field bfloat16_rate number? 800e12
---@field naive_rate number? of kernel "naive", every dtype; 0.5e12
---@field tiled_rate number? of kernel "tiled", every dtype; 10.9e12
---@field memory_bandwidth number? 4.8e12
---@field host_bandwidth number? what moves between host and device; 50e9
---@field kernel_time number? the work of every launch but a spin, instead of what rates and
---bandwidth say; 0: off
---@field l2_cache_size integer? bytes, for properties(): no cache is modelled; 50 MiB
---@field launch_jitter number? launch costs are log-normal around launch_cost, with blas_cost where
---that is due, as their median; this is the standard deviation of their logarithm; 0
---@field kernel_jitter number? the same for the work of all launches but spins; 0
---@field spike_share number? of the launches, 0 to 1: those cost `spike_time` more, at random; 0
---@field spike_time number? 0
---@field drift_per_second number? work, but spins, takes that share longer for each second of its
---start since the device was opened; 0
---@field drift_per_launch number? the same for each launch made before; 0
---@field throttle_after number? work, but spins, that starts from then on runs at; 0
---@field throttle_factor number? that share of its speed, at most 1; 1
---@field throttle_rest number? after so long without such work throttle_after counts anew, from
---the next one; 0: it never does
---@field seed integer? of jitter and spikes; the same seed gives the same numbers; 0
---@field no_values boolean? nothing is computed, for models too large to compute: buffers keep what
---they have; false
---@field blas_cost number? host: more for each product by kernel "blas"; 14e-6
---@field float32_time number? device: more for such a product, whatever its size; 9e-6
---@field float64_time number? 4.3e-6
---@field float16_time number? 3.8e-6
---@field bfloat16_time number? 4.8e-6

---@class tidelock.stream_options
---@field stream tidelock.stream? default: the device's default stream

---@class tidelock.fill_options: tidelock.stream_options
---@field dtype tidelock.dtype? default "float32"

---@class tidelock.random_options: tidelock.fill_options
---@field seed integer? any; default 0

---@class tidelock.matmul_options: tidelock.stream_options
---@field kernel string? a name of device:matmul_kernels(), or "auto" (default): the best there is
---@field compute string? the type to accumulate in; default: what the dtypes imply
---@field transpose_a boolean? a holds op(a) transposed; default false
---@field transpose_b boolean? b holds op(b) transposed; default false
---@field alpha number? default 1
---@field beta number? default 0: c is not read

---@alias tidelock.matmul_last tidelock.stream | tidelock.matmul_options

---@class tidelock.device_info
---@field id string "cuda:0", "host", "sim"
---@field name string of the processor
---@field backend string "cuda", "host", "sim"

---@class tidelock.kernel_info
---@field name string for the option `kernel`
---@field dtypes string[] that it takes
---@field shapes string that it takes, in words
---@field available boolean
---@field note string how it works, or why it is not available

---@class tidelock.memory_info
---@field live integer bytes held by open buffers
---@field peak integer the highest that live has been
---@field cached integer bytes kept back by the allocator
---@field pending integer bytes of closed buffers that queued work still uses
---@field free integer bytes that may still be allocated
---@field total integer bytes the device has
---@field limit integer bytes that buffers may hold
---@field buffers integer open buffers with memory of their own
---@field objects integer buffers, views, streams, events and gates alive
---@field allocations integer buffers with memory of their own that were ever made

--- What the device does not have is absent.
---@class tidelock.properties
---@field name string
---@field id string
---@field backend string
---@field compute_capability string?
---@field max_threads_per_block integer?
---@field max_block_dim integer[] three
---@field max_grid_dim integer[] three
---@field max_shared_memory_per_block integer? bytes
---@field async_engine_count integer? copies that overlap with kernels
---@field can_map_host_memory boolean
---@field multiprocessor_count integer?
---@field warp_size integer?
---@field unified_addressing boolean
---@field pci_bus_id integer?
---@field pci_device_id integer?
---@field l2_cache_size integer? bytes
---@field clock_rate integer? Hz
---@field driver_version integer?
---@field total_memory integer? bytes
---@field queue_depth integer? launches that a stream holds before one waits; nil: not told
---@field memory_clock_rate integer? Hz, the highest
---@field memory_bus_width integer? bits
---@field power_limit integer? W
---@field sm_clock integer? Hz, at this moment
---@field memory_clock integer? Hz, at this moment
---@field throttle_reasons string[]? what holds the clocks back at this moment, as NVML names it
---@field other_processes integer? that have the GPU open at this moment; nil: not told
---@field mig boolean? whether it is a slice of a GPU, as MIG makes them; nil: not told
---@field mps boolean? whether MPS runs kernels of several processes at a time; nil: not told
---@field precision_override string? environment variables that change what matmul computes with
---@field sim tidelock.simulation? the settings in use, none absent, where time is virtual

--- W-INFLIGHT, W-BACKLOG and W-CHARGED have the first four, W-NOCUDA the reason, W-PRECISION the
--- override.
---@class tidelock.warning_details
---@field seconds number? the difference that the warning is about
---@field least integer? launches in flight, at least
---@field most integer? launches in flight, at most
---@field made integer? launches that were made
---@field waited number? of W-CHARGED: seconds that reads and writes waited
---@field reason string? why no GPU is used
---@field override string? environment variables that change what matmul computes with
---@field where string "script.lua:12: ", or empty

---@alias tidelock.handler fun(code: string, message: string, details: tidelock.warning_details)

-- ---- the module -----------------------------------------------------------------------------

--- Opens a device; an id that is open already gives the same object. Other options than it was
--- opened with, an unknown option and a malformed ordinal raise a string; a device that is not
--- there raises code "unsupported", with the reason, or "driver" where there is a driver that
--- can't be used. Warns W-NOCUDA where the host is taken for want of a GPU though a driver is
--- there, and W-PRECISION where the environment changes the precision of products. The host starts
--- no thread and loads no library; a GPU's context takes tenths of a second, once in a process.
---@param id string? "cuda:0" is a GPU by CUDA's own ordinal, "cuda" the first; "host" is "host:0";
--- up to "host:7" are devices of their own; "sim" to "sim:7" have virtual time; nil:
--- the environment variable TIDELOCK_DEVICE, else the first GPU, else "host"
---@param options tidelock.device_options?
---@return tidelock.device
function core.device(id, options) end

--- Lists the devices that are present.
---@return tidelock.device_info[]
function core.devices() end

--- Says whether the id names a device that can be opened, and if not, why.
---@param id string
---@return boolean available
---@return string? reason
function core.available(id) end

--- Enqueues c = alpha * op(a) * op(b) + beta * c and returns c: op(a) is m x k, op(b) k x n and c
--- m x n, or all three have the same number of such matrices in front. Without c a new buffer is
--- made on that stream, and beta must be 0. Raises for shapes and dtypes that do not go together,
--- for operands or a stream of another device, and for a c that overlaps a or b; raises code
--- "unsupported" for a kernel or a compute type that is not to be had (an unknown kernel is a
--- wrong argument: a string). With alpha = 0 or k = 0 neither a nor b is
--- read, with beta = 0 c is not.
---@param a tidelock.buffer
---@param b tidelock.buffer
---@param c tidelock.buffer?
---@param options tidelock.matmul_last?
---@return tidelock.buffer c
---@overload fun(a, b, options: tidelock.matmul_last): tidelock.buffer
function core.matmul(a, b, c, options) end

--- Sets who is told of warnings, and returns who was before; nil silences them, no argument changes
--- nothing. The handler runs in the call that warns and may raise or yield.
---@param handler tidelock.handler?
---@return tidelock.handler? previous
function core.on_warning(handler) end

--- Makes an empty set of failures to inject, for tests: pass it to `device` as the option `faults`.
---@return tidelock.faults
function core.faults() end

--- Adds methods, written in Lua, to a class, in this Lua state. A method that was added in the same
--- way is replaced; one of the C module raises. It is how tidelock adds its own.
---@param class string "device", "buffer", ...
---@param methods table<string, function>
function core.extend(class, methods) end

-- ---- devices --------------------------------------------------------------------------------

--- One processor with its memory and its streams.
---@class tidelock.device
local device = {}

--- Returns the id as the device itself gives it: "host" for "host:0".
---@return string
function device:id() end

--- Returns what the device is.
---@return tidelock.properties
function device:properties() end

--- Returns how much memory is used and left, in bytes, and how many objects are alive.
---@return tidelock.memory_info
function device:memory() end

--- Frees what closed objects have left and what the allocator keeps back.
function device:trim() end

--- Says whether the device has faulted, and why; every other call then raises that cause.
---@return boolean lost
---@return string? cause
function device:is_lost() end

--- Returns the message of the last clean-up that failed, or nil.
---@return string?
function device:last_cleanup_error() end

--- Reads the monotonic wall clock, on "sim" the device's own, and notes what every stream has in
--- flight.
---@return tidelock.stamp
function device:now() end

--- Reads the clock that stamps are read from, and nothing else: seconds since some moment. Cheaper
--- than a stamp, and without its warnings.
---@return number seconds
function device:clock() end

--- Returns how many launches have been made on the device so far, on all streams.
---@return integer
function device:launches() end

--- Waits until all streams of the device have done what was enqueued so far.
---@param seconds number? a time limit of at least 0; default: none
---@return boolean reached false: the time limit came first
function device:synchronize(seconds) end

--- Lets that much time pass on the clock that `now` reads, and waits for no work: on "sim" it
--- moves, elsewhere the thread sleeps.
---@param seconds number 0 to 1e6
function device:sleep(seconds) end

--- Lists the matmul kernels with what they accept, from the simplest up.
---@return tidelock.kernel_info[]
function device:matmul_kernels() end

--- Returns the stream that is used where none is given: an ordinary one, always the same.
---@return tidelock.stream
function device:default_stream() end

--- Makes a stream: in order within itself, nothing implied between streams.
---@return tidelock.stream
function device:stream() end

--- Makes an event, to be recorded later; without timing it takes no slot of the queue and has no
--- time to subtract.
---@param options { timing: boolean? }? timing: default true
---@return tidelock.event
function device:event(options) end

--- Makes a buffer of undefined contents in memory of the host, which the device copies from and to
--- by itself: for transfers that do not wait. It has no part in the device's memory limit.
---@param shape tidelock.shape
---@param dtype tidelock.dtype? default "float32"
---@return tidelock.buffer
function device:pinned(shape, dtype) end

--- Makes a buffer of undefined contents. Raises for a negative size, or when the bytes overflow;
--- code "out_of_memory" after collecting garbage, waiting for what is pending, and one more try.
---@param shape tidelock.shape
---@param dtype tidelock.dtype? default "float32"
---@return tidelock.buffer
function device:empty(shape, dtype) end

--- Makes a buffer of zeros, filled on the stream. Raises as `empty` does.
---@param shape tidelock.shape
---@param dtype (tidelock.dtype | tidelock.stream | tidelock.fill_options)? default "float32"
---@param stream (tidelock.stream | tidelock.stream_options)? only behind a dtype's name
---@return tidelock.buffer
function device:zeros(shape, dtype, stream) end

--- Makes a buffer of one value, rounded once to the dtype, filled on the stream. Raises as `empty`.
---@param shape tidelock.shape
---@param value number
---@param dtype (tidelock.dtype | tidelock.stream | tidelock.fill_options)? default "float32"
---@param stream (tidelock.stream | tidelock.stream_options)? only behind a dtype's name
---@return tidelock.buffer
function device:full(shape, value, dtype, stream) end

--- Makes a buffer of random numbers, uniform on [0, 1), filled on the stream. They depend on the
--- seed, the dtype and an element's place in row order alone: the same call gives the same numbers
--- on every device, and a longer buffer starts as a shorter one. Multiples of 2^-24 (float32),
--- 2^-53 (float64), 2^-11 (float16) or 2^-8 (bfloat16). Raises as `empty`, and code "unsupported"
--- for an integer dtype.
---@param shape tidelock.shape
---@param dtype (tidelock.dtype | tidelock.stream | tidelock.random_options)? default "float32"
---@param stream (tidelock.stream | tidelock.stream_options)? only behind a dtype's name
---@return tidelock.buffer
function device:rand(shape, dtype, stream) end

--- Makes a buffer of random numbers, normally distributed with mean 0 and variance 1. All else is
--- as for `rand`; float16 and bfloat16 are the float32 number, rounded once.
---@param shape tidelock.shape
---@param dtype (tidelock.dtype | tidelock.stream | tidelock.random_options)? default "float32"
---@param stream (tidelock.stream | tidelock.stream_options)? only behind a dtype's name
---@return tidelock.buffer
function device:randn(shape, dtype, stream) end

--- Makes a buffer from a table, nested as its shape, or from a string of packed elements (one
--- dimension); the contents are there at once. Raises for a row of another length, an element that
--- is not a number, a length that is no multiple of the element size; else as `empty` does.
---@param data tidelock.data | string
---@param dtype tidelock.dtype? default "float32"
---@return tidelock.buffer
function device:array(data, dtype) end

--- Makes a buffer from a .npy file, versions 1 to 3, of either byte order and either order of
--- elements; the contents are there at once. A scalar gives the shape {1}. Raises code "io" for a
--- file that cannot be read or is no sound .npy file (fewer bytes, or more, than its header tells),
--- "unsupported" for dtypes and ranks that no buffer has, naming the file, before memory is asked
--- for; else as `empty` does.
---@param path string
---@return tidelock.buffer
function device:load_npy(path) end

--- Accepts no further calls, not through what was made on the device either; queued work still
--- runs. Idempotent, never waits.
function device:close() end

-- ---- buffers --------------------------------------------------------------------------------

--- An array in row order, or a view of one; `#buffer` is its first dimension.
---@class tidelock.buffer
---@operator len: integer
local buffer = {}

--- Returns the dimensions.
---@return integer[]
function buffer:shape() end

--- Returns the number of elements.
---@return integer
function buffer:size() end

--- Returns the bytes that the elements take, packed.
---@return integer
function buffer:nbytes() end

--- Returns the name of the element type.
---@return tidelock.dtype
function buffer:dtype() end

--- Returns the device that holds it.
---@return tidelock.device
function buffer:device() end

--- Writes all elements from a table, nested or flat, or from a string of packed elements that has
--- `nbytes()` bytes. Waits for all uses; the contents are there when it returns.
---@param data tidelock.data | string
function buffer:upload(data) end

--- Returns all elements as a table, nested as the shape. Waits for all uses.
---@return tidelock.data
function buffer:totable() end

--- Returns all elements packed in a string of `nbytes()` bytes. Waits for all uses.
---@return string
function buffer:tobytes() end

--- Returns one element. One index from 1 for each dimension; waits for all uses.
---@param i integer
---@param ... integer
---@return number
function buffer:get(i, ...) end

--- Writes one element, rounded once to the dtype: the indices as for `get`, then the value. Waits
--- for all uses.
---@param i integer
---@param ... number the further indices, then the value
function buffer:set(i, ...) end

--- Writes all elements to a .npy file, version 1, little-endian, in row order. Waits for all uses,
--- and until the file is on the disk. A file that is there is replaced as a whole: it has its old
--- contents or the new ones, and after a failure the old ones. Raises code "io" with the system's
--- reason, and "unsupported" for bfloat16, naming the file.
---@param path string
function buffer:save(path) end

--- Enqueues that every element becomes the value, rounded once to the dtype.
---@param value number
---@param stream (tidelock.stream | tidelock.stream_options)?
---@return tidelock.buffer self
function buffer:fill(value, stream) end

--- Enqueues a copy of all elements. The source has the same shape and dtype and does not overlap
--- the buffer, or it raises. From another device it first waits for every use of the source.
---@param source tidelock.buffer
---@param stream (tidelock.stream | tidelock.stream_options)?
---@return tidelock.buffer self
function buffer:copy_from(source, stream) end

--- Enqueues new contents, and does not wait. A string, of all bytes in row order, is taken over at
--- once; a pinned buffer has the same shape and dtype, and what is written into it waits for the
--- copy.
---@param source tidelock.buffer | string
---@param stream (tidelock.stream | tidelock.stream_options)?
---@return tidelock.buffer self
function buffer:upload_async(source, stream) end

--- Enqueues a copy into a pinned buffer of the same shape and dtype, and does not wait.
---@param pinned tidelock.buffer
---@param stream (tidelock.stream | tidelock.stream_options)?
---@return tidelock.pending
function buffer:download_async(pinned, stream) end

--- Makes a packed buffer of the same shape and enqueues the copy into it. Raises as `empty` does.
---@param stream (tidelock.stream | tidelock.stream_options)?
---@return tidelock.buffer
function buffer:clone(stream) end

--- Makes a buffer that shares the memory, and keeps it. `offset`: elements skipped, default 0;
--- `stride`: elements between the starts of rows, default: the length of a row; for three
--- dimensions {planes, rows}, or a number for rows, with the planes behind each other. Raises when
--- it does not fit into the buffer.
---@param options { shape: tidelock.shape, offset: integer?, stride: (integer | integer[])? }
---@return tidelock.buffer
function buffer:view(options) end

--- Makes a view of the same elements in another shape of the same size. Raises when the rows of the
--- buffer do not follow each other.
---@param shape tidelock.shape
---@return tidelock.buffer
function buffer:reshape(shape) end

--- Gives the memory back once queued work that uses it has run. Idempotent, never waits.
function buffer:close() end

-- ---- streams --------------------------------------------------------------------------------

--- A queue of launches: in order within itself, nothing implied between streams.
---@class tidelock.stream
local stream = {}

--- Enqueues a launch that occupies the stream for at least that long and does nothing.
---@param seconds number 0 to 1e6
function stream:spin(seconds) end

--- Waits until the stream has done what was enqueued so far.
---@param seconds number? a time limit of at least 0; default: none
---@return boolean reached false: the time limit came first
function stream:synchronize(seconds) end

--- Says whether all that was enqueued has run, event records and gates too.
---@return boolean
function stream:done() end

--- Returns how many launches were made and are not complete, at least and at most.
---@return integer least
---@return integer most
function stream:inflight() end

--- Returns how many launches have been made on the stream so far.
---@return integer
function stream:launches() end

--- Records the event behind all that was enqueued so far; without one, a new event with timing.
--- Takes a slot of the queue where the event has timing.
---@param event tidelock.event?
---@return tidelock.event
function stream:record(event) end

--- Makes what is enqueued from here on wait for the event as it was recorded last; a later record
--- changes nothing. Raises for an event that was never recorded, or of another device.
---@param event tidelock.event
function stream:wait_event(event) end

--- Makes what is enqueued from here on wait until the gate is opened, or until the device has
--- waited for `timeout` seconds (0 to 1e6, default 1). Takes no slot of the host's queue.
---@param options { timeout: number? }?
---@return tidelock.gate
function stream:gate(options) end

--- Returns the device that runs it.
---@return tidelock.device
function stream:device() end

--- Ends the stream once its work has run; events recorded on it stay valid. Idempotent, never
--- waits.
function stream:close() end

-- ---- events and gates -----------------------------------------------------------------------

--- A point in a stream. `later - earlier` is the seconds between two by the device's clock; it
--- raises unless both have timing, are recorded and done, and belong to one device.
---@class tidelock.event
---@operator sub(tidelock.event): number
local event = {}

--- Says whether the stream has got that far; nil and the reason where it was never recorded.
---@return boolean?
---@return string? reason
function event:done() end

--- Waits until the stream has got that far. Raises where it was never recorded.
---@param seconds number? a time limit of at least 0; default: none
---@return boolean reached false: the time limit came first
function event:synchronize(seconds) end

--- Returns the device it belongs to.
---@return tidelock.device
function event:device() end

--- Drops the event; waits for it that are queued stay. Idempotent, never waits.
function event:close() end

--- Holds back what was enqueued behind it, until it is opened, closed or collected, or times out.
---@class tidelock.gate
local gate = {}

--- Opens the gate, and says whether that came before its time limit; may be repeated.
---@return boolean opened
---@return string? reason "timed out"
function gate:open() end

--- Opens the gate and drops it. Idempotent, never waits.
function gate:close() end

-- ---- pending results ------------------------------------------------------------------------

--- A download that is under way. gpu.await takes it too.
---@class tidelock.pending
local pending = {}

--- Says whether the data has arrived.
---@return boolean done
function pending:done() end

--- Waits, for so many seconds at most, and says whether the data has arrived.
---@param seconds number? default: no limit
---@return boolean done
function pending:synchronize(seconds) end

--- Waits and returns the pinned buffer, the data in it.
---@return tidelock.buffer pinned
function pending:result() end

--- Drops it; the copy goes on. Idempotent, never waits.
function pending:close() end

-- ---- stamps ---------------------------------------------------------------------------------

--- A time on the wall clock that remembers what was in flight (os.clock() is CPU time: of a wait of
--- 300 ms on the host device it counts 0.3 ms). `later - earlier` is in seconds; it
--- warns W-BACKLOG when launches from before were running at the start, W-CHARGED when a read or
--- write of a buffer waited for them for more than a tenth of the difference, and W-INFLIGHT when
--- launches made since were not done at the end. Stamps of two devices raise.
---@class tidelock.stamp
---@operator sub(tidelock.stamp): number
local stamp = {}

--- Returns the seconds since the stamp, and how many launches made since are in flight, at most.
---@return number seconds
---@return integer inflight
function stamp:elapsed() end

--- Drops the stamp. Idempotent.
function stamp:close() end

-- ---- faults ---------------------------------------------------------------------------------

--- Failures on demand, for tests. A site is a call of the device layer ("matmul", "release"), an
--- allocation ("allocate: stream"), or "execute": a launch that was accepted and then fails.
---@class tidelock.faults
local faults = {}

--- Makes the nth use of the site from now on fail with that code, once.
---@param site string
---@param nth integer from 1
---@param code tidelock.code for "execute" use "device_lost"
function faults:arm(site, nth, code) end

--- Forgets all counts and what was armed.
function faults:reset() end

--- Returns how often each site was used.
---@return table<string, integer>
function faults:sites() end

--- Drops the object; devices that were opened with it keep it. Idempotent.
function faults:close() end

return core
