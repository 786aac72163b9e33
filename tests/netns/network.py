# SPDX-License-Identifier: Apache-2.0
"""A switched network of namespaces: each host has one veth, whose peer is a port of a bridge.

Programs are loaded from the build folder by bpftool and pinned, so that every step is one command.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OBJECTS = ROOT / "build/release/skeletons"
PINS = pathlib.Path("/sys/fs/bpf")
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
TX_CHECKSUMS_OFF = """
import array, fcntl, socket, struct, sys
command = array.array('B', struct.pack('II', 0x17, 0))  # ETHTOOL_STXCSUM
request = struct.pack('16sP', sys.argv[1].encode(), command.buffer_info()[0])
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8946, request)
"""


class Unavailable(Exception):
    """Why the test cannot run here."""


def run(*argv, check=True, timeout_s=30):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True,
                          timeout=timeout_s, check=False)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {done.stderr.strip()}")
    return done


def bpftool(*words):
    return run(shutil.which("bpftool") or "/usr/sbin/bpftool", *words).stdout


def hex_bytes(data):
    return ["hex", *[f"{byte:02x}" for byte in data]]


def require():
    if os.geteuid() != 0:
        raise Unavailable("network namespaces and XDP need root")
    for tool in ("ip", "nsenter"):
        if not shutil.which(tool):
            raise Unavailable(f"there is no {tool}")
    if not (OBJECTS / "lb.bpf.o").exists():
        raise Unavailable("the kernel's programs are not built: ./dev build")
    if not os.path.ismount(PINS):
        mounted = run("mount", "-t", "bpf", "bpf", PINS, check=False)
        if mounted.returncode:
            raise Unavailable(f"no BPF file system: {mounted.stderr.strip()}")
    name = f"bl-{os.getpid()}-probe"
    probe = run("ip", "netns", "add", name, check=False)
    if probe.returncode:
        raise Unavailable(f"no network namespaces: {probe.stderr.strip()}")
    bridge = run("ip", "-n", name, "link", "add", "br0", "type", "bridge", check=False)
    run("ip", "netns", "del", name)
    if bridge.returncode:
        raise Unavailable(f"no bridge: {bridge.stderr.strip()}")


class Network:
    """Hosts on one bridge; `close` takes all of it away."""

    @staticmethod
    def address_bytes(words):
        return address_bytes(words)

    def __init__(self):
        require()
        self.prefix = f"bl-{os.getpid()}-"
        self.pins = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix, dir=PINS))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix))
        self.processes = []
        self.spaces = []
        self.add_space("switch")
        run("ip", "-n", self.space("switch"), "link", "add", "br0", "up", "type", "bridge")

    def space(self, host):
        return self.prefix + host

    def add_space(self, host):
        run("ip", "netns", "add", self.space(host))
        self.spaces.append(host)
        run("ip", "-n", self.space(host), "link", "set", "lo", "up")

    def host(self, name, *addresses):
        """A host with interface eth0; returns its MAC address."""
        self.add_space(name)
        run("ip", "-n", self.space("switch"), "link", "add", "p-" + name, "type", "veth", "peer",
            "name", "eth0", "netns", self.space(name))
        run("ip", "-n", self.space("switch"), "link", "set", "p-" + name, "master", "br0", "up")
        run("ip", "-n", self.space(name), "link", "set", "eth0", "up")
        for address in addresses:
            nodad = ["nodad"] if ":" in address else []
            run("ip", "-n", self.space(name), "address", "add", address, "dev", "eth0", *nodad)
        self.inside(name, "/usr/bin/python3", "-c", TX_CHECKSUMS_OFF, "eth0")
        shown = json.loads(run("ip", "-n", self.space(name), "-j", "link", "show", "eth0").stdout)
        return bytes.fromhex(shown[0]["address"].replace(":", ""))

    def inside(self, host, *argv, **options):
        return run("nsenter", f"--net=/run/netns/{self.space(host)}", *argv, **options)

    def start(self, host, *argv, **options):
        """A process in the host's namespace, ended with the network."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{self.space(host)}", *map(str, argv)], **options)
        self.processes.append(process)
        return process

    def load(self, program):
        """Loads build/…/PROGRAM.bpf.o; its maps are then at self.pins / MAP."""
        (self.pins / program).mkdir()
        bpftool("prog", "loadall", OBJECTS / f"{program}.bpf.o", self.pins / program, "type", "xdp",
                "pinmaps", self.pins / program)

    def attach(self, host, interface, program):
        self.inside(host, "ip", "link", "set", "dev", interface, "xdpdrv", "pinned",
                    self.pins / program / program)

    def pass_through(self, host, interface):
        """XDP_TX on a veth needs a program on its peer: one that opens no tunnel."""
        folder = self.pins / "through"
        if not folder.exists():
            folder.mkdir()
            bpftool("prog", "loadall", OBJECTS / "decap.bpf.o", folder, "type", "xdp")
        self.inside(host, "ip", "link", "set", "dev", interface, "xdpdrv", "pinned",
                    folder / "decap")

    def put(self, program, table, key, value):
        bpftool("map", "update", "pinned", self.pins / program / table, "key", *hex_bytes(key),
                "value", *hex_bytes(value))

    def put_many(self, program, table, entries):
        """Pairs of key and value, in one go."""
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            for key, value in entries:
                words = ["map", "update", "pinned", str(self.pins / program / table), "key",
                         *hex_bytes(key), "value", *hex_bytes(value)]
                file.write(" ".join(words) + "\n")
            file.flush()
            bpftool("batch", "file", file.name)

    def entries(self, program, table):
        return json.loads(bpftool("-j", "map", "dump", "pinned", self.pins / program / table))

    def nginx(self, host, listen):
        """An nginx in the host's namespace that says where it runs and takes large uploads."""
        folder = self.folder / host
        folder.mkdir()
        folder.chmod(0o755)
        (folder / "large").write_bytes(os.urandom(1 << 20))
        listens = "".join(f"listen {address};" for address in listen)
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\n"
            "events {}\n"
            f"http {{ access_log off; client_body_temp_path {folder}/body; "
            f"client_max_body_size 8m; server {{ {listens} root {folder};\n"
            f"location = /name {{ return 200 {host}; }} }} }}\n", encoding="utf-8")
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{self.space(host)}", NGINX, "-p", str(folder), "-c",
             str(folder / "nginx.conf"), "-e", str(folder / "error")])
        self.processes.append(process)
        deadline = time.monotonic() + 10
        while not (folder / "pid").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("nginx did not start: " + (folder / "error").read_text("utf-8"))
            time.sleep(0.05)

    def close(self):
        for process in self.processes:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        for host in self.spaces:
            run("ip", "netns", "del", self.space(host), check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        for pinned in sorted(self.pins.rglob("*"), reverse=True):
            if pinned.is_dir():
                pinned.rmdir()
            else:
                pinned.unlink()
        self.pins.rmdir()


def address_bytes(words):
    """A struct bl_address: 16 bytes, an IPv4 address in the first four."""
    family = socket.AF_INET6 if ":" in words else socket.AF_INET
    return socket.inet_pton(family, words).ljust(16, b"\0")


def family_of(words):
    return 6 if ":" in words else 4
