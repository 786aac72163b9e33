# SPDX-License-Identifier: Apache-2.0
"""Connections that stay open through the balancer, and the servers they are open with."""

import subprocess

from control import VIPS, vip
from harness import wait_until

# Opens connections, and on each line of its input sends a byte on all of them and waits for it to
# come back; says the names of the servers whose connections are still good.
HOLDER = """
import asyncio, collections, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

async def connect(gate):
    async with gate:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 10)
        return reader, writer, (await asyncio.wait_for(reader.readline(), 10)).decode().strip()

async def is_good(reader, writer):
    try:
        writer.write(b'x')
        return await asyncio.wait_for(reader.read(1), 10) == b'x'
    except (OSError, asyncio.TimeoutError):
        return False

async def main():
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(200)
    held = await asyncio.gather(*(connect(gate) for _ in range(count)))
    print(' '.join(name for _, _, name in held), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        good = await asyncio.gather(*(is_good(reader, writer) for reader, writer, _ in held))
        print(' '.join(one[2] for one, fine in zip(held, good) if fine), flush=True)
    sys.stdout.flush()

asyncio.run(main())
"""

# Says its name to each connection, then echoes.
ECHO = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

async def serve(reader, writer):
    writer.write(sys.argv[1].encode() + b'\\n')
    try:
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()

async def main():
    server = await asyncio.start_server(serve, None, 7000, backlog=4096)
    await server.serve_forever()

asyncio.run(main())
"""


class Holder:
    """Connections from the client that stay open."""

    def __init__(self, net, count, host=VIPS[0], port=7000):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{net.space('client')}", "/usr/bin/python3", "-c", HOLDER,
             host, str(port), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        net.processes.append(self.process)
        self.names = self.process.stdout.readline().split()
        assert len(self.names) == count, "not all connections were opened"

    def good(self):
        """The names of the servers whose connections still work."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()


def echo_servers(net, *hosts):
    for host in hosts:
        net.processes.append(subprocess.Popen(  # pylint: disable=consider-using-with
            ["nsenter", f"--net=/run/netns/{net.space(host)}", "/usr/bin/python3", "-c", ECHO,
             host]))
        wait_until(lambda host=host: ":7000" in net.inside(host, "ss", "-tln").stdout, 10,
                   f"echo on {host}")


def echo_vip(**more):
    return {**vip(**more), "name": "echo", "port": 7000}
