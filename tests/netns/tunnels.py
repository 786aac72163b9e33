# SPDX-License-Identifier: Apache-2.0
"""`ballast lb decap` on a host of a test network."""

import signal
import subprocess

from harness import Server, ballast_binary, wait_until

BALANCERS = ("10.0.0.2", "fd00::2")


class PrivatePins:
    """A BPF file system of the test's own, where the one of the machine is for others; it ends with
    the network."""

    def __init__(self, net):
        self.process = net.start(
            "switch", "unshare", "--mount", "--propagation", "private", "sh", "-c",
            "mount -t bpf bpf /sys/fs/bpf && echo && exec sleep 600", stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"\n", "no BPF file system could be mounted"

    @property
    def mount(self):
        """nsenter's word for it."""
        return f"--mount=/proc/{self.process.pid}/ns/mnt"


class Decap(Server):
    """On eth0 of the host, instead of what was there."""

    def __init__(self, net, host, *options, before=(), pins=None):
        super().__init__("decap")
        self.net, self.host, self.options = net, host, options
        self.before, self.pins = before, pins
        self.begin()

    def argv(self):
        mount = [self.pins.mount] if self.pins else []
        return ["nsenter", *mount, f"--net=/run/netns/{self.net.space(self.host)}", *self.before,
                ballast_binary(), "lb", "decap", "--interface", "eth0", *self.options]

    def ready(self):
        return "are opened" in self.output()

    def counts(self):
        """What SIGUSR1 makes it print."""
        printed = self.output().count("handed_on")
        self.signal(signal.SIGUSR1)
        wait_until(lambda: self.output().count("handed_on") > printed and
                   self.output().endswith("\n"), 5, "counts")
        return last_counts(self.output())


def last_counts(output):
    words = [line.split() for line in output.splitlines()]
    return {line[0]: int(line[1]) for line in words if len(line) > 2 and line[1].isdigit()}


def balancer_words(*addresses):
    return [word for address in addresses or BALANCERS for word in ("--balancer", address)]


def take_off(net, host):
    """The program that `add_web` attached."""
    net.inside(host, "ip", "link", "set", "dev", "eth0", "xdpdrv", "off")


def has_program(net, host):
    return "xdp" in net.inside(host, "ip", "link", "show", "eth0").stdout
