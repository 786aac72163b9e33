# SPDX-License-Identifier: Apache-2.0
"""The same random commands to a stock server and to a tier: the replies must be the same, down to
their types, but for the limits that docs/reference/commands.md names."""

import os
import pathlib
import random
import shlex
import time

import pytest
from harness import RedisServer, SplitTier, Tier, encode
from wire import Wire

SECONDS = float(os.environ.get("BALLAST_COMPARE_SECONDS", "2.5"))
TEMPLATES = pathlib.Path(__file__).with_name("commands_to_compare.txt")
ONE_SLOT = [b"{t}1", b"{t}2", b"{t}3", b"{t}4", b"foo{t}", b"{t}5"]
KEYS = [b"a", b"b", b"c", b"", b"\x00\xff\r\n", b"user:1", b"k{", b"{}x", b"long" * 30] + ONE_SLOT
ARGUMENTS = {
    "k": KEYS, "t": ONE_SLOT, "i": [b"0", b"1", b"-1", b"2", b"5", b"10", b"-2", b"100"],
    "v": [b"", b"1", b"-5", b"3.5", b"abc", b"x" * 100, b"\r\n\x00", b"y" * 5000,
          b"9223372036854775807", b"nan", b"inf"],
    "f": [b"f1", b"f2", b"f3", b"", b"1", b"2", b"\r\n"],
    "n": [b"0", b"1", b"-1", b"2", b"5", b"10", b"-2", b"100", b"x", b"9223372036854775807",
          b"-9223372036854775808", b"1.5", b""],
    "s": [b"1", b"2", b"-1.5", b"3", b"inf", b"(1", b"(3", b"-inf", b"+inf", b"bad", b"1e3"],
    "l": [b"-", b"+", b"[a", b"(f1", b"[f3", b"zz"], "e": [b"1000", b"5000", b"100000"]}
LIBRARY = (b"#!lua name=mylib\n"
           b"redis.register_function('myset', function(k, a) return redis.call('SET', k[1], a[1])"
           b" end)\nredis.register_function{function_name='myget', flags={'no-writes'}, "
           b"callback=function(k) return redis.call('GET', k[1]) end}")
# What docs/reference/commands.md says is refused, or told otherwise.
DOCUMENTED = (b"CROSSSLOT", b"through Ballast", b"offered by Ballast", b"administers one server",
              b"BY and GET patterns", b"would reach only one of the shards", b"cannot be told")
ABORTED = b"EXECABORT Transaction discarded because of previous errors."


def templates():
    ordered = True
    for line in TEMPLATES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            ordered = line == "[ordered]"
        elif line and not line.startswith("#"):
            yield [line.split() if '"' not in line else shlex.split(line), ordered]


class Typed(Wire):
    """Replies as (type, value), so that a wrong type is seen."""

    def typed(self):
        line = self.reader.readline()
        assert line.endswith(b"\r\n"), f"closed after {line!r}"
        kind, rest = line[:1].decode(), line[1:-2]
        if rest == b"-1" and kind in "$*":
            return kind, None
        if kind in "$=!":
            return kind, self.reader.read(int(rest) + 2)[:-2]
        if kind in "*~>%":
            return kind, [self.typed() for _ in range(int(rest) * (2 if kind == "%" else 1))]
        return kind, rest


class Commands:
    """Draws commands from the templates."""

    def __init__(self, seed, protocol):
        self.random = random.Random(seed)
        self.protocol = protocol
        self.templates = list(templates())

    def argument(self, word):
        if word == "p":
            return [b"%d" % self.protocol]
        if word == "library":
            return [LIBRARY]
        if len(word) == 2 and word[1] == "+" and word[0] in ARGUMENTS:
            return self.random.choices(ARGUMENTS[word[0]], k=self.random.randint(1, 3))
        if word in ARGUMENTS:
            return [self.random.choice(ARGUMENTS[word])]
        return [word.encode()]

    def draw(self):
        words, ordered = self.random.choice(self.templates)
        return [word for each in words for word in self.argument(each)], ordered

    def batch(self):
        return [self.draw() for _ in range(self.random.choice([1, 1, 1, 5, 30]))]


def sorted_reply(reply):
    kind, value = reply
    if kind == "%":
        return kind, sorted(zip(value[::2], value[1::2]), key=repr)
    if kind in "*~" and value is not None:
        return kind, sorted((sorted_reply(each) for each in value), key=repr)
    return reply


def same(command, ordered, stock, tier):
    if stock == tier or (not ordered and sorted_reply(stock) == sorted_reply(tier)):
        return True
    name = command[0].upper()
    if name.endswith((b"TTL", b"EXPIRETIME")) and stock[0] == tier[0] == ":":
        return abs(int(stock[1]) - int(tier[1])) <= 10000
    # The number of the connection is the server's own.
    return name == b"HELLO" and stock[0] == tier[0] and len(stock[1]) == len(tier[1])


def documented(reply):
    return reply[0] == "-" and any(words in reply[1] for words in DOCUMENTED)


def compare(stock, tier, commands):
    """Sends one batch to both. True if the two still hold the same keys, in the same state."""
    batch = commands.batch()
    replies = []
    for link in (stock, tier):
        link.send_bytes(b"".join(encode(*command) for command, _ in batch))
        replies.append([link.typed() for _ in batch])
    for (command, ordered), want, got in zip(batch, *replies):
        if want != got and documented(got):
            return False
        if want != got and got == ("-", ABORTED):
            return False
        assert same(command, ordered, want, got), \
            f"{command}: stock {want}, tier {got}; the batch: {[each for each, _ in batch]}"
    return True


def start_anew(link):
    for command in (["DISCARD"], ["UNWATCH"], ["FLUSHALL"], ["SCRIPT", "FLUSH"],
                    ["FUNCTION", "FLUSH"]):
        link.send(*command)
        link.typed()


@pytest.mark.parametrize("form, protocol", [
    ("one shard", 2), ("three shards", 3), ("separate processes", 2), ("separate processes", 3)])
def test_replies_are_the_same_as_of_one_server(form, protocol):
    seed = int(os.environ.get("BALLAST_COMPARE_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"BALLAST_COMPARE_SEED={seed}")
    servers = [RedisServer() for _ in range({"one shard": 2, "three shards": 4}.get(form, 3))]
    racks = [[server] for server in servers[1:]]
    make = SplitTier(racks, spines=1, settings="sample = 1\n") if form.startswith("sep") else \
        Tier(racks, spines=2, options=["--sample", "1"])
    with make as tier, Typed(servers[0].port) as stock, Typed(tier.port) as link:
        for each in (stock, link):
            each.send("HELLO", protocol)
            each.typed()
        commands = Commands(seed, protocol)
        deadline = time.monotonic() + SECONDS
        rounds = 0
        while time.monotonic() < deadline:
            rounds += 1
            if not compare(stock, link, commands) or rounds % 400 == 0:
                start_anew(stock)
                start_anew(link)
        print(f"{rounds} batches")
    for server in servers:
        server.close()
