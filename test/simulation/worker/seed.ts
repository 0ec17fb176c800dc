import Long from 'long';

/**
 * Calculates the seed of a run's random numbers from the run ID, like the SDK's core: SipHash-1-3 with a zero key, over the bytes of the ID and
 * 0xff, as Rust hashes a string. Recorded histories depend on the seed, because their timers have jitter.
 */
export function seedOf(runId: string): Long {
  const bytes = Buffer.concat([Buffer.from(runId), Buffer.of(0xff)]);
  const words = Buffer.alloc((bytes.length & ~7) + 8);
  bytes.copy(words);
  words[words.length - 1] = bytes.length;
  let [a, b, c, d] = [0x736f6d6570736575n, 0x646f72616e646f6dn, 0x6c7967656e657261n, 0x7465646279746573n];
  const round = () => {
    [a, b] = mixed(a, b, 13n);
    [c, d] = mixed(c, d, 16n);
    [a, d] = mixed(rotated(a, 32n), d, 21n);
    [c, b] = mixed(c, b, 17n);
    c = rotated(c, 32n);
  };
  for (let at = 0; at < words.length; at += 8) {
    const word = words.readBigUInt64LE(at);
    d ^= word;
    round();
    a ^= word;
  }
  c ^= 0xffn;
  for (let count = 0; count < 3; count += 1) round();
  return Long.fromString((a ^ b ^ c ^ d).toString(), true);
}

function mixed(one: bigint, other: bigint, bits: bigint): [bigint, bigint] {
  const sum = BigInt.asUintN(64, one + other);
  return [sum, rotated(other, bits) ^ sum];
}

function rotated(value: bigint, bits: bigint): bigint {
  return BigInt.asUintN(64, value << bits) | (value >> (64n - bits));
}
