"""Lines of JSON on stdout, and the loop of the Python servers."""
import json
import statistics
import sys
import time

# As in server.c: calls in a batch, batches timed behind an untimed one, and how
# long the stream is held back for each queued product.
CALLS, BATCHES, HOLD_NS = 200, 5, 50_000


def clock():
    return time.perf_counter()


def write(**fields):
    print(json.dumps(fields), flush=True)


def say(program, measure, samples, unit, n=None, dtype=None):
    fields = {"n": n, "dtype": dtype}
    write(program=program, measure=measure, **{k: v for k, v in fields.items() if v is not None},
          value=statistics.median(samples), unit=unit, samples=samples)


class Steps:
    """Says of each step how long it took."""

    def __init__(self, program, n):
        self.program, self.n, self.last = program, n, clock()

    def step(self, name):
        say(self.program, name, [clock() - self.last], "s", self.n, "float32")
        self.last = clock()


def time_calls(call, synchronize):
    """Nanoseconds of the host for each call, by batch."""
    samples = []
    for _ in range(BATCHES + 1):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        samples.append((time.perf_counter_ns() - start) / CALLS)
        synchronize()
    return samples[1:]


def rate(n, products, milliseconds):
    return 2e-9 * n ** 3 * products / milliseconds


def serve(program, version, launch, throughput=None):
    """Answers the questions of server.c until stdin ends. launch(what, n) gives samples in ns,
    throughput(dtype, n, products) TFLOP/s; what they raise is the answer then."""
    write(program=program, measure="version", value=version)
    for line in sys.stdin:
        try:
            question, what, n, *rest = line.split()
            if question == "launch":
                say(program, what, launch(what, int(n)), "ns", int(n), "float32")
            else:
                say(program, "throughput", [throughput(what, int(n), int(rest[0]))], "TFLOP/s",
                    int(n), what)
        except Exception as error:  # whatever a library raises is its answer
            write(program=program, measure="error", value=f"{type(error).__name__}: {error}")
