# SPDX-License-Identifier: Apache-2.0
"""Starts and ends the processes that tests need: redis-servers and a cache tier before them.

Every process listens on a free loopback port, is waited for with a deadline, is ended by its own
process id, and its output is shown when it does not do what the test asked of it.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
_given_ports = set()
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0


class HarnessError(RuntimeError):
    """A process did not start, answer or stop as asked; the text holds its output."""


def ballast_binary():
    """The program under test: BALLAST_BINARY, else the release build."""
    return pathlib.Path(os.environ.get("BALLAST_BINARY", ROOT / "build/release/ballast"))


def free_port():
    """A loopback port that was free a moment ago, outside the range of outgoing connections.

    A port from that range may be taken by any client between this call and the server's bind. None
    is given twice: the first to get it may bind it late.
    """
    low, high = _outgoing_range()
    for _ in range(1000):
        port = 1024 + int.from_bytes(os.urandom(2), "big") % 64000
        if port >= 65535 or low <= port <= high or port in _given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given_ports.add(port)
            return port
    raise HarnessError("no free loopback port found")


def _outgoing_range():
    text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    low, high = (int(word) for word in text.split())
    return low, high


def wait_until(condition, timeout_s=START_TIMEOUT_S, what="condition", step_s=0.02):
    """Polls condition() until it is true; returns its value, raises after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise HarnessError(f"{what}: not reached within {timeout_s:g} s")
        time.sleep(step_s)


def encode(*words):
    """One RESP command; words are bytes, str or int."""
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    out = [b"*%d\r\n" % len(parts)]
    for part in parts:
        out.append(b"$%d\r\n%s\r\n" % (len(part), part))
    return b"".join(out)


def ping(port, timeout_s=1.0):
    """True if a Redis-protocol server on that port answers PONG, or asks for a password."""
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as link:
            link.sendall(encode("PING"))
            return link.recv(64).startswith((b"+PONG", b"-NOAUTH"))
    return False


class Process:
    """One child process whose output goes to a file of its own; a context manager that ends it."""

    def __init__(self, name, argv, directory, env=None):
        self.name = name
        self.argv = [str(word) for word in argv]
        self.output_path = pathlib.Path(directory) / f"{name}.log"
        with open(self.output_path, "ab") as output:
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd=directory, env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.child.pid

    def output(self):
        return self.output_path.read_text(encoding="utf-8", errors="replace")

    def running(self):
        return self.child.poll() is None

    def fail(self, why):
        raise HarnessError(f"{self.name}: {why}\n$ {' '.join(self.argv)}\n{self.output()[-6000:]}")

    def wait_ready(self, ready, timeout_s=START_TIMEOUT_S):
        def look():
            if not self.running():
                self.fail(f"ended with status {self.child.returncode} before it was ready")
            return ready()
        try:
            wait_until(look, timeout_s, f"{self.name} ready")
        except HarnessError as error:
            if self.running():
                self.fail(str(error))
            raise

    def pause(self):
        self.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def signal(self, number):
        self.child.send_signal(number)

    def kill(self):
        """SIGKILL, and waits until the process is gone."""
        if self.running():
            self.child.kill()
        self.child.wait(STOP_TIMEOUT_S)

    def stop(self, expect=0, timeout_s=STOP_TIMEOUT_S):
        """SIGTERM; the process must end in time and, unless expect is None, with that status."""
        if not self.running():
            self.fail(f"had ended by itself with status {self.child.returncode}")
        self.child.terminate()
        try:
            status = self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self.fail(f"did not end within {timeout_s:g} s of SIGTERM")
        if expect is not None and status != expect:
            self.fail(f"ended with status {status} on SIGTERM, not {expect}")

    def close(self):
        """Ends the process whatever its state; for finalizers."""
        with contextlib.suppress(ProcessLookupError):
            self.resume()
        self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Server:
    """A Process with a folder of its own that can be started again after kill() or stop().

    Subclasses say argv() and ready(). A context manager; close() is for finalizers, stop() is the
    checked ending by SIGTERM.
    """

    def __init__(self, name, env=None):
        self.name = name
        self.env = env
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"ballast-{name}-"))
        self.process = None

    def argv(self):
        raise NotImplementedError

    def ready(self):
        raise NotImplementedError

    def begin(self):
        """The first start; leaves nothing behind when it fails."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        self.process = Process(self.name, self.argv(), self.directory, self.env)
        self.process.wait_ready(self.ready)

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return self.process.output() if self.process else ""

    def running(self):
        return self.process.running()

    def stop(self):
        self.process.stop(expect=0)

    def kill(self):
        self.process.kill()

    def pause(self):
        self.process.pause()

    def resume(self):
        self.process.resume()

    def signal(self, number):
        self.process.signal(number)

    def close(self):
        if self.process:
            self.process.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class RedisServer(Server):
    """Debian's redis-server on a free loopback port, without persistence."""

    def __init__(self, *options, port=None, name="redis"):
        super().__init__(name)
        self.options = options
        self.port = port or free_port()
        self.begin()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def argv(self):
        return ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                "--appendonly", "no", "--dir", self.directory, *self.options]

    def ready(self):
        return ping(self.port)


