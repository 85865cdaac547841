#!/usr/bin/env python3
"""Measures tidelock beside what a user would take instead, in one run, in turns.

    python3 examples/peers/run.py [options]        --help lists them

The peers: plain C with the driver and cuBLAS (c), PyTorch, CuPy, numba; what is missing is left
out, and the reason printed. Needs a build of tidelock (--tidelock, by default build/) with a Lua
5.4, nvcc for the C programs, and nothing of Python but its standard library. Parts (--only):

  ratio       a launch from Lua against the same from C, in turns in one process
  start       from process start to a first checked product
  launch      what a call costs the host, by program, 200 calls and then a wait
  throughput  products back to back between two events, by type and size
  ladder      tidelock's own kernels against its BLAS
  question2   what a first large product pays for, step by step
  question1   2000 launches of the naive product at a size that takes about 1 ms
  whole       the same at the question's own size: about 67 s for each program
  raw         launches of raw.cu of the folder --reference, unmodified, against ours: a process
              of each in turns, ended when it has said what a launch costs
  reference   the programs of the folder --reference, as they are

Within a part all programs are asked in turn, the order rotated, and reversed every other round,
so that clocks and temperature drift for all alike. A ratio of throughputs is the median of the
rounds' ratios with its order-statistic interval; a ratio of times is one of medians, its interval
by resampling rounds. 95 % both. A target is missed where the whole interval is on the wrong side,
and open where only the median is. One Markdown table goes to stdout, everything measured to a JSON
file after every part, progress to stderr. A part that does not fit into what is left of --seconds
is left out, and said.
"""
import argparse
import datetime
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from pathlib import Path

from intervals import ratio_of_medians, ratio_of_rounds, verdict
from processes import Process, Server, Unavailable, end, last_line

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = {"c": "plain C", "torch": "PyTorch", "cupy": "CuPy", "numba": "numba",
            "tidelock": "tidelock"}  # in the table's order
OURS = "tidelock"

LAUNCH_BOUND, START_BOUND, START_TORCH_BOUND, THROUGHPUT_BOUND = 1.10, 1.10, 0.10, 0.98
# A throughput sample: this long, and as many products at least, unless one is long; never more
# than a launch queue holds at two operations each.
SAMPLE_SECONDS, LEAST_PRODUCTS, LONG_PRODUCT_SECONDS, MOST_PRODUCTS = 20e-3, 3, 0.1, 400
PROGRAM_SECONDS = 180  # of a program that is run once

DTYPES = ["float32", "tf32", "bfloat16", "float16", "float64"]
REFERRING = {"raw", "reference"}  # parts that need the folder of other programs
SERVED = {"launch", "throughput", "ladder"}  # parts that ask servers
KERNELS = ["naive", "coalesced", "tiled", "register", "blas"]
# Of a process start; what no step of it accounts for is the interpreter's and the system's.
START_TIMES = ["first checked product", "the same, to the process's end", "of it, no step",
               *(f"of it, {step}" for step in
                 ["import", "inputs", "context", "upload", "product", "check"])]
# What raw.cu says of launches, in its order, and what it is compared with.
RAW = {"launch ns: cudaLaunchKernel": "spin 1", "enqueue ns: cublasSgemm n=32": "blas 32",
       "enqueue ns: cublasSgemm n=256": "blas 256", "enqueue ns: cublasSgemm n=1024": "blas 1024"}
RAW_ASKED = 12  # times 5 batches of 200 calls: raw.cu takes the median of 60
STEPS = ["import", "context", "data", "blas library", "first enqueue", "first wait",
         "second enqueue", "second wait"]


