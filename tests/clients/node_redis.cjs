// SPDX-License-Identifier: Apache-2.0
// What an application does with node-redis: `node node_redis.cjs PORT PROTOCOL [PASSWORD] [reconnect]`.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const { createClient, defineScript, RESP_TYPES, WatchError } = require('redis');

const [port, protocol, password, mode] = process.argv.slice(2);

const addTo = defineScript({
  SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, amount) {
    parser.pushKey(key);
    parser.push(String(amount));
  },
  transformReply: undefined,
});

async function connect(extra = {}) {
  const client = createClient({
    RESP: Number(protocol),
    password: password || undefined,
    scripts: { addTo },
    socket: { host: '127.0.0.1', port: Number(port), connectTimeout: 5000, reconnectStrategy: () => 50 },
    ...extra,
  });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const bytes = (client) => client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });

async function values(client) {
  assert.equal(await client.set('k', 'v', { EX: 100 }), 'OK');
  assert.equal(await client.get('k'), 'v');
  const binary = Buffer.from([0, 13, 10, 255]);
  assert.equal(await client.set(binary, binary), 'OK');
  assert.deepEqual(await bytes(client).get(binary), binary);
  assert.equal(await client.set('', ''), 'OK');
  assert.equal(await client.get(''), '');
  assert.equal(await client.get('missing'), null);
  await client.hSet('h', { a: '1', b: '2' });
  assert.deepEqual({ ...(await client.hGetAll('h')) }, { a: '1', b: '2' });
  await client.zAdd('z', [{ score: 1.5, value: 'x' }]);
  assert.deepEqual(await client.zRangeWithScores('z', 0, -1), [{ score: 1.5, value: 'x' }]);
  await assert.rejects(client.lPush('k', 'x'), /WRONGTYPE/);
}

async function pipelines(client) {
  const asked = [];
  for (let i = 0; i < 1000; i++) asked.push(client.set(`p${i}`, String(i)), client.get(`p${i}`));
  const replies = await Promise.all(asked);
  replies.forEach((reply, i) => assert.equal(reply, i % 2 ? String((i - 1) / 2) : 'OK'));
}

async function transactions(client) {
  assert.deepEqual(await client.multi().set('{t}a', '1').incr('{t}a').get('{t}a').exec(), ['OK', 2, '2']);
  const other = await connect();
  await client.watch('{t}a');
  await other.set('{t}a', 'theirs');
  await assert.rejects(client.multi().set('{t}a', 'mine').exec(), WatchError);
  assert.equal(await client.get('{t}a'), 'theirs');
  await other.close();
}

async function subscriptions(client) {
  const listener = await connect();
  const seen = [];
  await listener.subscribe('news', (text, channel) => seen.push([channel, text]));
  await listener.pSubscribe('w*', (text, channel) => seen.push([channel, text]));
  assert.equal(await client.publish('news', 'a'), 1);
  assert.equal(await client.publish('weather', 'b'), 1);
  for (let i = 0; i < 200 && seen.length < 2; i++) await new Promise((wake) => setTimeout(wake, 20));
  assert.deepEqual(seen, [['news', 'a'], ['weather', 'b']]);
  await listener.unsubscribe('news');
  await listener.pUnsubscribe('w*');
  assert.equal(await client.publish('news', 'x'), 0);
  // In RESP2 the library hands out bytes on a connection that has been subscribed.
  assert.equal(String(await listener.set('after', '1')), 'OK');
  await listener.close();
}

async function blocking(client) {
  const waiter = await connect();
  assert.equal(await waiter.blPop('{q}none', 0.2), null);
  const popped = waiter.blPop(['{q}a', '{q}b'], 10);
  await new Promise((wake) => setTimeout(wake, 200));
  await client.rPush('{q}b', 'job');
  assert.deepEqual({ ...(await popped) }, { key: '{q}b', element: 'job' });
  await waiter.close();
}

async function scripts(client) {
  assert.equal(await client.addTo('n', 5), 5);
  await client.scriptFlush();
  // The library meets NOSCRIPT and sends the text.
  assert.equal(await client.addTo('n', 5), 10);
}

async function bigValue(client) {
  const big = Buffer.alloc(64 << 20, '0123456789abcdef');
  assert.equal(await client.set('big', big), 'OK');
  assert.ok((await bytes(client).get('big')).equals(big));
  assert.equal(await client.del('big'), 1);
}

async function scan(client) {
  const found = new Set();
  for await (const keys of client.scanIterator({ MATCH: 'p*', COUNT: 100 })) [].concat(keys).forEach((key) => found.add(key));
  assert.equal(found.size, 1000);
}

async function reconnect() {
  const client = await connect();
  await client.set('k', 'v');
  console.log('connected');
  await once(process.stdin.resume(), 'end');
  assert.equal(await client.set('k', 'again'), 'OK');
  assert.equal(await client.get('k'), 'again');
  console.log('reconnected');
  client.destroy();
}

async function main() {
  if (mode === 'reconnect') return reconnect();
  const client = await connect();
  for (const step of [values, pipelines, transactions, subscriptions, blocking, scripts, bigValue, scan]) {
    await step(client);
    console.log(step.name);
  }
  await client.close();
  console.log('all done');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