class Tier(Server):
    """`ballast cache up` in front of racks of shards, all roles in one process.

    racks is a list of lists of RedisServer.
    """

    def __init__(self, racks, spines=2, options=(), port=None, env=None):
        super().__init__("tier", env)
        self.racks = racks
        self.spines = spines
        self.options = list(options)
        self.port = port or free_port()
        self.admin_port = free_port()
        self.begin()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def argv(self):
        words = [ballast_binary(), "cache", "up"]
        for rack in self.racks:
            words += ["--rack", ",".join(shard.address for shard in rack)]
        return words + ["--spines", self.spines, "--listen", self.address,
                        "--admin", f"127.0.0.1:{self.admin_port}", *self.options]

    def ready(self):
        return ping(self.port)


class Role(Server):
    """One role of a tier as a process of its own: `ballast cache ROLE -c tier.toml`."""

    def __init__(self, role, toml, options=(), name="", env=None):
        super().__init__(name or role, env)
        self.role = role
        self.options = list(options)
        self.admin_port = free_port()
        self.member = name
        self.config = self.directory / "tier.toml"
        self.config.write_text(toml, encoding="utf-8")
        self.begin()

    def argv(self):
        named = ["--name", self.member] if self.member else []
        return [ballast_binary(), "cache", self.role, "-c", self.config, *named,
                "--admin", f"127.0.0.1:{self.admin_port}", *self.options]

    def ready(self):
        return http_ok(self.admin_port, "/readyz")


class SplitTier:
    """A tier whose roles are processes of their own, which share one tier.toml.

    leaves and spines are Roles in the order of the racks and of their numbers; routers listen on
    router_ports.
    """

    def __init__(self, racks, spines=2, routers=1, settings="", env=None):
        self.leaf_ports = [free_port() for _ in racks]
        self.spine_ports = [free_port() for _ in range(spines)]
        self.router_ports = [free_port() for _ in range(routers)]
        self.toml = settings + self._members(racks)
        self.leaves, self.spines, self.routers = [], [], []
        try:
            for number in range(len(racks)):
                self.leaves.append(Role("leaf", self.toml, name=f"rack-{number}", env=env))
            for number in range(spines):
                self.spines.append(Role("spine", self.toml, name=f"spine-{number}", env=env))
            for port in self.router_ports:
                listen = ["--listen", f"127.0.0.1:{port}"]
                self.routers.append(Role("router", self.toml, listen, env=env))
        except BaseException:
            self.close()
            raise

    def _members(self, racks):
        text = ""
        for number, rack in enumerate(racks):
            shards = ", ".join(f'"{shard.address}"' for shard in rack)
            text += (f'\n[[rack]]\nname = "rack-{number}"\nshards = [{shards}]\n'
                     f'leaf = "127.0.0.1:{self.leaf_ports[number]}"\n')
        for number, port in enumerate(self.spine_ports):
            text += f'\n[[spine]]\nname = "spine-{number}"\naddress = "127.0.0.1:{port}"\n'
        return text

    @property
    def port(self):
        return self.router_ports[0]

    def roles(self):
        return self.routers + self.spines + self.leaves

    def output(self):
        return "\n".join(f"{role.name}:\n{role.output()}" for role in self.roles())

    def stop(self):
        for role in self.roles():
            role.stop()

    def close(self):
        for role in self.roles():
            role.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def http_ok(port, path="/readyz", timeout_s=1.0):
    """True if the admin server on that loopback port answers 200 for path."""
    with contextlib.suppress(OSError, urllib.error.URLError):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout_s) as reply:
            return reply.status == 200
    return False


def run(argv, timeout_s=60, stdin=None, env=None, check=True):
    """Runs a program to its end; raises with its output on failure, if check."""
    argv = [str(word) for word in argv]
    done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout_s, env={**os.environ, **(env or {})}, check=False)
    if check and done.returncode != 0:
        raise HarnessError(
            f"$ {' '.join(argv)[:2000]}\nstatus {done.returncode}\n"
            f"{done.stdout[-4000:].decode(errors='replace')}\n"
            f"{done.stderr[-4000:].decode(errors='replace')}")
    return done