class Scale:
    """How much is measured: on a GPU, quickly, or on the host device to try the programs."""

    def __init__(self, quick, host):
        self.sizes = [64, 128] if host else [1000, 4096] if quick else \
            [1000, 2048, 4096, 5000, 8192, 10000]
        self.launches = [("spin", 1), ("naive", 32), ("blas", 32)]
        if not host:
            self.launches += [("blas", 256), ("blas", 1024)]
        self.ladder_n = 128 if host else 2048 if quick else 4096
        self.question2_n = 300 if host else 10000
        self.question1 = (64, 2000) if host else (640, 2000)
        self.whole = (128, 2000) if host else (2000, 2000)
        self.rounds = 3 if quick else 7  # throughput, ladder
        self.launch_rounds = 4 if quick else 12  # of 5 batches each
        self.ratio_rounds = 21 if quick else 201
        self.starts = 3 if quick else 10
        self.raw_rounds = 5 if quick else 25
        self.question_rounds = 1 if quick else 3
        # What a part is expected to take, in seconds; with the servers' start where it needs them.
        full = {"ratio": 25, "launch": 30, "start": 75, "throughput": 80, "ladder": 20,
                "question2": 60, "question1": 35, "whole": 205, "raw": 180, "reference": 130}
        short = {"ratio": 10, "launch": 20, "start": 25, "throughput": 20, "ladder": 8,
                 "question2": 20, "question1": 15, "whole": 205, "raw": 40, "reference": 130}
        self.expected = short if quick else full


def say(message):
    print(message, file=sys.stderr, flush=True)


def turns(names, round_number):
    """The names in this round's order."""
    shift = round_number // 2 % len(names)
    rotated = names[shift:] + names[:shift]
    return rotated[::-1] if round_number % 2 else rotated


