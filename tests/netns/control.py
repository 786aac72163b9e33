# SPDX-License-Identifier: Apache-2.0
"""`ballast lb run` in a namespace of a test network, its configuration and its HTTP interface."""

import http.client
import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import Server, ballast_binary, wait_until  # noqa: E402

VIPS = ("192.0.2.1", "2001:db8:1::1")
SECRET = "what balancers and agents share"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect(str(self.path))


class Balancer(Server):
    """`lb run` on eth0 of a host; its tables are pinned in a folder of the network's."""

    def __init__(self, net, vips, host="lb", **settings):
        super().__init__("lb", {"BALLAST_LB_SECRET": SECRET})
        self.net, self.host = net, host
        self.api = self.directory / "api"
        self.pins = net.pins / f"run-{host}"
        self.settings = {"interfaces": ["eth0"], "api": str(self.api), "pins": str(self.pins),
                         "admin": "off", **settings}
        self.configure(vips)
        self.begin()

    @property
    def file(self):
        return self.directory / "lb.toml"

    def configure(self, vips):
        """Writes lb.toml; `vips` are tables as JSON spells them."""
        lines = ["[lb]", *(f"{key} = {json.dumps(value)}" for key, value in self.settings.items())]
        for vip in vips:
            lines += ["[[vip]]", *(f"{key} = {json.dumps(value)}" for key, value in vip.items()
                                   if key != "instance")]
            for instance in vip["instance"]:
                lines += ["[[vip.instance]]", *(f"{key} = {json.dumps(value)}"
                                                for key, value in instance.items())]
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def argv(self):
        return ["nsenter", f"--net=/run/netns/{self.net.space(self.host)}", ballast_binary(), "lb",
                "run", "-c", self.file]

    def ready(self):
        return self.api.exists()

    def call(self, method, path, body=None):
        """Status and JSON of a request."""
        connection = UnixConnection(self.api)
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        said = json.loads(answer.read())
        connection.close()
        return answer.status, said

    def get(self, path):
        status, said = self.call("GET", path)
        assert status == 200, said
        return said

    def status(self):
        return self.get("/v1/status")

    def apply(self, vips, query=""):
        status, said = self.call("PUT", "/v1/config" + query, {"vip": vips})
        assert status == 200, said
        return said["changes"]

    def instances(self, vip=0):
        return {each["name"]: each for each in self.status()["vips"][vip]["instances"]}

    def wait_weights(self, what, seconds=5.0, **weights):
        """Until the instances named have a weight (True) or none (False)."""
        def settled():
            seen = self.instances()
            return all((seen[name]["weight"] > 0) == wanted for name, wanted in weights.items())
        wait_until(settled, seconds, what)


def vip(address=VIPS[0], names=("web0", "web1"), family=4, **more):
    """A VIP on port 80 over the hosts web0, web1, … of `two_webs`."""
    stem = "10.0.0.1" if family == 4 else "fd00::1"
    return {"name": "web" if address == VIPS[0] else "web6", "address": address, "port": 80,
            "instance": [{"name": name, "address": stem + name[3:]} for name in names], **more}


def build(net, webs=2, hosts=("lb",)):
    """A client, balancers and instances on one switch; the instances take the VIPs' packets and
    open tunnels. Routes to the VIPs go by the first balancer."""
    net.host("client", "10.0.0.3/24", "fd00::3/64")
    net.load("decap")
    for i, host in enumerate(hosts):
        own = (f"10.0.0.{2 + 2 * i}", f"fd00::{2 + 2 * i}")
        net.host(host, f"{own[0]}/24", f"{own[1]}/64")
        for address, family in zip(own, (4, 6)):
            net.put("decap", "balancers", net.address_bytes(address) + bytes([family, 0, 0, 0]),
                    b"\1")
        net.pass_through("switch", f"p-{host}")
    for i in range(webs):
        add_web(net, i)
    for address, gateway in zip(VIPS, ("10.0.0.2", "fd00::2")):
        net.inside("client", "ip", "route", "add", address, "via", gateway)


def add_web(net, i, serve=True):
    name = f"web{i}"
    net.host(name, f"10.0.0.1{i}/24", f"fd00::1{i}/64")
    for address in VIPS:
        net.inside(name, "ip", "address", "add", address, "dev", "lo",
                   *(["nodad"] if ":" in address else []))
    # The VIP's address on lo is nobody's to ask for on the switch.
    for key, value in (("arp_ignore", 1), ("arp_announce", 2)):
        net.inside(name, "sysctl", "-qw", f"net.ipv4.conf.all.{key}={value}")
    net.attach(name, "eth0", "decap")
    if serve:
        net.nginx(name, [f"{VIPS[0]}:80", f"[{VIPS[1]}]:80", f"10.0.0.1{i}:80",
                         f"[fd00::1{i}]:80"])
