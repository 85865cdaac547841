"""Programs whose answers are read line by line, with time limits."""
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

ANSWER_SECONDS, READY_SECONDS = 60, 120  # limits of a server


class Unavailable(Exception):
    """Why a program, or an answer of it, is not to be had."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def end(process):
    """Ends a process, and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


class Process:
    """A program whose stdout is read line by line, with time limits."""

    def __init__(self, name, command, environment, log):
        self.name, self.log, self.buffer = name, log, b""
        try:
            with open(log, "wb") as stderr:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                    env=environment, start_new_session=True, bufsize=0)
        except OSError as error:
            raise Unavailable(str(error)) from error

    def line(self, seconds):
        """The next line; None at the end."""
        limit = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                end(self.process)
                raise Unavailable(f"no answer within {seconds} s")
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read:
                return None
            self.buffer += read
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def reason(self):
        return last_line(Path(self.log).read_text(errors="replace"))

    def finish(self, seconds):
        """Waits for the end, which must be a good one."""
        self.process.stdin.close()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(self.process)
            raise Unavailable(f"not ended within {seconds} s") from None
        if status != 0:
            raise Unavailable(self.reason())


class Server(Process):
    """A program that answers questions: see server.c."""

    def ready(self):
        """What it says of itself."""
        line = self.line(READY_SECONDS)
        if line is None:
            raise Unavailable(self.reason())
        return json.loads(line)["value"]

    def ask(self, question):
        try:
            self.process.stdin.write(question.encode() + b"\n")
            line = self.line(ANSWER_SECONDS)
        except BrokenPipeError:
            line = None
        if line is None:
            raise Unavailable(self.reason())
        answer = json.loads(line)
        if answer["measure"] == "error":
            raise Unavailable(answer["value"])
        return answer
