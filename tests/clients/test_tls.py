# SPDX-License-Identifier: Apache-2.0
"""TLS towards clients: redis-cli and python's ssl against the tier, with a CA made by the test."""

import contextlib
import os
import random
import socket
import ssl
import time

import pytest
from harness import encode, run
from wire import ReplyError, Wire

MIB = 1 << 20
HANDSHAKE_S = 10  # an unfinished handshake is closed after this


class Authority:
    """A CA with one server's and one client's certificate, as PEM files."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.folder.mkdir()
        self.ca = self.folder / "ca.crt"
        self._openssl("req", "-x509", "-keyout", self._key("ca"), "-out", self.ca, "-days", "2",
                      "-subj", f"/CN=test CA {name}", *self._new_key())
        for one in ("server", "client"):
            self._issue(one)

    def _openssl(self, *words):
        run(["openssl", *words])

    @staticmethod
    def _new_key():
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]

    def _key(self, name):
        return self.folder / f"{name}.key"

    def _issue(self, name):
        asked, names = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="ascii")
        self._openssl("req", "-new", "-keyout", self._key(name), "-out", asked, "-subj",
                      f"/CN={name}", *self._new_key())
        self._openssl("x509", "-req", "-in", asked, "-CA", self.ca, "-CAkey", self._key("ca"),
                      "-CAcreateserial", "-days", "2", "-extfile", names, "-out",
                      self.folder / f"{name}.crt")

    def files(self, name):
        return self.folder / f"{name}.crt", self._key(name)

    def context(self, client=None):
        """What a client that trusts this CA connects with; client names its certificate's CA."""
        context = ssl.create_default_context(cafile=self.ca)
        if client is not None:
            context.load_cert_chain(*client.files("client"))
        return context


class TlsWire(Wire):
    """A Wire inside TLS."""

    def __init__(self, port, context, timeout_s=20.0):
        super().__init__(port, timeout_s)
        self.reader.close()
        self.link = context.wrap_socket(self.link, server_hostname="localhost")
        self.reader = self.link.makefile("rb", buffering=1 << 16)


@pytest.fixture(scope="module", name="ca")
def fixture_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "right")


@pytest.fixture(scope="module", name="other_ca")
def fixture_other_ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "other")


@pytest.fixture(name="new_tls_target")
def fixture_new_tls_target(new_target, ca, monkeypatch):
    """Makes targets that speak TLS to clients; what they may be asked is not a plain PING."""
    def make(*options, client_auth=None, shards=2):
        certificate, key = ca.files("server")
        monkeypatch.setattr("harness.ping", lambda port: _tls_port_open(port, ca))
        words = ["--tls-cert", certificate, "--tls-key", key, *options]
        if client_auth is not None:
            words += ["--tls-ca", ca.ca, "--tls-client-auth", client_auth]
        return new_target(shards=shards, tier_options=words)

    if os.environ.get("BALLAST_TEST_TARGET") == "redis":
        pytest.skip("the stock server of the harness listens without TLS")
    return make


def _tls_port_open(port, ca):
    """True if that port completes a handshake, or speaks plain Redis as the shards do."""
    with contextlib.suppress(OSError):
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(encode("PING"))
            if link.recv(7) == b"+PONG\r\n":
                return True
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            with contextlib.suppress(ssl.SSLError):
                with ca.context(ca).wrap_socket(link, server_hostname="localhost"):
                    return True
    return False


def cli(target, ca, *words, client=None, stdin=None, check=True):
    named = []
    if client is not None:
        certificate, key = client.files("client")
        named = ["--cert", certificate, "--key", key]
    return run(["redis-cli", "-h", "localhost", "-p", target.port, "--tls", "--cacert", ca.ca,
                *named, *words], stdin=stdin, check=check)


def test_redis_cli(new_tls_target, ca):
    target = new_tls_target()
    assert cli(target, ca, "SET", "k", "v").stdout == b"OK\n"
    assert cli(target, ca, "-3", "GET", "k").stdout == b"v\n"
    data = b"".join(encode("SET", f"p{number}", number) for number in range(20_000))
    assert b"errors: 0, replies: 20000" in cli(target, ca, "--pipe", stdin=data).stdout
    assert cli(target, ca, "MGET", "p0", "p19999").stdout == b"0\n19999\n"


def test_pipelined_commands_keep_their_order(new_tls_target, ca):
    target = new_tls_target()
    rng = random.Random(5)
    with TlsWire(target.port, ca.context()) as wire:
        for turn in range(60):
            count = rng.choice([1, 10, 1000])
            sent = b"".join(encode("SET", f"k{number % 7}", f"{turn}:{number}")
                            + encode("GET", f"k{number % 7}") for number in range(count))
            while sent:  # records end anywhere
                size = rng.choice([1, 100, 20_000])
                wire.send_bytes(sent[:size])
                sent = sent[size:]
            for number in range(count):
                assert wire.read() == b"OK"
                assert wire.read() == f"{turn}:{number}".encode()


