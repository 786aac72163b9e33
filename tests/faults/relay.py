# SPDX-License-Identifier: Apache-2.0
"""A TCP relay for one link, in a thread of its own, that can delay, hold, cut and chop the bytes.

A held link is what a silent network looks like: connections stay open, nothing arrives. A cut one
closes what is open and refuses what comes.
"""

import asyncio
import contextlib
import socket
import threading


class _Flow:
    """One direction of one connection."""

    def __init__(self, relay, reader, writer):
        self.relay = relay
        self.reader = reader
        self.writer = writer
        self.back = None  # the other direction
        self.tracking = False
        self.resp3 = False
        self.queue = asyncio.Queue()
        self.queued = 0

    async def read(self):
        with contextlib.suppress(ConnectionError):
            while data := await self.reader.read(1 << 16):
                self.queued += len(data)
                if b"TRACKING" in data:
                    self.back.tracking = True
                if b"HELLO\r\n$1\r\n3" in data:
                    self.back.resp3 = True
                await self.queue.put((asyncio.get_running_loop().time(), data))
                while self.queued > self.relay.buffer_bytes:
                    await asyncio.sleep(0.001)
        await self.queue.put((asyncio.get_running_loop().time(), b""))

    async def write(self):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while True:
                arrived, data = await self.queue.get()
                while (wait := arrived + self._delay_s() - loop.time()) > 0:
                    await asyncio.sleep(wait)
                await self.relay.open_gate.wait()
                self.queued -= len(data)
                if not data:
                    if self.writer.can_write_eof():
                        self.writer.write_eof()
                    return
                await self._send(data)

    def _delay_s(self):
        return max(self.relay.delay_s, self.relay.push_delay_s if self.tracking else 0.0,
                   self.relay.resp3_delay_s if self.resp3 else 0.0)

    async def _send(self, data):
        step = self.relay.chunk or len(data)
        for start in range(0, len(data), step):
            self.writer.write(data[start:start + step])
            await self.writer.drain()
            if self.relay.chunk:
                await asyncio.sleep(0)


class Relay:
    """Listens on a free loopback port and forwards to 127.0.0.1:target_port.

    `chunk` > 0 forwards that many bytes at a time; `buffer_bytes` bounds what is held a direction.
    `push_delay_s` delays what comes back on connections that asked for CLIENT TRACKING,
    `resp3_delay_s` on those that said HELLO 3.
    """

    def __init__(self, target_port, buffer_bytes=1 << 22):
        self.target_port = target_port
        self.buffer_bytes = buffer_bytes
        self.delay_s = 0.0
        self.push_delay_s = 0.0
        self.resp3_delay_s = 0.0
        self.chunk = 0
        self.accepted = 0
        self._refusing = False
        self._links = {}  # task of a connection -> its two writers
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listener.getsockname()[1]
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"relay:{self.port}", daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def hold(self):
        """Nothing passes until release(); connections stay open."""
        self._call(self.open_gate.clear)

    def release(self):
        self._call(self.open_gate.set)

    def cut(self):
        """Closes every connection, bytes under way are lost; refuses new ones until mend()."""
        self._refusing = True
        self._call(self._abort_all)

    def mend(self):
        self._refusing = False

    def drop_connections(self):
        """Closes every connection once; new ones are served."""
        self._call(self._abort_all)

    def drop_newest_connection(self):
        self._call(lambda: self._abort(list(self._links.values())[-1:]))

    def connection_count(self):
        return len(self._links)

    def close(self):
        if self._loop.is_closed():
            return
        self._refusing = True
        self._call(self._abort_all)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, function):
        done = threading.Event()

        def run():
            function()
            done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait(5)

    def _abort_all(self):
        self._abort(list(self._links.values()))

    @staticmethod
    def _abort(links):
        for writers in links:
            for writer in writers:
                writer.transport.abort()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, sock=self._listener, limit=1 << 16))
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self, reader, writer):
        if self._refusing:
            writer.transport.abort()
            return
        self.accepted += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        self._links[task] = (writer, far_writer)
        for one in (writer, far_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        flows = (_Flow(self, reader, far_writer), _Flow(self, far_reader, writer))
        flows[0].back, flows[1].back = flows[1], flows[0]
        jobs = [asyncio.ensure_future(job) for flow in flows for job in (flow.read(), flow.write())]
        try:
            # A side that is gone ends its flow; an abort ends both.
            await asyncio.wait(jobs[1::2], return_when=asyncio.ALL_COMPLETED)
        finally:
            for job in jobs:
                job.cancel()
            self._abort([(writer, far_writer)])
            self._links.pop(task, None)
