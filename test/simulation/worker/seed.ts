import Long from 'long';

const MASK = (1n << 64n) - 1n;

/**
 * The seed of a run's random numbers, as the SDK's core makes it of the run's id: SipHash-1-3 without a key, of what Rust
 * hashes of a string, its bytes and 0xff. Recorded histories depend on it, by the jitter of their timers.
 */
export function seedOf(runId: string): Long {
  const bytes = Buffer.concat([Buffer.from(runId), Buffer.of(0xff)]);
  const words = Buffer.alloc((bytes.length & ~7) + 8);
  bytes.copy(words);
  words[words.length - 1] = bytes.length;
  const v: [bigint, bigint, bigint, bigint] = [
    0x736f6d6570736575n,
    0x646f72616e646f6dn,
    0x6c7967656e657261n,
    0x7465646279746573n,
  ];
  for (let at = 0; at < words.length; at += 8) {
    const word = words.readBigUInt64LE(at);
    v[3] ^= word;
    round(v);
    v[0] ^= word;
  }
  v[2] ^= 0xffn;
  for (let count = 0; count < 3; count += 1) round(v);
  return Long.fromString((v[0] ^ v[1] ^ v[2] ^ v[3]).toString(), true);
}

function round(v: [bigint, bigint, bigint, bigint]): void {
  v[0] = (v[0] + v[1]) & MASK;
  v[1] = rotated(v[1], 13n) ^ v[0];
  v[0] = rotated(v[0], 32n);
  v[2] = (v[2] + v[3]) & MASK;
  v[3] = rotated(v[3], 16n) ^ v[2];
  v[0] = (v[0] + v[3]) & MASK;
  v[3] = rotated(v[3], 21n) ^ v[0];
  v[2] = (v[2] + v[1]) & MASK;
  v[1] = rotated(v[1], 17n) ^ v[2];
  v[2] = rotated(v[2], 32n);
}

function rotated(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & MASK;
}
