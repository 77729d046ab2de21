"""A program on a pseudo terminal: its screen as text, keys typed at it, and what it does to the terminal's settings."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

SEQUENCE = re.compile(rb"\x1b\[([?0-9;]*)([@-~])")


class Screen:
    """As much of a terminal as the live views use."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.is_alternate, self.is_cursor_shown, self.colours = False, True, 0
        self.pending = b""
        self.clear()

    def clear(self):
        self.lines = {}
        self.row = self.column = 0

    def feed(self, data):
        data = self.pending + data
        self.pending = b""
        at = 0
        while at < len(data):
            if data[at] == 0x1B:
                match = SEQUENCE.match(data, at)
                if not match:
                    self.pending = data[at:]
                    return
                self.control(match[1].decode(), match[2].decode())
                at = match.end()
                continue
            end = data.find(b"\x1b", at)
            end = len(data) if end < 0 else end
            self.write(data[at:end].decode("utf-8", "replace"))
            at = end

    def control(self, parameters, final):
        if final == "H":
            row, column = (parameters.split(";") + ["1"])[:2] if parameters else ("1", "1")
            self.row, self.column = int(row) - 1, int(column) - 1
        elif final == "J":
            self.lines = {}
        elif final == "K":
            self.lines[self.row] = self.lines.get(self.row, "")[: self.column]
        elif final == "m" and parameters not in ("", "0"):
            self.colours += 1
        elif parameters == "?1049":
            self.is_alternate = final == "h"
            self.clear()
        elif parameters == "?25":
            self.is_cursor_shown = final == "h"

    def write(self, text):
        for character in text:
            if character == "\n":
                self.row += 1
            elif character == "\r":
                self.column = 0
            else:
                line = self.lines.get(self.row, "").ljust(self.column)
                self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
                self.column += 1

    @property
    def text(self):
        return "\n".join(self.lines.get(row, "").rstrip() for row in range(self.rows))


class OnTerminal:
    """A command with its stdin and stdout (and stderr, unless given) on a terminal of this size."""

    def __init__(self, command, columns=120, rows=30, stderr=None, env=None):
        self.master, self.slave = pty.openpty()
        self.screen = Screen(columns, rows)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        environment = dict(os.environ, TERM="xterm-256color")
        environment.pop("NO_COLOR", None)
        environment.update(env or {})
        self.all = b""

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=stderr or self.slave, env=environment,
                                        preexec_fn=own_terminal)

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.columns, self.screen.rows = columns, rows

    def read(self, seconds=0.1):
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                return
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            if not data:
                return
            self.all += data
            self.screen.feed(data)

    def wait_for(self, condition, seconds=30):
        """Until the condition holds for the screen; its text when it does, else None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            if condition(self.screen.text):
                return self.screen.text
            if self.process.poll() is not None:
                self.read(0.2)
                return self.screen.text if condition(self.screen.text) else None
        return None

    def type(self, keys):
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def end(self, seconds=30):
        """The exit status, once everything it wrote has been read."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            return None
        self.read(0.2)
        return self.process.returncode

    def is_as_before(self):
        now = termios.tcgetattr(self.slave)
        return now[:4] == self.before[:4] and not self.screen.is_alternate and self.screen.is_cursor_shown

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