def output_of(command):
    """What a command prints, or None."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60,
                              check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def nvidia_smi(fields):
    text = output_of(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0"])
    return dict(zip(fields.split(","), text.split(", "))) if text else {}


# ---- the run -------------------------------------------------------------------------------------

class Run:
    def __init__(self, options):
        self.options = options
        self.host = options.device == "host"
        self.scale = Scale(options.quick, self.host)
        if options.sizes:
            self.scale.sizes = options.sizes
        self.build = options.build.resolve()
        self.began = time.monotonic()
        self.rows, self.lines, self.skipped, self.texts = [], [], {}, {}
        self.servers, self.versions = {}, {}
        self.python = sys.executable
        self.build.mkdir(parents=True, exist_ok=True)
        self.environment = dict(os.environ)
        cuda_libraries = str(options.cuda / "lib64")
        # C and tidelock find the same cuBLAS; the Python packages bring their own.
        self.native = dict(os.environ)
        paths = [self.native.get("LD_LIBRARY_PATH"), cuda_libraries]
        self.native["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
        self.native["LUA_PATH_5_4"] = f"{ROOT}/lua/?.lua;{ROOT}/lua/?/init.lua;{HERE}/?.lua;;"
        self.native["LUA_CPATH_5_4"] = f"{options.tidelock.resolve()}/?.so;{self.build}/?.so;;"

    def skip(self, what, reason):
        if self.skipped.get(what) != str(reason):
            say(f"  left out: {what}: {reason}")
        self.skipped[what] = str(reason)

    def row(self, what, unit, values, ratios=None, note=""):
        if not values:
            return
        self.rows.append({"what": what, "unit": unit, "values": values, "ratios": ratios or {},
                          "note": note})

    # ---- building

    def compile(self, name, command):
        """Whether it could be built."""
        try:
            made = subprocess.run(command, capture_output=True, text=True,
                                  timeout=PROGRAM_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.skip(name, error)
            return False
        if made.returncode != 0:
            self.skip(name, f"does not build: {last_line(made.stderr)}")
        return made.returncode == 0

    def build_all(self):
        say("building")
        nvcc, compiler = str(self.options.cuda / "bin/nvcc"), os.environ.get("CC", "gcc")
        c = [compiler, "-std=c11", "-O2", "-isystem", str(self.options.cuda / "include")]
        capability = nvidia_smi("compute_cap").get("compute_cap", "9.0")
        self.nvcc = [nvcc, f"-arch=sm_{capability.replace('.', '')}", "-O3"]
        self.c = c
        plain = str(HERE / "plain.c")
        for name in ["start", "question2", "server"]:
            self.compile(f"c: {name}", [*c, "-o", str(self.build / name),
                                        str(HERE / f"{name}.c"), plain, "-ldl"])
        self.compile("ratio", [*c, "-shared", "-fPIC", "-I", str(self.options.lua_include), "-o",
                               str(self.build / "launch_pair.so"), str(HERE / "launch_pair.c"),
                               plain, "-ldl"])
        self.fatbin = str(self.build / "kernels.fatbin")
        self.compile("c: kernels", [*self.nvcc, "-fatbin", "-o", self.fatbin,
                                    str(HERE / "kernels.cu")])
        self.compile("c: question1", [*self.nvcc, "-o", str(self.build / "question1"),
                                      str(HERE / "question1.cu")])

    # ---- programs

    def command(self, program, name, *arguments):
        """How a program of this folder is called, and its environment."""
        arguments = [str(argument) for argument in arguments]
        if program == OURS:
            return [self.options.lua, str(HERE / f"{name}.lua"), self.options.device,
                    *arguments], self.native
        if program == "c":
            fatbin = [self.fatbin] if name in ("server", "question2") else []
            return [str(self.build / name), *fatbin, *arguments], self.native
        return [self.python, "-B", str(HERE / f"{name}_{program}.py"), *arguments], \
            self.environment

    def run(self, program, name, command, environment, seconds=PROGRAM_SECONDS):
        """Runs a program to its end: its lines, seconds until the last of them, until the end."""
        log = self.build / f"{name}-{program}.log"
        start = time.monotonic()
        process = Process(program, command, environment, log)
        lines, said = [], start
        while True:
            line = process.line(seconds)
            if line is None:
                break
            said = time.monotonic()
            lines.append(json.loads(line))
        process.finish(seconds)
        return lines, said - start, time.monotonic() - start

    def once(self, program, name, *arguments):
        """The lines of a program of this folder, or None where it is not to be had."""
        if f"{program}: {name}" in self.skipped:
            return None
        try:
            command, environment = self.command(program, name, *arguments)
            return self.run(program, name, command, environment)
        except (Unavailable, ValueError) as reason:
            self.skip(f"{program}: {name}", reason)
            return None

    def serve(self, programs):
        """Starts those that are not running yet, all at once. Returns those that run."""
        wanted = [p for p in programs if p in self.options.programs]
        started = []
        for program in wanted:
            if program in self.servers or f"{program}: server" in self.skipped:
                continue
            try:
                self.servers[program] = Server(program, *self.command(program, "server"),
                                               self.build / f"server-{program}.log")
                started.append(program)
            except Unavailable as reason:
                self.skip(f"{program}: server", reason)
        for program in started:
            try:
                self.versions[program] = self.servers[program].ready()
            except (Unavailable, ValueError) as reason:
                self.drop(program, reason)
        return [p for p in wanted if p in self.servers]

    def drop(self, program, reason):
        end(self.servers.pop(program).process)
        self.skip(f"{program}: server", reason)

    def close(self):
        for server in self.servers.values():
            end(server.process)
        self.servers.clear()

    def ask(self, program, question):
        """One answer, or None; a server that has died is dropped."""
        if program not in self.servers:
            return None
        try:
            return self.servers[program].ask(question)
        except (Unavailable, ValueError) as reason:
            if self.servers[program].process.poll() is None:
                self.skip(f"{program}: {question}", reason)
            else:
                self.drop(program, f"{question}: {reason}")
            return None

    def rounds(self, programs, question, rounds):
        """One list of samples by round and program. The first round, a warm-up, is not kept; a
        program that fails once is left out."""
        samples = {program: [] for program in programs}
        for number in range(rounds + 1):
            for program in turns(programs, number):
                if program not in samples:
                    continue
                answer = self.ask(program, question)
                if answer is None:
                    del samples[program]
                elif number > 0:
                    samples[program].append(answer["samples"])
        return samples

    def keep(self, part, samples, **fields):
        for program, values in samples.items():
            self.lines.append({"part": part, "program": program, **fields, "samples": values,
                               "value": statistics.median(values)})

    # ---- parts

    def part_ratio(self):
        if "ratio" in self.skipped:
            return
        # The context is current in a program that embeds Lua, in a script none is.
        for where, extra in [("", []), (", context current", ["current"])]:
            command = [self.options.lua, str(HERE / "launch_ratio.lua"), self.fatbin,
                       str(self.scale.ratio_rounds), *extra]
            try:
                lines, _, _ = self.run("both", "ratio", command, self.native)
            except (Unavailable, ValueError) as reason:
                self.skip("ratio", reason)
                return
            self.ratio_rows(lines, where)

    def ratio_rows(self, lines, where):
        for c, ours in zip(lines[::2], lines[1::2]):
            samples = {"c": c["samples"], OURS: ours["samples"]}
            measure, n = c["measure"], c["n"]
            self.keep("ratio", samples, measure=measure + where, n=n, unit="ns")
            if measure == "empty":  # a scale for the others
                what, ratios, note = "an empty C function from C and Lua", {}, ""
            else:
                ratio = ratio_of_medians(samples[OURS], samples["c"])
                what, ratios = f"{measure} n={n}", {"c": ratio}
                note = f"at most {LAUNCH_BOUND}: {verdict(ratio, most=LAUNCH_BOUND)}"
            self.row(f"launch, one process{where}: {what}", "ns",
                     {p: statistics.median(v) for p, v in samples.items()}, ratios, note)

    def part_start(self):
        programs = [p for p in ["c", "torch", OURS] if p in self.options.programs]
        samples = {p: {} for p in programs}
        for number in range(self.scale.starts + 1):  # the first one warms the file caches
            for program in turns(programs, number):
                result = self.once(program, "start") if program in samples else None
                if result is None:
                    samples.pop(program, None)
                elif number > 0:
                    for what, seconds in self.start_times(*result).items():
                        samples[program].setdefault(what, []).append(seconds * 1e3)
        for what in START_TIMES:
            times = {p: v[what] for p, v in samples.items()}
            self.keep("start", times, measure=what, unit="ms")
            ratios = self.ratios(times, ratio_of_medians)
            notes = [f"{PROGRAMS[p]}, at most {bound}: {verdict(ratios[p], most=bound)}"
                     for p, bound in [("c", START_BOUND), ("torch", START_TORCH_BOUND)]
                     if p in ratios and what == START_TIMES[0]]
            self.row(f"start: {what}", "ms", {p: statistics.median(v) for p, v in times.items()},
                     ratios, "; ".join(notes))

    @staticmethod
    def start_times(lines, said, ended):
        steps = {f"of it, {line['measure']}": line["value"] for line in lines
                 if line["unit"] == "s"}
        return dict(zip(START_TIMES, [said, ended, said - sum(steps.values())]), **steps)

    def part_launch(self):
        able = {"spin": ["c", "cupy", "numba", OURS], "naive": ["c", "cupy", "numba", OURS],
                "blas": ["c", "torch", "cupy", OURS]}
        running = self.serve(PROGRAMS)
        for what, n in self.scale.launches:
            programs = [p for p in able[what] if p in running]
            by_round = self.rounds(programs, f"launch {what} {n}", self.scale.launch_rounds)
            self.keep("launch", {p: [x for batches in v for x in batches]
                                 for p, v in by_round.items()}, measure=what, n=n, unit="ns")
            # Batches of one round are not independent: rounds are what is resampled.
            samples = {p: [statistics.median(batches) for batches in v]
                       for p, v in by_round.items()}
            ratios = self.ratios(samples, ratio_of_medians)
            self.row(f"launch, by program: {what} n={n}", "ns",
                     {p: statistics.median(v) for p, v in samples.items()}, ratios,
                     self.verdicts(ratios, "at most", LAUNCH_BOUND))

    @staticmethod
    def ratios(samples, function):
        """Ours over each peer's."""
        if OURS not in samples:
            return {}
        return {p: function(samples[OURS], v) for p, v in samples.items() if p != OURS}

    @staticmethod
    def verdicts(ratios, side, bound):
        """In words: met, or by which peers it is not."""
        limit = {"at most": "most", "at least": "least"}[side]
        found = {p: verdict(ratio, **{limit: bound}) for p, ratio in ratios.items()}
        worst = [f"{PROGRAMS[p]}: {v}" for p, v in found.items() if v != "met"]
        return f"{side} {bound}: {', '.join(worst) or 'met'}" if ratios else ""

    def products(self, programs, question, n):
        """How many products make a sample: by a first try of whoever answers."""
        for program in programs:
            self.ask(program, question.format(1))  # loads what has to be loaded
            answer = self.ask(program, question.format(1))
            if answer is not None:
                seconds = 2e-12 * n ** 3 / answer["value"]
                least = LEAST_PRODUCTS if seconds < LONG_PRODUCT_SECONDS else 1
                return min(max(math.ceil(SAMPLE_SECONDS / seconds), least), MOST_PRODUCTS)
        return None

    def rates(self, programs, question, n):
        """TFLOP/s by program and round, and the products of a sample."""
        products = self.products(programs, question, n)
        if products is None:
            return {}, None
        by_round = self.rounds(programs, question.format(products), self.scale.rounds)
        return {p: [x for (x,) in v] for p, v in by_round.items()}, products

    def part_throughput(self):
        programs = self.serve(["c", "torch", "cupy", OURS])
        for dtype in DTYPES:
            for n in self.scale.sizes:
                samples, products = self.rates(programs, f"throughput {dtype} {n} {{}}", n)
                self.keep("throughput", samples, measure=dtype, n=n, unit="TFLOP/s",
                          products=products)
                ratios = self.ratios(samples, ratio_of_rounds)
                self.row(f"throughput: {dtype} n={n}", "TFLOP/s",
                         {p: statistics.median(v) for p, v in samples.items()}, ratios,
                         self.verdicts(ratios, "at least", THROUGHPUT_BOUND))

    def part_ladder(self):
        n = self.scale.ladder_n
        if not self.serve([OURS]):
            return
        for dtype in ["float32", "float64"]:
            counts = {k: self.products([OURS], f"throughput {dtype} {n} {{}} {k}", n)
                      for k in KERNELS}
            samples = {k: [] for k in KERNELS if counts[k]}
            for number in range(self.scale.rounds):
                for kernel in turns(list(samples), number):
                    answer = self.ask(OURS, f"throughput {dtype} {n} {counts[kernel]} {kernel}")
                    if answer is not None:
                        samples[kernel].append(answer["value"])
            for kernel, values in samples.items():
                if not values:
                    continue
                self.keep("ladder", {OURS: values}, measure=kernel, n=n, dtype=dtype,
                          unit="TFLOP/s")
                share = ""
                if len(samples.get("blas", [])) == len(values):
                    share = "{:.3f} [{:.3f}, {:.3f}] of blas".format(
                        *ratio_of_rounds(values, samples["blas"]))
                self.row(f"ladder: {dtype} n={n} {kernel}", "TFLOP/s",
                         {OURS: statistics.median(values)}, note=share)

    def gather(self, name, programs, rounds, *arguments):
        """By measure and program, a list of what each round's run said."""
        gathered = {}
        programs = [p for p in programs if p in self.options.programs]
        for number in range(rounds):
            for program in turns(programs, number):
                result = self.once(program, name, *arguments)
                for line in result[0] if result else []:
                    by_program = gathered.setdefault(line["measure"], {})
                    by_program.setdefault(program, []).append(line)
        return gathered

    def part_question2(self):
        n = self.scale.question2_n
        gathered = self.gather("question2", ["c", "torch", "cupy", OURS],
                               self.scale.question_rounds, n)
        steps = {name: {p: [line["value"] * 1e3 for line in lines]
                        for p, lines in gathered.get(name, {}).items()} for name in STEPS}
        before = STEPS[:STEPS.index("second enqueue")]
        steps["all until the first is done"] = {
            p: [sum(times) for times in zip(*(steps[s][p] for s in before if p in steps[s]))]
            for p in steps["first wait"]}
        for name, samples in steps.items():
            self.keep("question2", samples, measure=name, n=n, unit="ms")
            self.row(f"question 2, n={n}: {name}", "ms",
                     {p: statistics.median(v) for p, v in samples.items()},
                     self.ratios(samples, ratio_of_medians))

    def question1(self, part, shape, rounds):
        n, launches = shape
        gathered = self.gather("question1", ["c", "numba", OURS], rounds, n, launches)
        found = {}
        for program, runs in gathered.get("launch", {}).items():
            for number, line in enumerate(runs):
                said = {m: v[program][number]["value"] for m, v in gathered.items()}
                for name, value in self.knee(line["samples"], said).items():
                    found.setdefault(name, {}).setdefault(program, []).append(value)
                self.lines.append({"part": part, **line})
        for (name, unit), values in found.items():
            self.keep(part, values, measure=name, n=n, unit=unit)
            self.row(f"question 1, {launches} launches, n={n}: {name}", unit,
                     {p: statistics.median(v) for p, v in values.items()},
                     {} if unit == "launch" else self.ratios(values, ratio_of_medians))

    @staticmethod
    def knee(costs, said):
        """What one run shows: the first launch that takes more than half a kernel, as most of
        those behind it do: one alone was a pause of the thread. Launches count from 1; the first
        few may pay for something else."""
        settled, behind, most = 5, 8, 6
        waits = [cost > said["kernel"] / 2 for cost in costs]
        blocked = next((i for i in range(settled, len(costs))
                        if waits[i] and sum(waits[i:i + behind]) >= most), None)
        result = {("one kernel", "ms"): said["kernel"] * 1e3}
        before = costs[settled:blocked]
        if before:
            result["a launch before it", "ns"] = statistics.median(before) * 1e9
        if blocked is not None:
            result["first launch that waits", "launch"] = blocked + 1
            result["a launch after it", "ms"] = statistics.median(costs[blocked:]) * 1e3
        result["total", "s"] = said["total"]
        result["while launching", "s"] = said["launching"]
        return result

    def part_question1(self):
        self.question1("question1", self.scale.question1, self.scale.question_rounds)

    def part_whole(self):
        self.question1("whole", self.scale.whole, 1)

    def compile_reference(self, name):
        return [*self.nvcc, "-std=c++17", "-o", str(self.build / name),
                str(self.options.reference / f"{name}.cu"), "-lcublas", "-lcuda",
                f"-L{self.options.cuda}/lib64/stubs"]

    def raw_costs(self):
        """One run of raw.cu, until it has said what launches cost."""
        process = Process("raw", ["stdbuf", "-oL", str(self.build / "raw")], self.native,
                          self.build / "raw.log")
        said = {}
        while len(said) < len(RAW):
            line = process.line(PROGRAM_SECONDS)
            if line is None:
                raise Unavailable(process.reason())
            what, _, value = line.rpartition(" ")
            if what in RAW:
                said[RAW[what]] = float(value)
        end(process.process)
        return said

    def our_costs(self):
        server = Server(OURS, *self.command(OURS, "server"), self.build / "raw-tidelock.log")
        try:
            server.ready()
            return {what: statistics.median(
                x for _ in range(RAW_ASKED) for x in server.ask(f"launch {what}")["samples"])
                for what in RAW.values()}
        finally:
            end(server.process)

    def part_raw(self):
        """A fresh process of each in every round: what a process is dealt scatters, too."""
        if not self.compile("raw", self.compile_reference("raw")):
            return
        samples = {what: {"c": [], OURS: []} for what in RAW.values()}
        run = {"c": self.raw_costs, OURS: self.our_costs}
        try:
            for number in range(self.scale.raw_rounds):
                for program in turns(["c", OURS], number):
                    for what, value in run[program]().items():
                        samples[what][program].append(value)
        except (Unavailable, ValueError) as reason:
            self.skip("raw", reason)
            return
        for what, by_program in samples.items():
            self.keep("raw", by_program, measure=what, unit="ns")
            ratios = self.ratios(by_program, ratio_of_medians)
            self.row(f"launch, a process each in turns, raw.cu: {what}", "ns",
                     {p: statistics.median(v) for p, v in by_program.items()}, ratios,
                     self.verdicts(ratios, "at most", LAUNCH_BOUND))

    def part_reference(self):
        """The programs of another folder, unmodified: their text is kept as it is."""
        folder = self.options.reference
        for name, command in [
                ("raw", self.compile_reference("raw")),
                ("queue", self.compile_reference("queue")),
                # It calls through functions without a prototype: C17 still has them.
                ("cold", [self.c[0], "-std=gnu17", "-O2", "-o", str(self.build / "cold"),
                          str(folder / "cold.c"), "-ldl"])]:
            if self.compile(f"reference: {name}", command):
                self.texts[name] = self.text(name, [str(self.build / name)], self.native)
        self.texts["peers.py"] = self.text(
            "peers.py", [self.python, "-B", str(folder / "peers.py")], self.environment)

    def text(self, name, command, environment):
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment,
                                  timeout=PROGRAM_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.skip(f"reference: {name}", error)
            return None
        if done.returncode != 0:
            self.skip(f"reference: {name}", last_line(done.stderr))
        return done.stdout

    # ---- all of it

    def describe(self):
        """The machine and the software."""
        cpu = None
        try:
            cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        except OSError:
            pass
        nvcc = output_of([str(self.options.cuda / "bin/nvcc"), "--version"])
        gpu = nvidia_smi("name,driver_version,compute_cap,memory.total,power.limit,"
                         "clocks.max.sm,clocks.max.mem,clocks.sm,clocks.mem,temperature.gpu")
        return {"gpu": gpu, "cpu": cpu.group(1) if cpu else platform.machine(),
                "cores": os.cpu_count(), "system": platform.platform(),
                "nvcc": last_line(nvcc) if nvcc else None,
                "python": platform.python_version(),
                "lua": output_of([self.options.lua, "-v"]),
                "revision": output_of(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
                "device": self.options.device, "quick": self.options.quick}

    def results_path(self):
        if self.options.results:
            return self.options.results
        name = self.environment_said["gpu"].get("name", self.options.device)
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        day = datetime.date.today().isoformat()
        return HERE / "results" / f"{stem}-{day}.json"

    def write(self):
        path = self.results_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        everything = {"environment": self.environment_said, "versions": self.versions,
                      "seconds": time.monotonic() - self.began, "table": self.rows,
                      "samples": self.lines, "left_out": self.skipped, "reference": self.texts}
        path.write_text(json.dumps(everything, indent=1) + "\n")
        return path

    def parts(self):
        for name in self.options.only:
            left = self.options.seconds - (time.monotonic() - self.began)
            expected = 0 if self.host else self.scale.expected[name]
            if expected > left:
                self.skip(name, f"takes about {expected} s, {left:.0f} s are left")
                continue
            if name not in SERVED:
                self.close()  # a context that is open makes the next one cheaper
            say(f"{name} ({left:.0f} s left)")
            start = time.monotonic()
            try:
                getattr(self, f"part_{name}")()
            except Exception as error:  # the other parts have their time yet
                traceback.print_exc()
                self.skip(name, f"stopped: {type(error).__name__}: {error}")
            say(f"  took {time.monotonic() - start:.1f} s")
            self.write()

    def main(self):
        self.environment_said = self.describe()
        try:
            self.build_all()
            self.parts()
        finally:
            self.close()
        self.environment_said["gpu at the end"] = nvidia_smi("clocks.sm,clocks.mem,temperature.gpu")
        path = self.write()
        print(table(self))
        say(f"raw: {path}; {time.monotonic() - self.began:.0f} s")


# ---- the table -----------------------------------------------------------------------------------

def number(value):
    """Four digits."""
    if value is None:
        return ""
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(max(digits, 0), 6)}f}"


