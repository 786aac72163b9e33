// SPDX-License-Identifier: Apache-2.0
// What an application does with ioredis: `node ioredis.cjs PORT PROTOCOL [PASSWORD] [reconnect]`.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const Redis = require('ioredis').default ?? require('ioredis');

const [port, protocol, password, mode] = process.argv.slice(2);
const options = {
  port: Number(port),
  host: '127.0.0.1',
  protocol: Number(protocol),
  password: password || undefined,
  connectTimeout: 5000,
  retryStrategy: (times) => (times > 100 ? null : 50),
};

function connect(extra = {}) {
  const client = new Redis({ ...options, ...extra });
  client.on('error', () => {});
  return client;
}

async function values(client) {
  assert.equal(await client.set('k', 'v', 'EX', 100), 'OK');
  assert.equal(await client.get('k'), 'v');
  const binary = Buffer.from([0, 13, 10, 255]);
  assert.equal(await client.set(binary, binary), 'OK');
  assert.deepEqual(await client.getBuffer(binary), binary);
  assert.equal(await client.set('', ''), 'OK');
  assert.equal(await client.get(''), '');
  assert.equal(await client.get('missing'), null);
  await client.hset('h', { a: '1', b: '2' });
  assert.deepEqual({ ...(await client.hgetall('h')) }, { a: '1', b: '2' });
  await assert.rejects(client.lpush('k', 'x'), /WRONGTYPE/);
}

async function pipelines(client) {
  const pipe = client.pipeline();
  for (let i = 0; i < 1000; i++) pipe.set(`p${i}`, i).get(`p${i}`);
  const replies = await pipe.exec();
  replies.forEach(([error, reply], i) => {
    assert.equal(error, null);
    assert.equal(reply, i % 2 ? String((i - 1) / 2) : 'OK');
  });
  const many = await Promise.all(Array.from({ length: 1000 }, (_, i) => client.get(`p${i}`)));
  assert.deepEqual(many, Array.from({ length: 1000 }, (_, i) => String(i)));
}

async function transactions(client) {
  const replies = await client.multi().set('{t}a', 1).incr('{t}a').get('{t}a').exec();
  assert.deepEqual(replies, [[null, 'OK'], [null, 2], [null, '2']]);
  const other = connect();
  await client.watch('{t}a');
  await other.set('{t}a', 'theirs');
  assert.equal(await client.multi().set('{t}a', 'mine').exec(), null);
  assert.equal(await client.get('{t}a'), 'theirs');
  await other.quit();
}

async function subscriptions(client) {
  const listener = connect();
  await listener.subscribe('news');
  await listener.psubscribe('w*');
  const plain = once(listener, 'message');
  const pattern = once(listener, 'pmessage');
  assert.equal(await client.publish('news', 'a'), 1);
  assert.equal(await client.publish('weather', 'b'), 1);
  assert.deepEqual(await plain, ['news', 'a']);
  assert.deepEqual(await pattern, ['w*', 'weather', 'b']);
  await listener.unsubscribe('news');
  await listener.punsubscribe('w*');
  assert.equal(await client.publish('news', 'x'), 0);
  assert.equal(await listener.set('after', '1'), 'OK');
  await listener.quit();
}

async function blocking(client) {
  const waiter = connect();
  assert.equal(await waiter.blpop('{q}none', 0.2), null);
  const popped = waiter.blpop('{q}a', '{q}b', 10);
  await new Promise((wake) => setTimeout(wake, 200));
  await client.rpush('{q}b', 'job');
  assert.deepEqual(await popped, ['{q}b', 'job']);
  await waiter.quit();
}

async function scripts(client) {
  client.defineCommand('addTo', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
  assert.equal(await client.addTo('n', 5), 5);
  await client.script('FLUSH');
  // The library meets NOSCRIPT and sends the text.
  assert.equal(await client.addTo('n', 5), 10);
}

async function bigValue(client) {
  const big = Buffer.alloc(64 << 20, '0123456789abcdef');
  assert.equal(await client.set('big', big), 'OK');
  assert.ok((await client.getBuffer('big')).equals(big));
  assert.equal(await client.del('big'), 1);
}

async function scan(client) {
  const found = new Set();
  for await (const keys of client.scanStream({ match: 'p*', count: 100 })) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 1000);
}

async function reconnect() {
  const client = connect();
  await client.set('k', 'v');
  console.log('connected');
  await once(process.stdin.resume(), 'end');
  assert.equal(await client.set('k', 'again'), 'OK');
  assert.equal(await client.get('k'), 'again');
  console.log('reconnected');
  client.disconnect();
}

async function main() {
  if (mode === 'reconnect') return reconnect();
  const client = connect();
  for (const step of [values, pipelines, transactions, subscriptions, blocking, scripts, bigValue, scan]) {
    await step(client);
    console.log(step.name);
  }
  assert.equal(await client.quit(), 'OK');
  console.log('all done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