def test_64_mib_values(new_tls_target, ca):
    target = new_tls_target()
    value = random.Random(6).randbytes(64 * MIB)
    with TlsWire(target.port, ca.context(), 60) as wire, \
            TlsWire(target.port, ca.context()) as other:
        assert wire.ask("SET", "large", value) == b"OK"
        wire.send("GET", "large")
        wire.send("STRLEN", "large")
        assert other.ask("PING") == b"PONG"
        assert wire.read() == value
        assert wire.read() == 64 * MIB
        # The reply leaves whole, although the client has said goodbye.
        wire.send_bytes(encode("GET", "large") + encode("QUIT"))
        time.sleep(0.3)
        assert wire.read() == value
        assert wire.read() == b"OK"
        assert wire.closed_by_peer()


def test_plain_text_is_refused(new_tls_target, ca):
    target = new_tls_target()
    with Wire(target.port, timeout_s=5) as plain:
        plain.send("PING")
        with pytest.raises(ConnectionError):  # an alert, or nothing, and the end
            while plain.read_value() is not None:
                pass
    with TlsWire(target.port, ca.context()) as wire:
        assert wire.ask("PING") == b"PONG"


def refused(target, context):
    """True if a client with this context gets no answer. TLS 1.3 refuses after the handshake."""
    try:
        with TlsWire(target.port, context) as wire:
            return wire.ask("PING") != b"PONG"
    except (ssl.SSLError, ConnectionError):
        return True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("client_auth,without,wrong", [
    ("none", False, False), ("optional", False, True), ("required", True, True)])
def test_client_certificates(new_tls_target, ca, other_ca, version, client_auth, without, wrong):
    """A right certificate is always let in; none, and a wrong one, as the option says."""
    target = new_tls_target(client_auth=client_auth)

    def context(client=None):
        one = ca.context(client)
        one.minimum_version = one.maximum_version = version
        return one

    for _ in range(2):
        assert not refused(target, context(ca))
        assert refused(target, context()) == without
        assert refused(target, context(other_ca)) == wrong
    assert cli(target, ca, "PING", client=ca).stdout == b"PONG\n"
    assert (cli(target, ca, "PING", check=False).stdout == b"PONG\n") != without


def test_a_session_is_taken_up_again_with_its_certificate(new_tls_target, ca):
    target = new_tls_target(client_auth="required")
    context = ca.context(ca)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with TlsWire(target.port, context) as wire:
        assert wire.ask("PING") == b"PONG"
        session = wire.link.session
    with socket.create_connection(("127.0.0.1", target.port), timeout=5) as link:
        with context.wrap_socket(link, server_hostname="localhost", session=session) as again:
            again.sendall(encode("PING"))
            assert again.recv(7) == b"+PONG\r\n"
            assert again.session_reused


def test_garbage_instead_of_a_handshake(new_tls_target, ca):
    """Random bytes, and a right hello cut or damaged anywhere, hurt nobody else."""
    target = new_tls_target()
    rng = random.Random(7)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ca.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        session.do_handshake()
    hello = outgoing.read()
    with TlsWire(target.port, ca.context()) as good:
        for number in range(200):
            data = bytearray(hello)
            if number % 3 == 0:
                data = bytearray(rng.randbytes(rng.randint(1, 2000)))
            elif number % 3 == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                data = data[:rng.randrange(len(data))]
            with socket.create_connection(("127.0.0.1", target.port), timeout=5) as link:
                with contextlib.suppress(OSError):
                    link.sendall(data)
            if number % 20 == 0:
                assert good.ask("ECHO", number) == str(number).encode()
        assert good.ask("PING") == b"PONG"


def test_slow_handshakes(new_tls_target, ca):
    """A byte at a time is a handshake too; one that never ends is closed, and nobody waits."""
    target = new_tls_target()
    silent = [socket.create_connection(("127.0.0.1", target.port), timeout=20) for _ in range(100)]
    started = time.monotonic()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ca.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", target.port), timeout=20) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    link.sendall(bytes([byte]))
                    time.sleep(0.001)
                incoming.write(link.recv(65536))
        session.write(encode("PING"))
        for byte in outgoing.read():
            link.sendall(bytes([byte]))
        reply = b""
        while not reply:
            incoming.write(link.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                reply = session.read(100)
        assert reply == b"+PONG\r\n"
    with TlsWire(target.port, ca.context()) as wire:
        before = time.monotonic()
        assert wire.ask("PING") == b"PONG"
        assert time.monotonic() - before < 1
        for link in silent:
            assert link.recv(1) == b""
        assert HANDSHAKE_S - 1 < time.monotonic() - started < HANDSHAKE_S + 5
        assert wire.ask("PING") == b"PONG"
    for link in silent:
        link.close()


def test_errors_stay_in_the_stream(new_tls_target, ca):
    target = new_tls_target()
    with TlsWire(target.port, ca.context()) as wire:
        wire.ask("SET", "k", "v")
        with pytest.raises(ReplyError, match="WRONGTYPE"):
            wire.ask("LPUSH", "k", "x")
        wire.send_bytes(encode("GET", "k") + b"*1\r\n:5\r\n")
        assert wire.read() == b"v"
        assert isinstance(wire.read_value(), ReplyError)
        assert wire.closed_by_peer()