def ratio_text(ratio):
    return "{:.3f} [{:.3f}, {:.3f}]".format(*ratio) if ratio else ""


def table(run):
    names = [p for p in PROGRAMS if any(p in row["values"] for row in run.rows)]
    peers = [p for p in names if any(p in row["ratios"] for row in run.rows)]
    head = ["", "unit", *(PROGRAMS[p] for p in names),
            *(f"tidelock / {PROGRAMS[p]}" for p in peers), "target"]
    lines = [head, ["---"] * len(head)]
    for row in run.rows:
        lines.append([row["what"], row["unit"], *(number(row["values"].get(p)) for p in names),
                      *(ratio_text(row["ratios"].get(p)) for p in peers), row["note"]])
    text = ["| " + " | ".join(line) + " |" for line in lines]
    gpu, versions = run.environment_said["gpu"], ", ".join(run.versions.values())
    said = [f"{gpu.get('name', run.options.device)}, driver {gpu.get('driver_version', '-')}, "
            f"{run.environment_said['cpu']}; {versions}", ""]
    left_out = [f"- left out: {what}: {reason}" for what, reason in run.skipped.items()]
    return "\n".join([*said, *text, "", *left_out])


def main():
    parts = [name[5:] for name in vars(Run) if name.startswith("part_")]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def words(known):
        def read(text):
            chosen = text.split(",")
            unknown = [word for word in chosen if word not in known]
            if unknown:
                raise argparse.ArgumentTypeError(f"{unknown[0]}: known are {', '.join(known)}")
            return chosen
        return read

    parser.add_argument("--only", type=words(parts), metavar="PART,...",
                        help="these parts, in this order")
    parser.add_argument("--programs", type=words(list(PROGRAMS)), default=list(PROGRAMS),
                        metavar="NAME,...", help="these programs: " + ", ".join(PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes")
    parser.add_argument("--seconds", type=float, default=420, help="for everything (%(default)s)")
    parser.add_argument("--device", default="cuda:0", help="tidelock's (%(default)s)")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")],
                        metavar="N,...", help="of the throughput part")
    parser.add_argument("--reference", type=Path, metavar="DIR",
                        help="run raw.cu, queue.cu, cold.c and peers.py of this folder too")
    parser.add_argument("--results", type=Path, metavar="FILE",
                        help="the JSON file (examples/peers/results/GPU-DATE.json)")
    parser.add_argument("--tidelock", type=Path, default=ROOT / "build", metavar="DIR",
                        help="tidelock's build tree (build)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "peers", metavar="DIR",
                        help="where the C programs are built (build/peers)")
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"), metavar="DIR",
                        help="the CUDA toolkit (%(default)s)")
    parser.add_argument("--lua", default=shutil.which("lua5.4") or "lua", metavar="PROGRAM",
                        help="the interpreter (%(default)s)")
    parser.add_argument("--lua-include", type=Path, default=Path("/usr/include/lua5.4"),
                        metavar="DIR", help="Lua's headers (%(default)s)")
    options = parser.parse_args()
    if options.only is None:
        options.only = [part for part in parts if part not in REFERRING or options.reference]
    elif REFERRING.intersection(options.only) and not options.reference:
        parser.error("raw, reference: --reference DIR is wanted")
    Run(options).main()


if __name__ == "__main__":
    main()
