import { deserialize, serialize } from 'node:v8';
import type { DataConverter, Payload } from '@temporalio/common';

const ENCODING = Buffer.from('binary/encrypted');

/** A data converter that encrypts every payload, so that no text can be read without it. */
export const ENCRYPTING: DataConverter = {
  payloadCodecs: [
    {
      encode: (payloads) => Promise.resolve(payloads.map(encrypt)),
      decode: (payloads) => Promise.resolve(payloads.map(decrypt)),
    },
  ],
};

const scramble = (data: Uint8Array) => Buffer.from(data.map((byte) => byte ^ 0xa5));

function encrypt({ metadata, data }: Payload): Payload {
  return { metadata: { encoding: ENCODING }, data: scramble(serialize({ metadata, data })) };
}

/** @throws TypeError if a payload is not encrypted, because the codec must encode every payload of the project. */
function decrypt(payload: Payload): Payload {
  if (!ENCODING.equals(payload.metadata?.encoding ?? Buffer.of()))
    throw new TypeError(`a payload is not encrypted: ${Buffer.from(payload.data ?? []).toString()}`);
  return deserialize(scramble(payload.data ?? Buffer.of())) as Payload;
}
