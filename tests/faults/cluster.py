# SPDX-License-Identifier: Apache-2.0
"""A tier of separate processes: routers, leaves and spines over real redis-servers.

Every link between two roles may pass a relay of its own, so that each can be broken alone. With
BALLAST_TEST_TARGET=redis three relays to one stock server stand in for the routers.
"""

from harness import RedisServer, Role, free_port
from relay import Relay
from stage import hot_share, target_kind


class Links:
    """The relays between roles, by the name of the link, e.g. "router-0>spine-1"."""

    def __init__(self, relayed):
        self.relayed = relayed
        self.by_name = {}

    def address(self, source, target, port):
        """Where `source` finds `target`, which listens on `port`."""
        if not self.relayed:
            return f"127.0.0.1:{port}"
        name = f"{source}>{target}"
        if name not in self.by_name:
            self.by_name[name] = Relay(port)
        return self.by_name[name].address

    def to(self, target):
        return [relay for name, relay in self.by_name.items() if name.endswith(">" + target)]

    def among(self, *kinds):
        """Links whose name holds every one of the words."""
        return [relay for name, relay in self.by_name.items()
                if all(kind in name for kind in kinds)]

    def mend(self):
        for relay in self.by_name.values():
            relay.delay_s = 0.0
            relay.release()
            relay.mend()

    def close(self):
        for relay in self.by_name.values():
            relay.close()


class Cluster:
    """Processes by name: rack-N (leaves), spine-N, router-N; shards in a list."""

    def __init__(self, racks=2, shards_per_rack=2, spines=2, routers=3, relayed=False, options=""):
        self.options = options
        self.kind = target_kind()
        self.shards = []
        self.roles = {}
        self.retired = []  # former processes under a name that now has another
        self.links = Links(relayed or self.kind == "redis")
        self.leaves = [f"rack-{number}" for number in range(racks)]
        self.spines = [f"spine-{number}" for number in range(spines)]
        self.routers = [f"router-{number}" for number in range(routers)]
        self.ports = {name: free_port() for name in self.leaves + self.spines + self.routers}
        self.shards_per_rack = shards_per_rack
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        count = len(self.leaves) * self.shards_per_rack if self.kind == "tier" else 1
        for number in range(count):
            self.shards.append(RedisServer(name=f"shard-{number}"))
        if self.kind == "redis":
            for name in self.routers:
                self.links.address(name, "shard-0", self.shards[0].port)
            return
        for name in self.leaves + self.spines + self.routers:
            self.roles[name] = self._start_role(name)

    @property
    def endpoints(self):
        if self.kind == "redis":
            return [relay.address for relay in self.links.by_name.values()]
        return [f"127.0.0.1:{self.ports[name]}" for name in self.routers]

    def hot_share(self):
        """Of all reads so far, how many a copy answered; nothing with a stock server."""
        if self.kind == "redis":
            return None
        return hot_share([self.roles[name].admin_port for name in self.routers])

    def toml(self, name):
        """The configuration as process `name` sees it: its own address, the others by its links."""
        def address(target):
            if target == name:
                return f"127.0.0.1:{self.ports[name]}"
            return self.links.address(name, target, self.ports[target])

        # Routers find a copy with the first read: what these tests are about is reading copies.
        lines = ['tier = "faults"', 'shard_timeout = "500ms"', "sample = 1", self.options]
        if name in self.routers:
            lines.append(f'listen = "127.0.0.1:{self.ports[name]}"')
        for number, leaf in enumerate(self.leaves):
            first = number * self.shards_per_rack
            addresses = [self.links.address(name, f"shard-{index}", self.shards[index].port)
                         for index in range(first, first + self.shards_per_rack)]
            shards = ", ".join(f'"{one}"' for one in addresses)
            lines += ["[[rack]]", f'name = "{leaf}"', f"shards = [{shards}]",
                      f'leaf = "{address(leaf)}"']
        for spine in self.spines:
            lines += ["[[spine]]", f'name = "{spine}"', f'address = "{address(spine)}"']
        return "\n".join(lines) + "\n"

    def _start_role(self, name):
        if name in self.routers:
            return Role("router", self.toml(name))
        return Role("leaf" if name in self.leaves else "spine", self.toml(name), name=name)

    def kill(self, name):
        self.roles[name].kill()

    def restart(self, name):
        self.roles[name].start()

    def pause(self, name):
        self.roles[name].pause()

    def resume(self, name):
        self.roles[name].resume()

    def replace(self, name):
        """A new process under the name, at another port, to which the relays now lead.

        The former one goes on as it is, perhaps paused; it is returned.
        """
        assert self.links.relayed
        former = self.roles[name]
        self.retired.append(former)
        self.ports[name] = free_port()
        for relay in self.links.to(name):
            relay.target_port = self.ports[name]
            relay.drop_connections()
        self.roles[name] = self._start_role(name)
        return former

    def check_running(self):
        for name, role in self.roles.items():
            if not role.running():
                role.process.fail(f"{name} ended by itself")

    def close(self):
        self.links.close()
        for role in list(self.roles.values()) + self.retired:
            role.close()
        for shard in self.shards:
            shard.close()
